"""A decision that sees its own events: it is worked out on a draft of the tables, by the same `apply` functions.

    draft = Draft(processor, message.key, state)   # `decisions` makes it, for the decisions that need one
    draft.emit(StepChanged(…))            # noted as an effect, and applied to the draft
    draft.state.steps.get(…)              # sees it
    draft.send(TASKS, key, Task(…))
    return draft.effects

The tables of the processor itself stay as they are: a draft keeps its changes in dictionaries over them, and is thrown
away when the effects are handed out. So one decision can run through a whole cascade of transitions and still be a pure
function from state to effects. An `apply` that is used so must not look at the id of its message, which a draft cannot
know yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Generic, TypeVar

import msgspec

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.processors.tables import UNKNOWN, Key, Table, Tables, Timers
from kapelle.schemas.contract import Contract

S_co = TypeVar("S_co", bound=Tables, covariant=True)
K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)


class Draft(Generic[S_co]):
    """The effects of one decision so far, and the tables as they would be after them."""

    cause: str = ""  # the id of the message that is decided on
    trace: str | None = None  # what the message came with

    def __init__(self, processor: Processor[S_co], key: str, state: S_co) -> None:
        self.key = key
        self.effects: list[Effect] = []
        self._appliers = processor.appliers
        self.state: S_co = type(state).bind_lazily(
            lambda spec: DraftTable(getattr(state, spec.attribute)), DraftTimers(state.timers)
        )

    def emit(self, event: Contract) -> None:
        """Decide that this is now true."""
        self.effects.append(Emit(event))
        self._appliers[type(event)](Message(self.key, event, ""), self.state)

    def send(self, stream: Stream, key: str, value: Contract) -> None:
        """Decide to send a message to another key."""
        self.effects.append(Send(stream, key, value))


class DraftTable(msgspec.Struct, Generic[K, R], gc=False):
    """Changes over a table that is not touched."""

    _under: Table[K, R]
    _changes: dict[K, R | None] = {}  # None where a row is deleted
    # A decision reads the same few rows again and again, and nobody changes them meanwhile: each is looked up once.
    _known: dict[K, R | None] = {}

    def get(self, key: K, /) -> R | None:
        row = self._known.get(key, UNKNOWN)
        if row is UNKNOWN:
            row = self._known[key] = self._under.get(key)
        return row

    def put(self, key: K, row: R, /) -> None:
        self._changes[key] = self._known[key] = row

    def delete(self, key: K, /) -> None:
        self._changes[key] = self._known[key] = None

    def range(self, start: Key, end: Key, /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        mine = [(key, row) for key, row in self._changes.items() if start <= key < end]
        return self._merged(mine, self._under.range(start, end, reverse=reverse), reverse=reverse)

    def prefix(self, prefix: Key = (), /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        size = len(prefix)
        mine = [(key, row) for key, row in self._changes.items() if key[:size] == prefix]
        return self._merged(mine, self._under.prefix(prefix, reverse=reverse), reverse=reverse)

    def first(self, prefix: Key = (), /) -> tuple[K, R] | None:
        if not self._changes:
            return self._under.first(prefix)
        return next(self.prefix(prefix), None)

    def drop_before(self, bucket: int, /) -> None:
        raise NotImplementedError("Expected a draft without expiry: drop rows in the apply of an event by itself")

    def _merged(
        self, mine: list[tuple[K, R | None]], theirs: Iterator[tuple[K, R]], *, reverse: bool
    ) -> Iterator[tuple[K, R]]:
        if not mine:
            return theirs
        mine.sort(key=lambda entry: entry[0], reverse=reverse)
        untouched = (entry for entry in theirs if entry[0] not in self._changes)
        both = merge(mine, untouched, key=lambda entry: entry[0], reverse=reverse)
        return ((key, row) for key, row in both if row is not None)


class DraftTimers(msgspec.Struct, gc=False):
    """Timers that would be set or cancelled."""

    _under: Timers
    _changes: dict[tuple[str, str], int | None] = {}

    def set(self, key: str, name: str, due_at_ms: int, /) -> None:
        self._changes[key, name] = due_at_ms

    def cancel(self, key: str, name: str, /) -> None:
        self._changes[key, name] = None

    def due_at_ms(self, key: str, name: str, /) -> int | None:
        if (key, name) in self._changes:
            return self._changes[key, name]
        return self._under.due_at_ms(key, name)

    def ahead_ms(self) -> int:
        return self._under.ahead_ms()
