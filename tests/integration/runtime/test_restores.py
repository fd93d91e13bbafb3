"""Tables after a restart: kept, repaired or read anew from the changelog, and in the end the fold of history."""

import random
import shutil
import signal
import time
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kapelle.processors.streams import DAY_MS
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import ChangelogReplaced, OffsetsLost
from kapelle.topology.kafka.notes import adopt
from kapelle.topology.kafka.offsets import committed
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, Memory, Peek, RocksStore, ShardState, StoreCorrupt
from kapelle.topology.tables.writes import writes_in
from tests.integration.runtime.members import ENOUGH_S, Deployment, Process, own, until
from tests.proof.processors import counting
from tests.proof.workload import ticks
from tests.support.broker import Broker

WORDS = 200  # as many rows, over two partitions
MORE = 200


class Kept(Deployment):
    """A deployment that all tests here share. Each finds its member stopped, leaves it so, and adds some records."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        super().__init__(broker, directory, own([counting]))
        self.published = 0

    @property
    def tables(self) -> Path:
        return self.directory / "one" / "tables"

    def publish_more(self) -> None:
        self.publish(row for n, row in enumerate(ticks(self.published + MORE, WORDS)) if n >= self.published)
        self.published += MORE

    def folded(self) -> bool:
        return sum(map(len, self.seen()["counting.events"].values())) >= self.published

    def goes_on(self) -> dict[str, float]:
        """Start the member, let it fold some more, and stop it; all must be there once. Returns what it counted."""
        self.publish_more()
        with self.member() as one:
            until(self.folded, "the records to be folded")
        assert sum(map(len, self.seen()["counting.events"].values())) == self.published
        assert self.table_problems() == []
        return one.counters.snapshot()

    def flush(self) -> None:
        """Bring all rows from the write-ahead log into table files."""
        store = RocksStore(self.tables, Memory())
        store._rocks.flush()
        store.close()

    def spoilt(self, path: Path) -> bool:
        """Damage a file where opening the tables does not show it, but reading rows does. False: there is no such."""
        whole = path.read_bytes()
        for at in range(0, len(whole), 200):
            path.write_bytes(whole[:at] + bytes(byte ^ 0xFF for byte in whole[at : at + 20]) + whole[at + 20 :])
            if self._shows_only_when_read():
                return True
        path.write_bytes(whole)
        return False

    def _shows_only_when_read(self) -> bool:
        try:
            store = Peek(self.tables, Memory())
        except StoreCorrupt:
            return False
        try:
            writes_in(store)
            with pytest.raises(StoreCorrupt):
                list(store.scan(b"counting", b"counting\xff"))
        except (StoreCorrupt, pytest.fail.Exception):
            return False
        finally:
            store.close()
        return True

    def files(self, pattern: str) -> list[Path]:
        found = sorted((self.tables / "rows").glob(pattern))
        assert found, f"no {pattern} to damage"
        return found


@pytest.fixture(scope="module")
def shared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    place = Kept(broker, tmp_path_factory.mktemp("restores"))
    place.goes_on()
    return place


@pytest.fixture
def place(shared: Kept) -> Kept:
    """The shared deployment, with tables on disk: the test before may have ended without."""
    if not shared.tables.exists():
        shared.goes_on()
    return shared


def test_tables_are_kept_after_a_clean_stop(place: Kept) -> None:
    counted = place.goes_on()

    assert (counted["restored_rows"], counted["wipes"], counted["restores"]) == (0, 0, 2)


def test_tables_are_kept_and_repaired_after_a_kill(place: Kept) -> None:
    arguments = ("--topology", "counting", "--crash-at", CrashPoint.AFTER_COMMIT.value, "--records-max", "20")
    with Process(place, *arguments) as process:
        place.publish_more()
        assert process.process.wait(ENOUGH_S) == -signal.SIGKILL, process.said()

    counted = place.goes_on()

    assert counted["wipes"] == 0
    assert 0 < counted["restored_rows"] <= 40


def test_tables_are_read_anew_when_the_directory_is_gone(place: Kept) -> None:
    shutil.rmtree(place.directory / "one")

    assert place.goes_on()["restored_rows"] >= WORDS


def test_tables_are_read_anew_when_they_are_older_than_tombstones(place: Kept) -> None:
    store = RocksStore(place.tables, Memory())
    batch = Batch()
    for partition in range(2):
        state = ShardState(counting, partition, store)
        meta = state.meta()
        assert meta is not None
        long_ago = time.time_ns() // 1_000_000 - 8 * DAY_MS
        state.stage(batch, msgspec.structs.replace(meta, saved_at_ms=long_ago))
    store.write(batch)
    store.close()

    counted = place.goes_on()

    assert counted["wipes"] == 2
    assert counted["restored_rows"] >= WORDS


def test_tables_are_read_anew_when_their_files_are_truncated(place: Kept) -> None:
    place.flush()
    for path in place.files("*.sst"):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)

    assert place.goes_on()["restored_rows"] >= WORDS
    assert list(place.tables.parent.glob("tables.corrupt-*"))


def test_damage_that_shows_only_when_it_is_read_is_put_away_for_the_next_start(place: Kept) -> None:
    store = RocksStore(place.tables, Memory())
    batch = Batch()
    batch.update({b"\x06%03d" % number: random.Random(number).randbytes(100) for number in range(200)})
    store.write(batch)  # between the numbers of writes, which a start reads, and the rows
    store.close()
    place.flush()
    assert any(place.spoilt(path) for path in reversed(place.files("*.sst")))  # the newest that has rows
    place.publish_more()

    damaged = place.member()
    with pytest.raises(StoreCorrupt), damaged:
        until(damaged.ended, "the member to stop at the damage")

    assert not place.tables.exists()
    assert place.goes_on()["restored_rows"] >= WORDS


@pytest.mark.parametrize("tables", ["kept", "gone"])
def test_a_changelog_that_was_made_anew_is_refused_until_it_is_adopted(place: Kept, tables: str) -> None:
    """As after a topic was brought back from a copy: the offsets that the tables stand for mean nothing in it."""
    name = place.topology.changelog("counting")
    rows = place.messages(name)
    if tables == "gone":
        shutil.rmtree(place.directory / "one")
    admin = AdminClient({"bootstrap.servers": place.broker.bootstrap_servers})
    admin.delete_topics([name])[name].result(ENOUGH_S)
    topics = Topics(place.topology, place.settings)
    until(lambda: bool(topics.plan()), "the changelog to be gone")
    topics.apply()
    until(lambda: not topics.plan(), "the changelog to be there again")

    refusing = place.member()
    with pytest.raises(ChangelogReplaced, match=f"Expected {name} to be .*: kapelle topics adopt"), refusing:
        until(refusing.ended, "the member to refuse the empty changelog")

    producer = Producer({"bootstrap.servers": place.broker.bootstrap_servers, "enable.idempotence": True})
    for row in rows:
        producer.produce(name, row.value(), row.key(), row.partition() or 0)
    assert producer.flush(ENOUGH_S) == 0
    assert adopt(place.topology, place.settings, "counting") == 2

    counted = place.goes_on()

    assert counted["wipes"] == (2 if tables == "kept" else 0)
    assert counted["restored_rows"] >= WORDS


def test_tables_whose_offsets_are_gone_are_refused_until_somebody_says_where_to_go_on(place: Kept) -> None:
    """As after the broker has forgotten the offsets of a group that was away for too long."""
    group = place.topology.group("counting")
    inputs = [Place(place.topology.topic(s), n) for s in counting.inputs for n in range(2)]
    admin = AdminClient({"bootstrap.servers": place.broker.bootstrap_servers})
    kept = committed(place.settings, group, inputs, ENOUGH_S)
    offsets = [TopicPartition(tp.topic, tp.partition, tp.offset) for tp in kept]
    until(lambda: _deleted(admin, group), "the group to be deleted")

    refusing = place.member()
    with pytest.raises(OffsetsLost, match=f"Expected the group {group} to have .* --reset-offsets"), refusing:
        until(refusing.ended, "the member to refuse tables without offsets")
    consumer = Consumer({"bootstrap.servers": place.broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()

    assert place.goes_on()["wipes"] == 0


def test_a_first_cycle_that_was_given_up_leaves_nothing_to_be_refused(broker: Broker, tmp_path: Path) -> None:
    """Its rows stand in the changelog, aborted, and there are no offsets: that is a beginning, not a loss."""
    place = Kept(broker, tmp_path)
    with Process(place, "--topology", "counting", "--crash-at", CrashPoint.BEFORE_COMMIT.value) as process:
        place.publish_more()
        assert process.process.wait(ENOUGH_S) == -signal.SIGKILL, process.said()

    assert place.goes_on()["restored_rows"] == 0


def _deleted(admin: AdminClient, group: str) -> bool:
    """The broker refuses while it still counts a member that has left."""
    try:
        admin.delete_consumer_groups([group])[group].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NON_EMPTY_GROUP:
            raise
        return False
    return True


def test_progress_is_told_while_restoring(place: Kept) -> None:
    shutil.rmtree(place.directory / "one")
    told: list[int] = []

    def look(point: CrashPoint) -> None:
        if point is CrashPoint.DURING_RESTORE:
            told.extend(progress.rows for progress in running.member.progress())

    running = place.member(crash=look)
    with running as one:
        until(lambda: one.member.ready, "the member to fold again")

    assert max(told) > 0
    assert one.counters.restored_rows >= WORDS
