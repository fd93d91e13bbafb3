"""A draft sees its own events, and nobody else does."""

from typing import Any

import pytest

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.topology.tables import MemoryStore
from tests.unit.tables.declared import Note, Shop, commit, shard

ORDERS = Stream("orders", (Note,))
selling: Processor[Shop] = Processor("shop", tables=Shop, inputs=[], events=Stream("shop-events", (Note,)))


@selling.applies(Note)
def noted(message: Message[Note], state: Shop) -> None:
    state.stock.put((message.value.text,), message.value)
    state.timers.set(message.key, message.value.text, 7)


def draft_over(*texts: str) -> tuple[Draft[Shop], Any]:
    store = MemoryStore()
    state = shard(store)
    for text in texts:
        state.writer.stock.put((text,), Note(text))
    commit(state, store)
    return Draft(selling, "k", state.reader), state


def test_a_draft_sees_what_it_has_emitted() -> None:
    draft, _ = draft_over("a")

    draft.emit(Note("b"))

    assert draft.state.stock.get(("b",)) == Note("b")
    assert draft.state.timers.due_at_ms("k", "b") == 7
    assert [key for key, _ in draft.state.stock.prefix()] == [("a",), ("b",)]


def test_the_tables_under_a_draft_stay_as_they_are() -> None:
    draft, state = draft_over("a")

    draft.emit(Note("b"))
    draft.state.stock.delete(("a",))
    draft.state.timers.cancel("k", "b")

    assert list(state.reader.stock.prefix()) == [(("a",), Note("a"))]
    assert state.reader.timers.due_at_ms("k", "b") is None
    assert state.changes() == []


def test_effects_come_in_the_order_in_which_they_were_decided() -> None:
    draft, _ = draft_over()

    draft.emit(Note("b"))
    draft.send(ORDERS, "other", Note("c"))
    draft.emit(Note("d"))

    assert draft.effects == [Emit(Note("b")), Send(ORDERS, "other", Note("c")), Emit(Note("d"))]


def test_the_first_row_of_a_draft_is_not_one_that_it_deleted() -> None:
    draft, _ = draft_over("a", "b")
    assert draft.state.stock.first() == (("a",), Note("a"))

    draft.state.stock.delete(("a",))

    assert draft.state.stock.first() == (("b",), Note("b"))


def test_a_draft_refuses_to_let_rows_expire() -> None:
    draft, _ = draft_over()

    with pytest.raises(NotImplementedError, match="without expiry"):
        draft.state.seen.drop_before(3)
