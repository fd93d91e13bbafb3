"""One suite of laws for every journal: embedded, and on a real broker."""

import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kapelle.processors.wiring import WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import RecordTooLarge
from kapelle.schemas.contracts import DeactivateWorkflow, PushVersion
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.errors import TopicsDiffer
from kapelle.topology.journal import (
    EmbeddedJournal,
    Entry,
    Follower,
    Journal,
    JournalUnavailable,
    KafkaJournal,
    Point,
)
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.conftest import PrivateBroker
from tests.integration.api.places import until
from tests.support.broker import Broker, BrokerSettings
from tests.support.processes import client_threads

PARTITIONS = 2
NOWHERE: Mapping[Point, int] = {}


class Opened:
    """A journal, and a way past it into its log."""

    def __init__(self, journal: Journal, shape: Topology, raw: EmbeddedRuntime | Producer) -> None:
        self.journal = journal
        self.shape = shape
        self.raw = raw
        ends = journal.ends(WORKFLOW_COMMANDS)
        self.starts: dict[Point, int] = {(WORKFLOW_COMMANDS.name, number): end for number, end in ends.items()}

    def follow(self) -> Follower:
        """From where the log ended when the test began."""
        return self.journal.follow([WORKFLOW_COMMANDS], self.starts)

    def publish_bytes(self, key: str, data: bytes) -> None:
        if isinstance(self.raw, EmbeddedRuntime):
            self.raw.publish(WORKFLOW_COMMANDS, key, data).result()
        else:
            topic = self.shape.topic(WORKFLOW_COMMANDS)
            self.raw.produce(topic, data, key.encode(), partition_of(key, PARTITIONS))
            assert self.raw.flush(30) == 0


def made_topics(broker: Broker) -> tuple[Topology, KafkaSettings]:
    shape = topology(prefix=f"journal-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers, extra={"producer.delivery.timeout.ms": 3_000})
    Topics(shape, kafka).apply()
    until(lambda: not Topics(shape, kafka).plan(), "the topics to be there")
    return shape, kafka


@pytest.fixture(scope="module")
def on_kafka(broker: Broker) -> Iterator[tuple[KafkaJournal, Topology, Producer]]:
    shape, kafka = made_topics(broker)
    journal = KafkaJournal(shape, kafka)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        yield journal, shape, producer
    journal.close()


@pytest.fixture(params=["embedded", "kafka"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    if request.param == "kafka":
        yield Opened(*request.getfixturevalue("on_kafka"))
        return
    shape = topology(partitions=PARTITIONS)
    with EmbeddedRuntime(shape, tmp_path / "log") as runtime:
        runtime.start()
        yield Opened(EmbeddedJournal(runtime), shape, runtime)


def command(number: int) -> DeactivateWorkflow:
    return DeactivateWorkflow(f"request-{number}", "ann")


def publish(journal: Journal, numbers: range, key: str = "etl") -> None:
    for future in [journal.publish(WORKFLOW_COMMANDS, key, command(number)) for number in numbers]:
        future.result(30)


def taken(follower: Follower, count: int) -> list[Entry]:
    found: list[Entry] = []

    def enough() -> bool:
        found.extend(follower.take(100, 0.2))
        return len(found) >= count

    until(enough, f"{count} entries")
    return found


def numbers_of(entries: list[Entry]) -> list[int]:
    values = [entry.value for entry in entries]
    return [int(value.request_id.removeprefix("request-")) for value in values if isinstance(value, DeactivateWorkflow)]


def test_what_is_published_is_followed_in_order_with_its_place(opened: Opened) -> None:
    before_ms = time.time_ns() // 1_000_000 - 5_000
    position = opened.journal.publish(WORKFLOW_COMMANDS, "etl", command(0)).result(30)
    publish(opened.journal, range(1, 5))

    follower = opened.follow()
    entries = taken(follower, 5)
    follower.close()

    assert numbers_of(entries) == [0, 1, 2, 3, 4]
    assert (entries[0].partition, entries[0].offset) == (position.place.partition, position.offset)
    assert {entry.key for entry in entries} == {"etl"}
    assert {entry.stream for entry in entries} == {"workflows.commands"}
    assert all(entry.at_ms > before_ms for entry in entries)


def test_a_follower_goes_on_where_another_one_stopped(opened: Opened) -> None:
    publish(opened.journal, range(3), "etl")
    publish(opened.journal, range(3, 6), "another")
    first = opened.follow()
    seen = taken(first, 6)
    positions = dict(first.positions)
    first.close()
    publish(opened.journal, range(6, 8), "etl")

    second = opened.journal.follow([WORKFLOW_COMMANDS], positions)
    rest = taken(second, 2)
    nothing = second.take(10, 0.1)
    second.close()

    assert sorted(numbers_of(seen)) == [0, 1, 2, 3, 4, 5]
    assert numbers_of(rest) == [6, 7]
    assert nothing == []


def test_no_more_is_taken_than_was_asked_for(opened: Opened) -> None:
    publish(opened.journal, range(10))
    follower = opened.follow()

    batches = [until(lambda: follower.take(3, 0.2), "a batch") for _ in range(3)]
    follower.close()

    assert all(0 < len(batch) <= 3 for batch in batches)
    joined = [entry for batch in batches for entry in batch]
    assert numbers_of(joined) == list(range(len(joined)))


def test_a_record_that_cannot_be_read_is_passed_by(opened: Opened) -> None:
    publish(opened.journal, range(1))
    opened.publish_bytes("etl", b"not ours at all")
    publish(opened.journal, range(1, 2))

    follower = opened.follow()
    entries = taken(follower, 3)
    follower.close()

    assert [entry.value is None for entry in entries] == [False, True, False]


def test_the_ends_are_where_the_followers_come_to(opened: Opened) -> None:
    publish(opened.journal, range(4))
    ends = opened.journal.ends(WORKFLOW_COMMANDS)

    follower = opened.follow()
    taken(follower, 4)
    follower.close()

    assert sum(ends.values()) - sum(opened.starts.values()) == 4
    assert {number: follower.positions["workflows.commands", number] for number in ends} == ends


def test_a_follower_that_waits_is_woken_by_a_record_and_let_go_by_close(opened: Opened) -> None:
    follower = opened.follow()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(taken, follower, 1)
        publish(opened.journal, range(1))
        found = waiting.result(30)
        last = pool.submit(follower.take, 10, 30.0)
        follower.close()
        ended = last.result(10)

    assert numbers_of(found) == [0]
    assert ended == follower.take(10, 0.0) == []


def test_whoever_gives_up_waiting_for_a_record_stops_nobody_else(opened: Opened) -> None:
    first = opened.journal.publish(WORKFLOW_COMMANDS, "etl", command(0))
    was_cancelled = first.cancel()
    second = opened.journal.publish(WORKFLOW_COMMANDS, "etl", command(1)).result(30)

    assert not was_cancelled
    assert second.offset == first.result(30).offset + 1


def test_a_record_beyond_the_limit_is_refused_at_once(opened: Opened) -> None:
    large = PushVersion("request", "ann", "x" * 1_100_000)

    with pytest.raises(RecordTooLarge, match="1000000"):
        opened.journal.publish(WORKFLOW_COMMANDS, "etl", large)


def test_a_log_is_told_from_another_by_its_identity(opened: Opened, tmp_path: Path) -> None:
    with EmbeddedRuntime(topology(partitions=PARTITIONS), tmp_path / "other") as other:
        identities = {opened.journal.identity, opened.journal.identity, EmbeddedJournal(other).identity}

    assert len(identities) == 2


def test_an_embedded_log_that_was_closed_takes_nothing_more(tmp_path: Path) -> None:
    runtime = EmbeddedRuntime(topology(partitions=1), tmp_path / "log")
    runtime.start()
    journal = EmbeddedJournal(runtime)
    runtime.close()

    with pytest.raises(JournalUnavailable, match="has stopped"):
        journal.publish(WORKFLOW_COMMANDS, "etl", command(1))


def test_a_journal_on_kafka_that_was_closed_takes_nothing_more_and_leaves_no_client_behind(broker: Broker) -> None:
    shape, kafka = made_topics(broker)
    before = client_threads()
    journal = KafkaJournal(shape, kafka)
    publish(journal, range(1))

    journal.close()

    with pytest.raises(JournalUnavailable, match="has been closed"):
        journal.publish(WORKFLOW_COMMANDS, "etl", command(1))
    until(lambda: client_threads() <= before, "its clients to end")


def test_what_a_transaction_gave_up_is_never_seen(broker: Broker) -> None:
    shape, kafka = made_topics(broker)
    journal = KafkaJournal(shape, kafka)
    topic = shape.topic(WORKFLOW_EVENTS)
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": uuid.uuid4().hex}
    producer = Producer(config)
    producer.init_transactions(30)
    for number, end in enumerate((producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, f"record {number}".encode(), b"etl", 0)
        producer.flush(30)
        end(30)

    follower = journal.follow([WORKFLOW_EVENTS], NOWHERE)
    entries = taken(follower, 1)
    reached = until(lambda: follower.take(10, 0.2) or follower.positions["workflows.events", 0] >= 4, "the end")
    follower.close()
    journal.close()

    assert [entry.offset for entry in entries] == [2]
    assert reached is True


def test_a_journal_on_topics_that_are_not_there_is_refused(broker: Broker) -> None:
    shape = topology(prefix=f"missing-{uuid.uuid4().hex[:8]}")

    with pytest.raises(TopicsDiffer, match="kapelle topics apply"):
        KafkaJournal(shape, KafkaSettings(bootstrap_servers=broker.bootstrap_servers))


def test_a_broker_that_does_not_answer_makes_the_journal_unavailable(private_broker: PrivateBroker) -> None:
    broker = private_broker(BrokerSettings())
    shape, kafka = made_topics(broker)
    journal = KafkaJournal(shape, kafka)
    publish(journal, range(1))
    broker.pause()

    with pytest.raises(JournalUnavailable, match="keep a record"):
        journal.publish(WORKFLOW_COMMANDS, "etl", command(1)).result(30)
    with pytest.raises(JournalUnavailable, match="ends"):
        journal.ends(WORKFLOW_COMMANDS)
    broker.resume()
    again = journal.publish(WORKFLOW_COMMANDS, "etl", command(1)).result(30)
    journal.close()

    assert again.offset >= 1
