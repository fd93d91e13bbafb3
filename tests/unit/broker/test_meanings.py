"""One table says what a code of librdkafka means, and workers, relays and the runtime all act on it."""

import pytest
from confluent_kafka import KafkaError

from kapelle.broker import (
    has_no_leader,
    is_away,
    is_end,
    is_final,
    is_missing,
    is_refused,
    is_repaired_by_client,
    is_silent,
    lacks_share_groups,
    no_leader,
    seeks_coordinator,
)
from kapelle.broker.meanings import AWAY, COORDINATOR_COMING, LEADERLESS, MISSING, NO_SHARE_GROUPS, REFUSED, SILENT
from kapelle.topology.errors import BrokerRefused
from kapelle.topology.kafka import translate
from kapelle.worker import TransportRefused, TransportUnavailable
from kapelle.worker.kafka_clients import meaning as worker_meaning

KNOWN = sorted(REFUSED | MISSING | AWAY | COORDINATOR_COMING | LEADERLESS | SILENT | NO_SHARE_GROUPS)


@pytest.mark.parametrize("code", KNOWN, ids=lambda code: KafkaError(code).name())
def test_a_worker_stops_where_the_runtime_stops(code: int) -> None:
    error = KafkaError(code)
    found = worker_meaning(error, "read")

    assert isinstance(found, TransportRefused) == is_refused(error)
    assert isinstance(translate.meaning(error, "read"), BrokerRefused) == is_refused(error)


def test_a_dead_client_is_final_whatever_its_code_says() -> None:
    error = KafkaError(KafkaError._TRANSPORT, "dead", True)

    assert is_final(error)
    assert not is_refused(error)
    assert isinstance(worker_meaning(error, "read"), TransportRefused)
    assert isinstance(worker_meaning(KafkaError(KafkaError._TRANSPORT), "read"), TransportUnavailable)


def test_nothing_that_is_refused_counts_as_away() -> None:
    assert AWAY.isdisjoint(REFUSED)
    assert MISSING.isdisjoint(REFUSED)
    assert SILENT.isdisjoint(REFUSED)


def test_librdkafka_repairs_what_it_retries_unless_the_client_is_dead() -> None:
    retried = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION, "moved", False, True)
    dead = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION, "moved", True, True)

    assert (is_repaired_by_client(retried), is_repaired_by_client(dead)) == (True, False)
    assert not is_repaired_by_client(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def test_the_end_of_a_partition_is_silent_and_not_away() -> None:
    end = KafkaError(KafkaError._PARTITION_EOF)

    assert (is_end(end), is_silent(end), is_away(end), is_final(end)) == (True, True, False, False)


def test_an_answer_without_an_offset_is_asked_for_again() -> None:
    error = no_leader().args[0]

    assert (has_no_leader(error), is_away(error), is_missing(error)) == (True, True, False)


def test_a_group_without_a_coordinator_is_asked_about_again() -> None:
    assert seeks_coordinator(KafkaError(KafkaError.NOT_COORDINATOR))
    assert not lacks_share_groups(KafkaError(KafkaError.NOT_COORDINATOR))
