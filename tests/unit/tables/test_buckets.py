"""Dropped buckets are gone at once, swept away later in small steps, and do not come back."""

import pytest

from kapelle.topology.tables import Batch, MemoryStore, ShardState, Store
from kapelle.topology.tables.buckets import RANGE_ROWS_MIN
from tests.unit.tables.declared import META, Note, Shop, commit, shard

ROW = Note("row")


@pytest.fixture
def state(store: Store) -> ShardState[Shop]:
    """A shard that has seen one row in each of the buckets 0 to 9."""
    state = shard(store)
    for bucket in range(10):
        state.writer.seen.put((bucket, "x"), ROW)
    commit(state, store)
    return state


def buckets(state: ShardState[Shop]) -> list[int]:
    return [key[0] for key, _ in state.reader.seen.prefix()]


def stored(state: ShardState[Shop], store: Store) -> int:
    return len(list(store.scan(state.prefix + b"seen\0", state.prefix + b"seen\1")))


def test_dropped_rows_are_absent_from_every_read(state: ShardState[Shop]) -> None:
    state.writer.seen.drop_before(5)

    assert state.reader.seen.get((4, "x")) is None
    assert state.reader.seen.get((5, "x")) == ROW
    assert buckets(state) == [5, 6, 7, 8, 9]
    assert [key[0] for key, _ in state.writer.seen.range((2,), (7,), reverse=True)] == [6, 5]
    assert state.writer.seen.first() == ((5, "x"), ROW)
    assert list(state.reader.seen.prefix((4,))) == []


def test_dropping_writes_one_row_however_many_are_dropped(state: ShardState[Shop]) -> None:
    state.writer.seen.drop_before(9)

    assert [key for key, _ in state.changes()] == [b"_floors\0seen\0"]


def test_a_floor_never_sinks(state: ShardState[Shop]) -> None:
    state.writer.seen.drop_before(5)
    state.writer.seen.drop_before(3)

    assert buckets(state) == [5, 6, 7, 8, 9]


def test_a_put_below_the_floor_is_ignored(state: ShardState[Shop], store: Store) -> None:
    state.writer.seen.drop_before(5)
    state.writer.seen.put((4, "late"), ROW)
    state.writer.seen.delete((3, "late"))
    commit(state, store)

    assert state.reader.seen.get((4, "late")) is None
    assert stored(state, store) == 10


def test_rows_dropped_in_the_cycle_that_put_them_are_swept_too(store: Store) -> None:
    state = shard(store)
    state.writer.seen.put((1, "x"), ROW)
    state.writer.seen.drop_before(5)
    assert buckets(state) == []
    commit(state, store)

    assert state.sweep(10) == 1
    commit(state, store)

    assert stored(state, store) == 0


def test_a_floor_is_forgotten_with_the_changes_of_an_aborted_cycle(state: ShardState[Shop]) -> None:
    state.writer.seen.drop_before(5)
    state.sweep(3)

    state.clear()

    assert buckets(state) == list(range(10))
    assert state.sweep(3) == 0


def test_a_floor_survives_a_crash_and_the_sweep_goes_on(state: ShardState[Shop], store: Store) -> None:
    state.writer.seen.drop_before(8)
    assert state.sweep(3) == 3
    commit(state, store)
    state.sweep(3)  # the process ends before this is committed

    reopened = shard(store)
    assert buckets(reopened) == [8, 9]
    assert stored(reopened, store) == 7
    assert [reopened.sweep(3), reopened.sweep(3), reopened.sweep(3)] == [3, 2, 0]
    commit(reopened, store)
    assert stored(reopened, store) == 2


def test_swept_rows_are_deleted_from_the_changelog(state: ShardState[Shop], store: Store) -> None:
    state.writer.seen.drop_before(2)
    commit(state, store)

    state.sweep(10)

    bucket = b"seen\0\x80\0\0\0\0\0\0"
    assert state.changes() == [(bucket + b"\0x\0", None), (bucket + b"\1x\0", None)]


def test_a_sweep_of_many_rows_reaches_the_store_as_one_range(store: Store) -> None:
    state = shard(store)
    for number in range(RANGE_ROWS_MIN + 1):
        state.writer.seen.put((1, f"{number:04}"), ROW)
    state.writer.seen.put((2, "kept"), ROW)
    commit(state, store)
    state.writer.seen.drop_before(2)

    assert state.sweep(1000) == RANGE_ROWS_MIN + 1
    batch = Batch()
    state.stage(batch, META)
    store.write(batch)
    state.clear()

    assert len(batch.ranges) == 1
    assert len(batch.rows) == 2  # the floor and the meta row
    assert stored(state, store) == 1
    assert buckets(state) == [2]


def test_a_large_sweep_that_is_aborted_is_done_again(store: Store) -> None:
    state = shard(store)
    for number in range(2 * RANGE_ROWS_MIN):
        state.writer.seen.put((1, f"{number:04}"), ROW)
    state.writer.seen.drop_before(2)
    commit(state, store)

    state.sweep(RANGE_ROWS_MIN)
    state.clear()
    commit(state, store)
    assert stored(state, store) == 2 * RANGE_ROWS_MIN

    for _ in range(2):
        assert state.sweep(RANGE_ROWS_MIN) == RANGE_ROWS_MIN
        commit(state, store)
    assert stored(state, store) == 0


def test_a_sweep_of_few_rows_deletes_them_one_by_one(state: ShardState[Shop]) -> None:
    state.writer.seen.drop_before(5)
    state.sweep(10)
    batch = Batch()

    state.stage(batch, META)

    assert batch.ranges == []
    assert list(batch.rows.values()).count(None) == 5


def test_with_nothing_dropped_there_is_nothing_to_sweep(state: ShardState[Shop]) -> None:
    assert state.sweep(100) == 0
    assert not state.changed


def test_every_bucketed_table_has_a_floor_of_its_own() -> None:
    one, other = shard(MemoryStore(), 1), shard(MemoryStore(), 2)
    for state in (one, other):
        state.writer.seen.put((1, "x"), ROW)

    one.writer.seen.drop_before(5)

    assert buckets(one) == []
    assert buckets(other) == [1]
