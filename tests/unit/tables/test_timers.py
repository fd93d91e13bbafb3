"""Timers come due in order, move, are cancelled, and survive commits, aborts and restores."""

import pytest

from kapelle.processors.errors import WriteInDecide
from kapelle.topology.tables import Batch, MemoryStore, ShardState, Store
from tests.unit.tables.declared import Shop, commit, shard


@pytest.fixture
def state(store: Store) -> ShardState[Shop]:
    """A shard with the stored timers a (100), b (200) and c (300)."""
    state = shard(store)
    for key, due_at_ms in (("c", 300), ("a", 100), ("b", 200)):
        state.writer.timers.set(key, "retry", due_at_ms)
    commit(state, store)
    return state


def due(state: ShardState[Shop], now_ms: int, limit: int = 10) -> list[str]:
    return [key for key, _, _ in state.due(now_ms, limit)]


def test_timers_come_due_in_the_order_of_their_times(state: ShardState[Shop]) -> None:
    state.writer.timers.set("d", "retry", 150)

    assert state.due(200, 10) == [("a", "retry", 100), ("d", "retry", 150), ("b", "retry", 200)]
    assert due(state, 99) == []
    assert due(state, 1_000, limit=2) == ["a", "d"]
    assert state.next_due_at_ms() == 100


def test_a_key_may_have_several_timers(state: ShardState[Shop]) -> None:
    state.writer.timers.set("a", "timeout", 50)

    assert state.due(100, 10) == [("a", "timeout", 50), ("a", "retry", 100)]


def test_setting_a_timer_anew_moves_it(state: ShardState[Shop]) -> None:
    state.writer.timers.set("a", "retry", 400)

    assert state.reader.timers.due_at_ms("a", "retry") == 400
    assert state.next_due_at_ms() == 200
    assert due(state, 1_000) == ["b", "c", "a"]


def test_a_cancelled_timer_is_gone(state: ShardState[Shop]) -> None:
    state.writer.timers.cancel("a", "retry")
    state.writer.timers.cancel("a", "retry")
    state.writer.timers.cancel("nobody", "ever")

    assert state.reader.timers.due_at_ms("a", "retry") is None
    assert state.next_due_at_ms() == 200
    assert due(state, 1_000) == ["b", "c"]


def test_the_next_time_follows_every_change(state: ShardState[Shop], store: Store) -> None:
    assert state.next_due_at_ms() == 100
    state.writer.timers.set("d", "retry", 50)
    assert state.next_due_at_ms() == 50
    state.writer.timers.set("d", "retry", 60)
    assert state.next_due_at_ms() == 60
    state.writer.timers.cancel("d", "retry")
    assert state.next_due_at_ms() == 100
    for key in "abc":
        state.writer.timers.cancel(key, "retry")
    assert state.next_due_at_ms() is None
    commit(state, store)
    assert state.next_due_at_ms() is None
    state.writer.timers.set("e", "retry", 20)
    assert state.next_due_at_ms() == 20


def test_an_abort_brings_the_stored_timers_back(state: ShardState[Shop]) -> None:
    state.writer.timers.cancel("a", "retry")
    state.writer.timers.set("b", "retry", 10)
    assert state.next_due_at_ms() == 10

    state.clear()

    assert state.next_due_at_ms() == 100
    assert due(state, 1_000) == ["a", "b", "c"]


def test_timers_are_found_after_a_restart_and_after_a_restore(state: ShardState[Shop], store: Store) -> None:
    state.writer.timers.cancel("a", "retry")
    state.writer.timers.set("d", "retry", 50)
    other = MemoryStore()
    restored = shard(other)
    assert restored.next_due_at_ms() is None
    batch = Batch()
    restored.restore(state.changes(), batch)
    other.write(batch)
    restored.clear()
    commit(state, store)

    assert shard(store).due(1_000, 10) == [("d", "retry", 50), ("b", "retry", 200), ("c", "retry", 300)]
    assert shard(store).next_due_at_ms() == 50
    assert restored.next_due_at_ms() == 50
    assert restored.due(1_000, 10) == [("d", "retry", 50)]


def test_a_timer_may_be_due_at_any_time_that_fits_in_64_bits() -> None:
    state = shard(MemoryStore())
    for key, due_at_ms in (("never", 2**63 - 1), ("long ago", -(2**63)), ("zero", 0)):
        state.writer.timers.set(key, "n", due_at_ms)

    assert state.next_due_at_ms() == -(2**63)
    assert due(state, 2**63 - 2) == ["long ago", "zero"]


def test_decide_reads_timers_but_sets_and_cancels_none(state: ShardState[Shop]) -> None:
    assert state.reader.timers.due_at_ms("a", "retry") == 100

    with pytest.raises(WriteInDecide, match=r"set\(\)"):
        state.reader.timers.set("a", "retry", 1)
    with pytest.raises(WriteInDecide, match=r"cancel\(\)"):
        state.reader.timers.cancel("a", "retry")

    assert not state.changed
