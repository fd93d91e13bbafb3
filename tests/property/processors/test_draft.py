"""A draft over a table is the table as it would be: whatever is put, deleted and asked for."""

from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.draft import DraftTable
from kapelle.topology.tables import MemoryStore
from tests.unit.tables.declared import Note, commit, shard

KEYS = st.tuples(st.sampled_from(["", "a", "ab", "b", "é"]), st.integers(-2, 2))
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.sampled_from(["x", "y"])), max_size=12)
BOUNDS = st.one_of(KEYS, st.tuples(st.sampled_from(["", "a", "b", "é"])), st.just(()))


@given(below=CHANGES, above=CHANGES, bounds=st.tuples(BOUNDS, BOUNDS), reverse=st.booleans())
def test_a_draft_reads_like_the_table_with_its_changes(
    below: list[tuple[tuple[str, int], str | None]],
    above: list[tuple[tuple[str, int], str | None]],
    bounds: tuple[tuple[str | int, ...], tuple[str | int, ...]],
    reverse: bool,
) -> None:
    store = MemoryStore()
    state = shard(store)
    for key, text in below:
        _change(state.writer.queue, key, text)
    commit(state, store)
    draft = DraftTable(state.reader.queue)

    for key, text in above:
        _change(draft, key, text)
        _change(state.writer.queue, key, text)

    real, (start, end) = state.writer.queue, bounds
    assert list(draft.range(start, end, reverse=reverse)) == list(real.range(start, end, reverse=reverse))
    assert list(draft.prefix(start, reverse=reverse)) == list(real.prefix(start, reverse=reverse))
    assert draft.first(start) == real.first(start)
    for key, _ in below + above:
        assert draft.get(key) == real.get(key)


def _change(table: object, key: tuple[str, int], text: str | None) -> None:
    assert hasattr(table, "put")
    assert hasattr(table, "delete")
    if text is None:
        table.delete(key)
    else:
        table.put(key, Note(text))
