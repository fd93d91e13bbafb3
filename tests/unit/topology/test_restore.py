"""Restoring tables: which local ones are trusted, where reading begins, and what is told of its progress."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kapelle.testing.cluster import Cluster, Entry, Outcome
from kapelle.testing.simulated_log import SimulatedLog
from kapelle.topology.crash import never
from kapelle.topology.errors import ChangelogShortened, CycleAborted
from kapelle.topology.log import Place, Row
from kapelle.topology.metrics import Counters
from kapelle.topology.restore import Progress, Restorer
from kapelle.topology.settings import Limits
from kapelle.topology.shard import Shard
from kapelle.topology.tables import Batch, MemoryStore, ShardMeta
from tests.proof.processors import Count, counting, topology
from tests.unit.topology.world import NOW_MS, World, tick

TOPOLOGY = topology("counting", partitions=2)
CHANGELOG = Place("proof.counting.changelog", 0)
TOMBSTONE_MS = Limits().tombstone_ms
META = ShardMeta(changelog_offset=3, saved_at_ms=NOW_MS, changelog_id="id-1", positions={})


class ChangelogLog(SimulatedLog):
    """A log whose changelog is a list of rows, read a few at a time."""

    def __init__(self, rows: int = 5) -> None:
        super().__init__(Cluster(), TOPOLOGY, "one")
        state = Shard(counting, 0, topology=TOPOLOGY, store=MemoryStore()).state
        self.changelog: list[Row] = []
        for n in range(rows):
            state.writer.counts.put((f"word-{n % 3}",), Count(n))
            ((key, value),) = state.changes()
            self.changelog.append(Row(n, key, value))
            state.clear()
        self.id = "id-1"
        self.at_a_time = 2
        self.watched: dict[Place, int] = {}
        self.stuck: set[Place] = set()

    def identity(self, topic: str) -> str:  # noqa: ARG002 - all have the one id
        return self.id

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return {place: len(self.changelog) if place == CHANGELOG else 0 for place in places}

    def watch(self, changelogs: Mapping[Place, int]) -> None:
        self.watched = dict(changelogs)

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:  # noqa: ARG002
        found, reached = {}, {}
        for place, offset in self.watched.items():
            if place in self.stuck:
                continue
            found[place] = self.changelog[offset : offset + min(self.at_a_time, rows_max)]
            reached[place] = self.watched[place] = offset + len(found[place])
        return found, reached


class Scene:
    """A shard to restore, whose store holds the first rows of the changelog and what they are said to stand for."""

    def __init__(self, meta: ShardMeta | None, *, rows: int = 5, restored: int = 3, **limits: Any) -> None:
        self.log = ChangelogLog(rows)
        self.store = MemoryStore()
        self.counters = Counters()
        self.shard = Shard(counting, 0, topology=TOPOLOGY, store=self.store)
        self.now_ms = NOW_MS
        limits = {"restore_slice_ms": 0} | limits
        self.restorer = Restorer(self.log, self.store, limits=Limits(**limits), counters=self.counters, crash=never)
        batch = Batch()
        self.shard.state.restore([(row.key, row.value) for row in self.log.changelog[:restored]], batch)
        if meta is not None:
            self.shard.state.stage(batch, meta)
        self.store.write(batch)
        self.shard.state.clear()

    def add(self) -> list[Shard]:
        return self.restorer.add([self.shard], lambda: self.now_ms)

    def step(self) -> list[Shard]:
        return self.restorer.step(lambda: self.now_ms, 0)

    def run(self) -> None:
        done = self.add()
        while not done:
            done = self.step()

    @property
    def counts(self) -> dict[str, int]:
        return {word: row.count for (word,), row in self.shard.reader.counts.prefix()}


ALL = {"word-0": 3, "word-1": 4, "word-2": 2}


def test_tables_that_stand_for_the_whole_changelog_need_nothing() -> None:
    scene = Scene(msgspec.structs.replace(META, changelog_offset=5), restored=5)

    assert scene.add() == [scene.shard]
    assert (scene.counts, scene.log.watched, scene.counters.restored_rows) == (ALL, {}, 0)


def test_tables_that_are_behind_read_on_from_their_offset() -> None:
    scene = Scene(META)

    assert scene.add() == []
    assert scene.log.watched == {CHANGELOG: 3}

    scene.run()
    assert (scene.counts, scene.counters.restored_rows, scene.counters.wipes) == (ALL, 2, 0)


UNTRUSTED = {
    "another topic of the same name": msgspec.structs.replace(META, changelog_id="id-0"),
    "as old as tombstones are kept": msgspec.structs.replace(META, saved_at_ms=NOW_MS - TOMBSTONE_MS),
    "of more than an hour in the future": msgspec.structs.replace(META, saved_at_ms=NOW_MS + 3_600_001),
    "older than tombstones are kept": msgspec.structs.replace(META, saved_at_ms=NOW_MS - TOMBSTONE_MS - 1),
}


@pytest.mark.parametrize("why", UNTRUSTED)
def test_tables_that_cannot_be_trusted_are_wiped_and_read_anew(why: str) -> None:
    scene = Scene(UNTRUSTED[why])
    scene.shard.writer.counts.put(("ghost",), Count(99))
    batch = Batch()
    scene.shard.state.stage(batch, UNTRUSTED[why])
    scene.store.write(batch)
    scene.shard.state.clear()

    assert scene.add() == []
    assert (scene.log.watched, scene.counts, scene.shard.state.meta()) == ({CHANGELOG: 0}, {}, None)

    scene.run()
    assert (scene.counts, scene.counters.restored_rows, scene.counters.wipes) == (ALL, 5, 1)


def test_a_changelog_that_ends_before_our_tables_is_refused_and_they_are_kept() -> None:
    scene = Scene(msgspec.structs.replace(META, changelog_offset=6))
    before = scene.counts

    assert (scene.add(), scene.restorer.doubts(scene.shard), bool(scene.restorer)) == ([], True, False)
    scene.now_ms += Limits().doubt_ms
    with pytest.raises(ChangelogShortened, match=r"reach offset 6, .* reported twice that it ends at 5"):
        scene.add()

    assert scene.counts == before


def test_a_leader_that_does_not_know_the_end_yet_is_asked_again() -> None:
    scene = Scene(META)
    whole, scene.log.changelog = scene.log.changelog, scene.log.changelog[:2]
    assert (scene.add(), scene.restorer.doubts(scene.shard)) == ([], True)

    scene.now_ms += Limits().doubt_ms
    scene.log.changelog = whole
    scene.run()

    assert (scene.counts, scene.counters.wipes, scene.restorer.doubts(scene.shard)) == (ALL, 0, False)


def test_another_answer_begins_the_pause_again() -> None:
    scene = Scene(msgspec.structs.replace(META, changelog_offset=9))
    for _ in range(3):
        assert (scene.add(), scene.restorer.doubts(scene.shard)) == ([], True)
        scene.now_ms += Limits().doubt_ms
        scene.log.changelog.pop()


def test_tables_just_younger_than_tombstones_are_trusted() -> None:
    scene = Scene(msgspec.structs.replace(META, saved_at_ms=NOW_MS - TOMBSTONE_MS + 1))

    scene.add()

    assert scene.log.watched == {CHANGELOG: 3}


def test_tables_of_a_clock_that_was_a_little_ahead_are_trusted() -> None:
    scene = Scene(msgspec.structs.replace(META, saved_at_ms=NOW_MS + 3_600_000))

    scene.add()

    assert scene.log.watched == {CHANGELOG: 3}


def test_tables_without_an_offset_are_wiped_and_read_anew() -> None:
    scene = Scene(None)

    scene.run()

    assert (scene.counts, scene.counters.restored_rows, scene.counters.wipes) == (ALL, 5, 0)


@pytest.mark.parametrize("stored", [b"", b"\x01garbage", b"\xc8of a later release"])
def test_tables_whose_offset_cannot_be_read_are_wiped_and_read_anew(stored: bytes) -> None:
    scene = Scene(META)
    batch = Batch()
    batch.put(b"counting\0\0\0\0\0_meta\0", stored)
    scene.store.write(batch)

    scene.run()

    assert (scene.counts, scene.counters.restored_rows) == (ALL, 5)


def test_wiping_leaves_other_shards_alone() -> None:
    scene = Scene(UNTRUSTED["another topic of the same name"])
    other = Shard(counting, 1, topology=TOPOLOGY, store=scene.store)
    other.writer.counts.put(("mine",), Count(1))
    batch = Batch()
    other.state.stage(batch, META)
    scene.store.write(batch)
    other.state.clear()

    scene.add()

    assert other.reader.counts.get(("mine",)) == Count(1)


def test_rows_that_were_deleted_are_deleted_again() -> None:
    scene = Scene(META)
    scene.log.changelog.append(Row(5, scene.log.changelog[0].key, None))

    scene.run()

    assert scene.counts == {"word-1": 4, "word-2": 2}


def test_an_offset_is_stored_with_every_slice_so_that_a_crash_costs_little() -> None:
    scene = Scene(None)
    scene.add()
    scene.step()

    meta = scene.shard.state.meta()

    assert meta is not None
    assert (meta.changelog_offset, meta.changelog_id, meta.saved_at_ms) == (2, "id-1", NOW_MS)


def test_a_slice_of_time_takes_as_much_as_it_can() -> None:
    scene = Scene(None, restore_slice_ms=50)
    scene.add()

    assert scene.step() == [scene.shard]


def test_a_limit_of_rows_is_kept() -> None:
    scene = Scene(None, restore_rows_max=1)
    scene.add()

    scene.step()

    assert scene.restorer.progress(NOW_MS)[0].rows == 1


def test_a_shard_that_is_no_longer_ours_is_not_restored_further() -> None:
    scene = Scene(None)
    scene.add()

    scene.restorer.drop([scene.shard])

    assert (bool(scene.restorer), scene.log.watched) == (False, {})
    assert scene.step() == []


def test_an_empty_changelog_needs_nothing() -> None:
    scene = Scene(None, rows=0, restored=0)

    assert scene.add() == [scene.shard]


# Dead owners --------------------------------------------------------------------------------------------------------


def test_a_changelog_that_a_dead_members_transaction_holds_is_freed_after_a_while() -> None:
    world = World(counting)
    world.publish("ticks", "a", tick("1"))
    world.run()
    world.start("two")
    world.share(among=["two"])
    dead = world.cluster.begin("one", world.cluster.epochs["one"])
    world.cluster.append(dead, Place("w.counting.changelog", 0), Entry(dead, b"half", b"done", None))
    world.members.pop("one")
    world.cluster.expel("one")
    world.share()

    stuck_ms = world.settings.limits.restore_stuck_ms
    world.step(5)
    assert (world.logs["two"].freed, world.members["two"].ready) == ([], False)

    world.now_ms += stuck_ms + 1
    world.run()

    assert world.logs["two"].freed == [("counting", [Place("w.ticks", 0)])]
    assert dead.outcome is Outcome.ABORTED
    assert world.members["two"].ready


def test_only_the_owners_of_the_changelog_that_is_stuck_are_fenced() -> None:
    scene = Scene(None, rows=40)
    stuck = Shard(counting, 1, topology=TOPOLOGY, store=scene.store)
    freed: list[tuple[str, list[Place]]] = []
    scene.log.free = lambda processor, places: freed.append((processor, list(places)))  # type: ignore[method-assign]
    scene.log.ends = lambda places: dict.fromkeys(places, 40)  # type: ignore[method-assign]
    scene.restorer.add([scene.shard, stuck], lambda: scene.now_ms)
    scene.log.stuck = {stuck.changelog}

    for _ in range(5):
        scene.now_ms += Limits().restore_stuck_ms // 4
        scene.step()

    assert freed == [("counting", [Place("proof.ticks", 1)])]


def test_an_owner_that_cannot_be_found_is_looked_for_again() -> None:
    scene = Scene(None)
    scene.add()
    scene.log.stuck = {CHANGELOG}
    asked: list[str] = []

    def refuse(processor: str, places: Sequence[Place]) -> None:
        asked.append(processor)
        raise CycleAborted("nobody knows")

    scene.log.free = refuse  # type: ignore[method-assign]

    for _ in range(3):
        scene.now_ms += Limits().restore_stuck_ms + 1
        scene.step()

    assert asked == ["counting"] * 3


# Progress -----------------------------------------------------------------------------------------------------------


def test_progress_tells_rows_rate_and_the_time_that_is_left() -> None:
    scene = Scene(None)
    scene.add()
    assert scene.restorer.progress(NOW_MS) == [Progress("counting-0", 0, 5, 0.0)]

    scene.now_ms += 500
    scene.step()

    (told,) = scene.restorer.progress(NOW_MS + 500)
    assert told == Progress("counting-0", 2, 3, 4.0)
    assert told.seconds_left == pytest.approx(0.75)
    assert (scene.counters.shards_restoring, scene.counters.restore_rows_left) == (1, 3)


def test_before_the_first_row_nobody_can_tell_how_long_it_takes() -> None:
    assert Progress("counting-0", 0, 5, 0.0).seconds_left == float("inf")


def test_when_all_is_restored_there_is_no_progress_to_tell() -> None:
    scene = Scene(None)

    scene.run()

    assert scene.restorer.progress(NOW_MS) == []
    assert (scene.counters.shards_restoring, scene.counters.restore_rows_left, scene.counters.restores) == (0, 0, 1)
