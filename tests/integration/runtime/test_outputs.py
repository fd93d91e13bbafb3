"""What others see of a member on the real broker: records that any tool reads, ends, statistics and counters."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from kapelle.schemas import Codec
from kapelle.schemas.headers import read as read_headers
from kapelle.topology.build import partition_of
from kapelle.topology.kafka.log import KafkaLog
from kapelle.topology.log import Place
from tests.integration.runtime.members import ENOUGH_S, Deployment, own, until
from tests.proof.contracts import Tick
from tests.proof.processors import counting
from tests.proof.workload import ticks
from tests.support.broker import Broker

TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WORDS = 40
RECORDS = 200


@pytest.fixture(scope="module")
def folded(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A deployment that has folded some ticks."""
    place = Deployment(broker, tmp_path_factory.mktemp("outputs"), own([counting], partitions=3))
    place.publish(ticks(RECORDS, WORDS))
    with place.member() as one:
        until(lambda: one.counters.events >= RECORDS, "the ticks to be counted")
    return place


def test_every_event_is_a_cloud_event_with_an_id_of_its_own(folded: Deployment) -> None:
    messages = folded.messages(f"{folded.topology.prefix}.counting.events")

    events = [read_headers(message.headers()).event for message in messages]  # type: ignore[arg-type]

    assert {(e.type, e.source) for e in events if e} == {("Counted", f"/{folded.topology.prefix}/counting")}
    assert len({e.id for e in events if e}) == len(messages) == RECORDS
    assert all(e and e.time_ms and e.time_ms > 1_700_000_000_000 for e in events)


def test_events_and_rows_stand_where_javas_clients_would_put_their_keys(folded: Deployment) -> None:
    """librdkafka's own `murmur2_random` is what Java's default partitioner does."""
    where: dict[str, int | None] = {}
    producer = Producer({"bootstrap.servers": folded.broker.bootstrap_servers, "partitioner": "murmur2_random"})
    topic = folded.broker.create_topic(f"{folded.topology.prefix}-elsewhere", partitions=3)
    for n in range(WORDS):
        producer.produce(
            topic, b"", f"word-{n}", on_delivery=lambda _, m: where.update({(m.key() or b"").decode(): m.partition()})
        )
    assert producer.flush(ENOUGH_S) == 0

    messages = folded.messages(f"{folded.topology.prefix}.counting.events")

    assert len(where) == WORDS
    assert {(m.key() or b"").decode(): m.partition() for m in messages} == where
    assert {key: partition_of(key, 3) for key in where} == where


def test_a_trace_goes_through_the_broker(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own([counting], partitions=1))
    value = Codec(place.topology.catalog()).encode(Tick("1", "a", 0, 1))
    place.publish_bytes("ticks", [(b"a", value, [("traceparent", TRACE)])])

    with place.member() as one:
        until(lambda: one.counters.events >= 1, "the tick to be counted")

    (message,) = place.messages(f"{place.topology.prefix}.counting.events")
    assert ("traceparent", TRACE) in (message.headers() or [])


def test_ends_include_what_stands_in_open_transactions(broker: Broker, tmp_path: Path) -> None:
    """Barriers and restores rest on it: what is committed behind somebody's open transaction is not visible yet."""
    place = Deployment(broker, tmp_path, own([counting], partitions=1))
    topic = f"{place.topology.prefix}.ticks"
    config = {"bootstrap.servers": broker.bootstrap_servers}
    open_, done = (Producer({**config, "transactional.id": f"{place.topology.prefix}-{n}"}) for n in "ab")
    for producer in (open_, done):
        producer.init_transactions(ENOUGH_S)
        producer.begin_transaction()
        producer.produce(topic, b"value", b"key", 0)
        producer.flush(ENOUGH_S)
    done.commit_transaction(ENOUGH_S)
    log = KafkaLog(place.topology, place.settings, instance="x", hosted=["counting"])

    # Two records and the marker of the second transaction.
    until(lambda: log.ends([Place(topic, 0)]) == {Place(topic, 0): 3}, "the end behind the open transaction")

    open_.abort_transaction(ENOUGH_S)


def test_statistics_and_counters_are_there_and_move(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own([counting]), statistics_ms=100)
    with place.member() as one:
        place.publish(ticks(RECORDS, WORDS))
        until(lambda: one.kafka.log.statistics.get("txmsgs", 0) >= RECORDS, "statistics that tell of the records")
        until(lambda: one.counters.records == RECORDS and one.counters.cycles > 0, "the first records to be counted")
        first = one.counters.snapshot()
        place.publish(ticks(RECORDS, WORDS))
        until(lambda: one.counters.records == 2 * RECORDS and one.counters.cycles > first["cycles"], "more of them")

    last = one.counters.snapshot()
    assert all(last[name] > first[name] > 0 for name in ("records", "events", "sent", "cycles"))
    assert one.counters.cycle_times.sum_ms >= one.counters.commit_times.sum_ms > 0
    assert one.kafka.log.statistics["client_id"]
    assert (first["shards_active"], last["aborts"], last["renewals"], last["dead_letters"]) == (2, 0, 0, 0)
