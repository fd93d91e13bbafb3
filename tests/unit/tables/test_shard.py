"""A shard: what goes to the changelog and the store, what comes back, and which declarations are refused."""

from typing import Any

import msgspec
import pytest

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.processors.tables import RowForm, Tables, table
from kapelle.topology.tables import Batch, MemoryStore, ShardMeta, ShardState, Store
from kapelle.topology.tables.table import KNOWN_BYTES_MAX
from tests.unit.tables.declared import META, SHOP, Note, Shop, commit, shard

ROW = Note("row")


class OldNote(msgspec.Struct, frozen=True):
    words: str


class Counts(msgspec.Struct, frozen=True):
    by_name: dict[str, int]


def processor(tables: type[Tables], name: str = "shop") -> Processor[Any]:
    return Processor(name, tables=tables, inputs=[], events=Stream("events", (Note,)))


def declared(**attributes: Any) -> type[Tables]:
    return type("Declared", (Tables,), attributes)


def test_changes_are_the_last_values_without_the_prefix_of_the_shard(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("b",), ROW)
    commit(state, store)
    state.writer.stock.put(("a",), Note("first"))
    state.writer.stock.put(("a",), Note("last"))
    state.writer.stock.delete(("b",))

    assert state.changes() == [(b"stock\0a\0", b"\x01\x81\xa4text\xa4last"), (b"stock\0b\0", None)]


def test_rows_that_came_and_went_between_two_commits_are_no_changes(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("kept",), ROW)
    for name in ("a", "b", "z"):
        state.writer.stock.put((name,), ROW)
        assert state.reader.stock.first() is not None
        state.writer.stock.delete((name,))

    assert [key for key, _ in state.changes()] == [b"stock\0kept\0"]
    assert list(state.reader.stock.prefix()) == [(("kept",), ROW)]
    commit(state, store)
    assert list(state.reader.stock.prefix()) == [(("kept",), ROW)]


def test_a_row_that_is_stored_and_changed_before_it_is_deleted_is_a_change(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("a",), ROW)
    commit(state, store)
    state.writer.stock.put(("a",), Note("other"))
    state.writer.stock.delete(("a",))
    state.writer.stock.put(("b",), ROW)
    state.writer.stock.delete(("b",))
    state.writer.stock.put(("b",), ROW)

    assert dict(state.changes()) == {b"stock\0a\0": None, b"stock\0b\0": b"\x01\x81\xa4text\xa3row"}


def test_rows_are_stored_where_they_always_were(store: Store) -> None:
    state = shard(store, 258)
    state.writer.queue.put(("a", 1), ROW)
    commit(state, store)

    stored = dict(store.scan(b"", b"\xff"))
    assert stored[b"shop\0\0\0\1\2queue\0a\0\x80\0\0\0\0\0\0\1"] == b"\x01\x81\xa4text\xa3row"
    assert set(stored) == {b"shop\0\0\0\1\2queue\0a\0\x80\0\0\0\0\0\0\1", b"shop\0\0\0\1\2_meta\0"}


def test_what_was_committed_is_there_after_a_restart(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("a",), ROW)
    commit(state, store)
    state.writer.stock.put(("b",), ROW)

    reopened = shard(store)

    assert list(reopened.rows()) == [("stock", ("a",), ROW)]


def test_the_meta_row_is_written_with_the_changes_and_is_no_change_itself(store: Store) -> None:
    state = shard(store)
    assert state.meta() is None

    state.writer.stock.put(("a",), ROW)
    commit(state, store, META)

    assert state.meta() == META
    assert state.changes() == []
    later = ShardMeta(changelog_offset=8, saved_at_ms=2_000, changelog_id="abc", positions={})
    commit(state, store, later)
    assert shard(store).meta() == later


def test_size_and_changed_tell_what_a_commit_would_write() -> None:
    store = MemoryStore()
    state = shard(store)
    assert (state.size_bytes, state.changed) == (0, False)

    state.writer.stock.put(("a",), Note("x" * 1_000))
    assert 1_000 < state.size_bytes < 1_500
    assert state.changed
    state.writer.timers.set("k", "n", 1)
    with_timer = state.size_bytes
    assert with_timer > 1_200

    commit(state, store)
    assert (state.size_bytes, state.changed) == (0, False)


def test_an_abort_forgets_the_changes(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("a",), ROW)
    commit(state, store)
    state.writer.stock.delete(("a",))
    state.writer.stock.put(("b",), ROW)

    state.clear()

    assert list(state.rows()) == [("stock", ("a",), ROW)]


def test_shards_in_one_store_do_not_see_each_other(store: Store) -> None:
    other = Processor("shop2", tables=Shop, inputs=[], events=SHOP.events)
    states = [shard(store, 0), shard(store, 1), shard(store, 256), ShardState(other, 0, store)]
    batch = Batch()
    for number, state in enumerate(states):
        state.writer.stock.put(("a",), Note(str(number)))
        state.stage(batch, META)
    store.write(batch)
    for state in states:
        state.clear()

    assert [list(state.rows()) for state in states] == [[("stock", ("a",), Note(str(n)))] for n in range(4)]


def test_wiping_a_shard_leaves_its_neighbours_alone(store: Store) -> None:
    one, other = shard(store, 0), shard(store, 1)
    for state in (one, other):
        state.writer.stock.put(("a",), ROW)
        state.writer.timers.set("k", "n", 5)
        commit(state, store)

    batch = Batch()
    one.wipe(batch)
    store.write(batch)
    one.clear()

    assert (list(one.rows()), one.meta(), one.next_due_at_ms()) == ([], None, None)
    assert len(list(other.rows())) == 2
    assert other.meta() == META


def test_a_shard_restored_from_its_changelog_equals_the_one_that_wrote_it(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("a",), ROW)
    state.writer.stock.put(("b",), ROW)
    state.writer.seen.put((1, "x"), ROW)
    state.writer.timers.set("k", "n", 5)
    changelog = state.changes()
    commit(state, store)
    state.writer.stock.delete(("b",))
    state.writer.seen.drop_before(1)
    changelog += state.changes()
    commit(state, store)

    other = MemoryStore()
    restored = shard(other, 7)
    batch = Batch()
    restored.restore(changelog, batch)
    other.write(batch)
    restored.clear()

    assert list(restored.rows()) == list(state.rows())
    assert restored.fingerprint() == state.fingerprint()


def test_restoring_again_over_what_is_there_changes_nothing(store: Store) -> None:
    state = shard(store)
    state.writer.stock.put(("a",), ROW)
    changelog = state.changes()
    commit(state, store)
    before = state.fingerprint()

    for _ in range(2):
        batch = Batch()
        state.restore(changelog, batch)
        store.write(batch)
        state.clear()

    assert state.fingerprint() == before


def test_fingerprints_tell_rows_apart_and_nothing_else() -> None:
    store = MemoryStore()
    straight, winding = shard(store, 0), shard(store, 1)
    straight.writer.stock.put(("a",), ROW)
    winding.writer.stock.put(("b",), ROW)
    commit(winding, store)
    winding.writer.stock.delete(("b",))
    winding.writer.stock.put(("a",), Note("other"))
    assert straight.fingerprint() != winding.fingerprint()

    winding.writer.stock.put(("a",), ROW)
    assert straight.fingerprint() == winding.fingerprint()

    winding.writer.timers.set("k", "n", 1)
    assert straight.fingerprint() != winding.fingerprint()


def test_a_row_of_an_older_version_has_the_fingerprint_of_its_upgrade() -> None:
    old = declared(notes=table("notes", key=tuple[str], row=OldNote))
    form = RowForm(version=2, upgrades={1: (OldNote, lambda row: Note(row.words))})
    new = declared(notes=table("notes", key=tuple[str], row=Note, form=form))
    store, fresh = MemoryStore(), MemoryStore()
    before: ShardState[Any] = ShardState(processor(old), 0, store)
    before.writer.notes.put(("a",), OldNote("hello"))
    commit(before, store)

    upgraded: ShardState[Any] = ShardState(processor(new), 0, store)
    written: ShardState[Any] = ShardState(processor(new), 0, fresh)
    written.writer.notes.put(("a",), Note("hello"))

    assert upgraded.reader.notes.get(("a",)) == Note("hello")
    assert upgraded.fingerprint() == written.fingerprint()


@pytest.mark.parametrize("name", ["", "_meta", "_x", "a\0b", "1a", "a b", "a/b", "é"])
def test_a_table_name_that_cannot_stand_in_a_key_is_refused(name: str) -> None:
    with pytest.raises(BadDeclaration, match="name of a table"):
        ShardState(processor(declared(notes=table(name, key=tuple[str], row=Note))), 0, MemoryStore())


@pytest.mark.parametrize("name", ["", "a\0b", "_a"])
def test_a_processor_name_that_cannot_stand_in_a_key_is_refused(name: str) -> None:
    with pytest.raises(BadDeclaration, match="name of a processor"):
        ShardState(processor(Shop, name), 0, MemoryStore())


def test_two_tables_of_one_name_are_refused() -> None:
    tables = declared(one=table("notes", key=tuple[str], row=Note), two=table("notes", key=tuple[int], row=Note))

    with pytest.raises(BadDeclaration, match=r"name of its own, but found \['notes'\]"):
        ShardState(processor(tables), 0, MemoryStore())


def test_a_table_in_the_place_of_the_timers_is_refused() -> None:
    with pytest.raises(BadDeclaration, match="attribute timers of Declared to stay free"):
        ShardState(processor(declared(timers=table("t", key=tuple[str], row=Note))), 0, MemoryStore())


@pytest.mark.parametrize("key", [tuple[str, int], tuple[()]])
def test_a_bucketed_table_whose_key_begins_with_no_integer_is_refused(key: Any) -> None:
    tables = declared(seen=table("seen", key=key, row=Note, bucketed=True))

    with pytest.raises(BadDeclaration, match="bucketed table 'seen' to begin with an int"):
        ShardState(processor(tables), 0, MemoryStore())


def test_a_table_of_one_row_has_the_empty_key() -> None:
    state: ShardState[Any] = ShardState(
        processor(declared(total=table("total", key=tuple[()], row=Note))), 0, MemoryStore()
    )

    state.writer.total.put((), ROW)

    assert state.reader.total.get(()) == ROW
    assert state.reader.total.first() == ((), ROW)


def test_a_row_that_was_read_is_read_anew_after_a_write_an_abort_and_a_restore(store: Store) -> None:
    state = shard(store)
    assert state.reader.stock.get(("a",)) is None

    state.writer.stock.put(("a",), Note("first"))
    assert state.reader.stock.get(("a",)) == Note("first")
    state.clear()
    assert state.reader.stock.get(("a",)) is None

    batch = Batch()
    state.restore([(b"stock\0a\0", b"\x01\x81\xa4text\xa8restored")], batch)
    store.write(batch)
    assert state.reader.stock.get(("a",)) == Note("restored")
    state.writer.stock.delete(("a",))
    assert state.reader.stock.get(("a",)) is None


def test_a_row_with_a_dictionary_is_read_in_the_order_in_which_it_is_stored(store: Store) -> None:
    state = ShardState(processor(declared(counts=table("counts", key=tuple[str], row=Counts))), 0, store)
    tables: Any = state.writer
    tables.counts.put(("a",), Counts({"b": 1, "a": 2}))

    assert list(tables.counts.get(("a",)).by_name) == ["a", "b"]
    assert tables.counts.get(("a",)) is tables.counts.get(("a",))


def test_what_was_read_is_forgotten_when_it_takes_too_much(store: Store) -> None:
    state = shard(store)
    long = Note("x" * (KNOWN_BYTES_MAX // 8))
    for number in range(20):
        state.writer.stock.put((str(number),), long)
        commit(state, store)

    read = [state.reader.stock.get((str(number),)) for number in range(20)]

    assert read == [long] * 20
    assert state.reader.stock.get(("19",)) is read[19]
    assert state.reader.stock.get(("0",)) is not read[0]
