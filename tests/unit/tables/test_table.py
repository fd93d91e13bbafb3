"""Typed tables: what `apply` can do, what `decide` may not, and how errors name the place."""

from collections.abc import Callable
from typing import Any

import pytest

from kapelle.processors.errors import WriteInDecide
from kapelle.topology.tables import Batch, MemoryStore, NotBucketed, RowCorrupt, RowVersionUnknown, ShardState, Store
from tests.unit.tables.declared import Note, Shop, commit, shard

ROW = Note("row")


@pytest.fixture
def state(store: Store) -> ShardState[Shop]:
    """A shard whose queue has rows, stored ones and changed ones in turns."""
    state = shard(store)
    for number in (1, 3, 5):
        state.writer.queue.put(("a", number), Note("stored"))
        state.writer.queue.put(("b", number), Note("stored"))
    commit(state, store)
    for number in (2, 4):
        state.writer.queue.put(("a", number), Note("changed"))
    return state


def test_a_row_is_read_as_it_was_put(state: ShardState[Shop]) -> None:
    assert state.reader.queue.get(("a", 1)) == Note("stored")
    assert state.reader.queue.get(("a", 2)) == Note("changed")
    assert state.reader.queue.get(("a", 6)) is None


def test_the_reader_sees_what_the_writer_has_just_done(state: ShardState[Shop]) -> None:
    state.writer.queue.put(("a", 1), Note("again"))
    state.writer.queue.delete(("a", 2))

    assert state.reader.queue.get(("a", 1)) == Note("again")
    assert state.reader.queue.get(("a", 2)) is None


def test_a_prefix_has_all_rows_that_begin_with_it(state: ShardState[Shop]) -> None:
    assert [key for key, _ in state.reader.queue.prefix(("a",))] == [("a", n) for n in (1, 2, 3, 4, 5)]
    assert [key for key, _ in state.reader.queue.prefix(("b",), reverse=True)] == [("b", n) for n in (5, 3, 1)]
    assert len(list(state.reader.queue.prefix())) == 8
    assert [key for key, _ in state.reader.queue.prefix(("a", 3))] == [("a", 3)]
    assert list(state.reader.queue.prefix(("",))) == []


def test_a_range_may_have_short_bounds(state: ShardState[Shop]) -> None:
    queue = state.reader.queue

    assert [key for key, _ in queue.range(("a", 2), ("a", 4))] == [("a", 2), ("a", 3)]
    assert [key for key, _ in queue.range(("a", 4), ("b",))] == [("a", 4), ("a", 5)]
    assert [key for key, _ in queue.range((), ("a", 3), reverse=True)] == [("a", 2), ("a", 1)]
    assert list(queue.range(("b",), ("a",))) == []


def test_the_first_row_of_a_prefix_is_found(state: ShardState[Shop]) -> None:
    assert state.reader.queue.first(("b",)) == (("b", 1), Note("stored"))
    assert state.reader.queue.first() == (("a", 1), Note("stored"))
    assert state.reader.queue.first(("c",)) is None


def test_tables_whose_names_begin_alike_do_not_mix(state: ShardState[Shop]) -> None:
    state.writer.stock.put(("queue",), ROW)
    state.writer.blobs.put((b"\xff\xff",), ROW)

    assert [key for key, _ in state.reader.stock.prefix()] == [("queue",)]
    assert [key for key, _ in state.reader.blobs.prefix()] == [(b"\xff\xff",)]


def test_a_walk_may_delete_and_move_the_rows_that_it_meets(state: ShardState[Shop]) -> None:
    met = []
    for (name, number), row in state.writer.queue.prefix(("a",)):
        met.append(number)
        state.writer.queue.delete((name, number))
        state.writer.queue.put((name, number + 10), row)

    assert met == [1, 2, 3, 4, 5]
    assert [key[1] for key, _ in state.reader.queue.prefix(("a",))] == [11, 12, 13, 14, 15]


def test_a_walk_that_is_left_early_costs_later_writes_nothing(state: ShardState[Shop]) -> None:
    for _ in state.writer.queue.prefix():
        break
    rows = state.writer.queue._overlay.rows  # type: ignore[attr-defined]

    state.writer.queue.put(("z", 1), ROW)

    assert state.writer.queue._overlay.rows is rows  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("put", lambda tables: tables.stock.put(("a",), ROW)),
        ("delete", lambda tables: tables.stock.delete(("a",))),
        ("drop_before", lambda tables: tables.stock.drop_before(1)),
    ],
)
def test_decide_cannot_write_a_table(operation: str, write: Callable[[Any], None]) -> None:
    state = shard(MemoryStore())

    with pytest.raises(WriteInDecide) as refused:
        write(state.reader)

    assert (refused.value.table, refused.value.operation) == ("stock", operation)
    assert not state.changed


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        ("put", lambda tables: tables.seen.put((1, "a"), ROW)),
        ("delete", lambda tables: tables.seen.delete((1, "a"))),
        ("drop_before", lambda tables: tables.seen.drop_before(1)),
    ],
)
def test_decide_cannot_write_a_bucketed_table(operation: str, write: Callable[[Any], None]) -> None:
    state = shard(MemoryStore())

    with pytest.raises(WriteInDecide, match=operation):
        write(state.reader)

    assert not state.changed


def test_only_a_bucketed_table_drops_buckets() -> None:
    with pytest.raises(NotBucketed, match="'stock' is not"):
        shard(MemoryStore()).writer.stock.drop_before(1)


def test_a_corrupt_row_is_named_by_table_and_key(store: Store) -> None:
    state = shard(store)
    batch = Batch()
    batch.put(state.prefix + b"stock\0apple\0", b"\1\xc1")
    store.write(batch)

    with pytest.raises(RowCorrupt) as by_get:
        state.reader.stock.get(("apple",))
    with pytest.raises(RowCorrupt) as by_scan:
        list(state.reader.stock.prefix())

    for error in (by_get.value, by_scan.value):
        assert (error.table, error.key, error.version) == ("stock", ("apple",), 1)


def test_a_row_of_a_newer_release_is_named_by_table_key_and_version(store: Store) -> None:
    state = shard(store)
    batch = Batch()
    batch.put(state.prefix + b"stock\0apple\0", b"\x09\x80")
    store.write(batch)

    with pytest.raises(RowVersionUnknown) as refused:
        state.reader.stock.first()

    assert (refused.value.table, refused.value.key, refused.value.version) == ("stock", ("apple",), 9)
