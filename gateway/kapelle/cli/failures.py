"""The exit code and the message for the errors of all layers."""

import sqlite3
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from kapelle.broker import is_away
from kapelle.cli.errors import CommandError, ExitCode, line_of, with_line
from kapelle.processors.errors import ProcessorError
from kapelle.schemas import SchemaError
from kapelle.topology.embedded.errors import DirectoryDiffers, DirectoryTaken, LogDamaged
from kapelle.topology.errors import (
    BadSetting,
    BrokerRefused,
    ChangelogReplaced,
    ChangelogShortened,
    CycleAborted,
    FoldError,
    HandlerFailed,
    InputLost,
    InstanceFencedAgain,
    OffsetsLost,
    ProducerLost,
    TopicsDiffer,
    TopologyError,
)
from kapelle.topology.replay.errors import BadExport, BadMoment, HistoryIncomplete, NoHistory, Unsettled
from kapelle.topology.tables import RowVersionUnknown, StoreLocked, TableError

# The first that fits counts. Everything else is a failure.
CODES: Final = (
    (BadSetting, ExitCode.USAGE),
    (TopicsDiffer, ExitCode.PRECONDITION),
    (ChangelogReplaced, ExitCode.PRECONDITION),
    (OffsetsLost, ExitCode.PRECONDITION),
    (ChangelogShortened, ExitCode.PRECONDITION),
    (InputLost, ExitCode.PRECONDITION),
    (InstanceFencedAgain, ExitCode.PRECONDITION),
    (BrokerRefused, ExitCode.PRECONDITION),
    (StoreLocked, ExitCode.PRECONDITION),
    (RowVersionUnknown, ExitCode.PRECONDITION),
    (DirectoryDiffers, ExitCode.PRECONDITION),
    (DirectoryTaken, ExitCode.PRECONDITION),
    (LogDamaged, ExitCode.PRECONDITION),
    (BadMoment, ExitCode.USAGE),
    (BadExport, ExitCode.USAGE),
    (NoHistory, ExitCode.NOT_FOUND),
    (HistoryIncomplete, ExitCode.PRECONDITION),
    (Unsettled, ExitCode.UNAVAILABLE),
)
# These say all that the operator needs.
SPEAKING: Final = (CommandError, TopologyError, FoldError, ProcessorError, TableError, SchemaError)


def exit_code(error: Exception) -> ExitCode:
    """The code of an error, ours or of a layer below."""
    if isinstance(error, CommandError):
        return error.code
    if broker_is_away(error):
        return ExitCode.UNAVAILABLE
    return next((code for kind, code in CODES if isinstance(error, kind)), ExitCode.FAILURE)


def broker_is_away(error: Exception) -> bool:
    """Whether this says no more than that no broker answered."""
    if not isinstance(error, CycleAborted | ProducerLost | KafkaException):
        return False
    broker = kafka_error(error)
    return broker is None or is_away(broker)


def kafka_error(error: BaseException) -> KafkaError | None:
    """What librdkafka said, if that is at the bottom of an error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KafkaException) and cause.args and isinstance(cause.args[0], KafkaError):
            return cause.args[0]
        cause = cause.__cause__
    return None


def paragraph(error: Exception) -> str:
    """What to tell the operator."""
    if isinstance(error, HandlerFailed):
        aside = f"with --set-aside {error.record} to write a dead letter for this record, or " if error.record else ""
        return (
            f"{error}{line_of(error.__cause__)}. Nothing of that cycle was committed: fix the processor and start it "
            f"again, or start it {aside}with --on-bug dead-letter to write dead letters for all such records"
        )
    if isinstance(error, SPEAKING):
        return str(error)
    cause = kafka_error(error)
    if cause is not None:
        return f"Kafka client error: {cause.str()}"
    if isinstance(error, OSError):
        return f"Operating system error: {error}"
    if isinstance(error, sqlite3.Error):
        return (
            f"The file of the view could not be used: {error}. Check the free space and the health of its disk. The "
            "view is a cache: delete its directory, and the next start rebuilds it from the log"
        )
    return (
        f"Unexpected {with_line(error)}. This is a defect of Kapelle: run `kapelle --debug` with the same arguments "
        "for a traceback"
    )
