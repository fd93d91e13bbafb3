"""Broker errors and what they mean: abort, a new producer, or stop."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from kapelle.broker.meanings import FENCED, REFUSED
from kapelle.topology.errors import BrokerRefused, CycleAborted, ProducerLost
from kapelle.topology.kafka.translate import commit_meaning, meaning, translated

Meaning = type[BrokerRefused] | type[CycleAborted] | type[ProducerLost]

# What is told by code alone, whatever was being done.
MEANINGS: dict[int, Meaning] = {
    # The group has gone on without us, or is about to: what we did is for others to do.
    KafkaError.ILLEGAL_GENERATION: CycleAborted,
    KafkaError.UNKNOWN_MEMBER_ID: CycleAborted,
    KafkaError.FENCED_INSTANCE_ID: CycleAborted,
    KafkaError.REBALANCE_IN_PROGRESS: CycleAborted,
    KafkaError.STALE_MEMBER_EPOCH: CycleAborted,
    KafkaError._STATE: CycleAborted,
    # It can be asked again.
    KafkaError._TIMED_OUT: CycleAborted,
    KafkaError._TRANSPORT: CycleAborted,
    KafkaError._ALL_BROKERS_DOWN: CycleAborted,
    KafkaError.NOT_COORDINATOR: CycleAborted,
    KafkaError.COORDINATOR_NOT_AVAILABLE: CycleAborted,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: CycleAborted,
    KafkaError.CONCURRENT_TRANSACTIONS: CycleAborted,
    KafkaError.UNSTABLE_OFFSET_COMMIT: CycleAborted,
    KafkaError.NOT_ENOUGH_REPLICAS: CycleAborted,
    KafkaError.UNKNOWN_TOPIC_OR_PART: CycleAborted,
    KafkaError.OPERATION_NOT_ATTEMPTED: CycleAborted,
    # Somebody else is who we were.
    KafkaError._FENCED: ProducerLost,
    KafkaError._FATAL: ProducerLost,
    KafkaError.INVALID_PRODUCER_EPOCH: ProducerLost,
    KafkaError.INVALID_PRODUCER_ID_MAPPING: ProducerLost,
    # Nobody but a person can mend it.
    KafkaError.TOPIC_AUTHORIZATION_FAILED: BrokerRefused,
    KafkaError.GROUP_AUTHORIZATION_FAILED: BrokerRefused,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: BrokerRefused,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: BrokerRefused,
    KafkaError.SASL_AUTHENTICATION_FAILED: BrokerRefused,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: BrokerRefused,
    KafkaError.UNSUPPORTED_VERSION: BrokerRefused,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT: BrokerRefused,
    KafkaError.INVALID_TRANSACTION_TIMEOUT: BrokerRefused,
    KafkaError.MSG_SIZE_TOO_LARGE: BrokerRefused,
    KafkaError._AUTHENTICATION: BrokerRefused,
    KafkaError._UNSUPPORTED_FEATURE: BrokerRefused,
    KafkaError._SSL: BrokerRefused,
}


@pytest.mark.parametrize("code", MEANINGS, ids=lambda code: KafkaError(code).name())
def test_every_error_has_its_meaning(code: int) -> None:
    assert type(meaning(KafkaError(code), "send offsets")) is MEANINGS[code]


def test_the_table_holds_every_error_that_is_told_by_its_code() -> None:
    assert {code for code, found in MEANINGS.items() if found is BrokerRefused} == REFUSED
    assert {code for code, found in MEANINGS.items() if found is ProducerLost} == FENCED


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.ILLEGAL_GENERATION, KafkaError._STATE])
def test_a_fatal_error_costs_the_producer_whatever_its_code(code: int) -> None:
    assert type(meaning(KafkaError(code, "dead", True), "produce")) is ProducerLost


def test_a_refusal_that_is_fatal_stays_a_refusal() -> None:
    error = KafkaError(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "no", True)

    assert type(meaning(error, "initialise transactions")) is BrokerRefused


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (KafkaError(KafkaError._TIMED_OUT, "late", False, True), ProducerLost),
        (KafkaError(KafkaError._TRANSPORT, "cut", False, True), ProducerLost),
        (KafkaError(KafkaError._STATE, "odd"), ProducerLost),
        (KafkaError(KafkaError.ILLEGAL_GENERATION, "abort", False, False, True), CycleAborted),
        (KafkaError(KafkaError._FENCED, "fenced", True), ProducerLost),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no", False, False, True), BrokerRefused),
    ],
    ids=["time-out", "lost connection", "wrong state", "must be aborted", "fenced", "refused"],
)
def test_only_a_commit_that_must_be_aborted_is_known_to_have_failed(error: KafkaError, found: Meaning) -> None:
    assert type(commit_meaning(error)) is found


def test_the_message_says_what_was_done_and_what_the_broker_said() -> None:
    error = meaning(
        KafkaError(KafkaError.ILLEGAL_GENERATION, "Specified group generation id is not valid"), "send offsets"
    )

    assert str(error) == "send offsets: ILLEGAL_GENERATION: Specified group generation id is not valid"


def test_translating_keeps_the_broker_error_as_the_cause() -> None:
    with pytest.raises(CycleAborted, match="list topics: _TRANSPORT") as caught, translated("list topics"):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    assert isinstance(caught.value.__cause__, KafkaException)


def test_translating_lets_other_errors_and_results_through() -> None:
    with translated("nothing"):
        pass

    with pytest.raises(ZeroDivisionError), translated("divide"):
        1 / 0  # noqa: B018
