"""The timers of one shard: rows by key and name, and an index of them by the time that they are due."""

from itertools import islice
from typing import NoReturn

import msgspec

from kapelle.processors.errors import WriteInDecide
from kapelle.processors.tables import table
from kapelle.topology.tables.table import Place, WriteTable


class Armed(msgspec.Struct, frozen=True):
    """A timer that is set."""

    due_at_ms: int


class Due(msgspec.Struct, frozen=True):
    """An entry of the index. All that there is to know is in its key."""


TIMERS = table("_timers", key=tuple[str, str], row=Armed)
DUE = table("_due", key=tuple[int, str, str], row=Due)

_DUE = Due()


class TimerQueue:
    """What the runtime asks, and what the timers of `decide` and `apply` share."""

    def __init__(self, armed: Place[Armed], due: Place[Due]) -> None:
        self.armed: WriteTable[tuple[str, str], Armed] = WriteTable(armed)
        self._due: WriteTable[tuple[int, str, str], Due] = WriteTable(due)
        self._changes = armed.overlay
        self.ahead_ms = 0  # how far the time of the shard is ahead of the wall clock
        self._next_due_at_ms: int | None = None
        self._next_is_known = False

    def due(self, now_ms: int, limit: int) -> list[tuple[str, str, int]]:
        """Up to `limit` timers (key, name, due_at_ms) that are due at `now_ms`, earliest first."""
        timers = self._due.range((), (now_ms + 1,))
        return [(key, name, due_at_ms) for (due_at_ms, key, name), _ in islice(timers, limit)]

    def next_due_at_ms(self) -> int | None:
        if not self._next_is_known:
            first = self._due.first()
            self._next_due_at_ms = None if first is None else first[0][0]
            self._next_is_known = True
        return self._next_due_at_ms

    def set(self, key: str, name: str, due_at_ms: int) -> None:
        self._remove(key, name)
        self.armed.put((key, name), Armed(due_at_ms))
        self._due.put((due_at_ms, key, name), _DUE)
        if self._next_is_known and (self._next_due_at_ms is None or due_at_ms < self._next_due_at_ms):
            self._next_due_at_ms = due_at_ms

    def cancel(self, key: str, name: str) -> None:
        if self._remove(key, name):
            self.armed.delete((key, name))

    @property
    def changed(self) -> bool:
        """Whether timers were set or cancelled since the last commit."""
        return bool(self._changes.rows)

    def forget_changes(self) -> None:
        self._next_is_known = False

    def _remove(self, key: str, name: str) -> bool:
        """Take the timer out of the index, if it is set."""
        armed = self.armed.get((key, name))
        if armed is None:
            return False
        self._due.delete((armed.due_at_ms, key, name))
        if armed.due_at_ms == self._next_due_at_ms:
            self._next_is_known = False
        return True


class ReadTimers:
    """The timers as `decide` sees them."""

    def __init__(self, queue: TimerQueue) -> None:
        self._queue = queue

    def due_at_ms(self, key: str, name: str, /) -> int | None:
        armed = self._queue.armed.get((key, name))
        return None if armed is None else armed.due_at_ms

    def ahead_ms(self) -> int:
        return self._queue.ahead_ms

    def set(self, key: str, name: str, due_at_ms: int, /) -> None:  # noqa: ARG002
        _refuse("set")

    def cancel(self, key: str, name: str, /) -> None:  # noqa: ARG002
        _refuse("cancel")


class WriteTimers(ReadTimers):
    """The timers as `apply` sees them."""

    def set(self, key: str, name: str, due_at_ms: int, /) -> None:
        self._queue.set(key, name, due_at_ms)

    def cancel(self, key: str, name: str, /) -> None:
        self._queue.cancel(key, name)


def _refuse(operation: str) -> NoReturn:
    raise WriteInDecide("timers", operation)
