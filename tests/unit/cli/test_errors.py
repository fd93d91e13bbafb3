"""Each error of the layers below has an exit code, and a paragraph that an operator can act on."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from kapelle.cli.errors import ExitCode
from kapelle.cli.failures import exit_code, paragraph
from kapelle.processors.errors import BadDeclaration
from kapelle.schemas import BadSchema
from kapelle.topology.errors import (
    BadSetting,
    BadTopology,
    BrokerRefused,
    CycleAborted,
    FoldError,
    HandlerFailed,
    InstanceFencedAgain,
    ProducerLost,
    TopicsDiffer,
    TopologyError,
)
from kapelle.topology.tables import RowVersionUnknown, StoreCorrupt, StoreFailed, StoreLocked

HERE = Path("state")


def caused(error: TopologyError, code: int) -> TopologyError:
    """An error as the translator makes it, with what librdkafka said at its bottom."""
    error.__cause__ = KafkaException(KafkaError(code))
    return error


CODES: list[tuple[Exception, ExitCode]] = [
    (BadSetting("acks"), ExitCode.USAGE),
    (BadTopology("twice"), ExitCode.FAILURE),
    (BadDeclaration("no input"), ExitCode.FAILURE),
    (BadSchema("s", "a record"), ExitCode.FAILURE),
    (TopicsDiffer(["t: missing"], "apply"), ExitCode.PRECONDITION),
    (InstanceFencedAgain("kapelle.a"), ExitCode.PRECONDITION),
    (BrokerRefused("authorisation"), ExitCode.PRECONDITION),
    (StoreLocked(HERE, "process 1"), ExitCode.PRECONDITION),
    (RowVersionUnknown("counts", ("a",), 3, (1, 2)), ExitCode.PRECONDITION),
    (StoreFailed(HERE, "disk full"), ExitCode.FAILURE),
    (StoreCorrupt(HERE, "bad block"), ExitCode.FAILURE),
    (FoldError("again and again"), ExitCode.FAILURE),
    (HandlerFailed("counting", "decide", ValueError("x")), ExitCode.FAILURE),
    (ProducerLost("no answer"), ExitCode.UNAVAILABLE),
    (caused(ProducerLost("init"), KafkaError._TIMED_OUT), ExitCode.UNAVAILABLE),
    (caused(CycleAborted("list topics"), KafkaError._TRANSPORT), ExitCode.UNAVAILABLE),
    (caused(CycleAborted("create topics"), KafkaError.INVALID_REPLICATION_FACTOR), ExitCode.FAILURE),
    (caused(CycleAborted("create topics"), KafkaError.TOPIC_ALREADY_EXISTS), ExitCode.FAILURE),
    (KafkaException(KafkaError(KafkaError._TRANSPORT)), ExitCode.UNAVAILABLE),
    (PermissionError(13, "Permission denied", "state"), ExitCode.FAILURE),
    (ZeroDivisionError("ours"), ExitCode.FAILURE),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=[f"{type(e).__name__}-{c.name}" for e, c in CODES])
def test_an_error_has_the_code_that_tells_what_to_do(error: Exception, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_a_bug_in_a_processor_is_told_with_its_line_and_the_way_on() -> None:
    try:
        raise ValueError("I doubt it")
    except ValueError as cause:
        error = HandlerFailed("doubting", "decide on Tick t-1", cause, record="kapelle.ticks-3@1234")
        error.__cause__ = cause

    told = paragraph(error)

    assert "start it with --set-aside kapelle.ticks-3@1234 to write a dead letter for this record" in told

    assert told.startswith("decide on Tick t-1 of processor 'doubting' raised ValueError: I doubt it (")
    assert "test_errors.py:" in told
    assert "--on-bug dead-letter" in told


def test_what_the_system_refuses_is_told_in_its_words() -> None:
    told = paragraph(PermissionError(13, "Permission denied", "state/instance"))

    assert told == "Operating system error: [Errno 13] Permission denied: 'state/instance'"


def test_what_the_client_says_is_told_without_its_wrapping() -> None:
    told = paragraph(KafkaException(KafkaError(KafkaError._TRANSPORT, "it hung up")))

    assert told == "Kafka client error: it hung up"
