"""The tables that `apply` is handed while history is folded: rows stay what they are until they are written.

A member encodes each row as it is put, because it answers for every event. Who folds the past asks for the rows at the
end only, and most of them were put several times by then. So rows and timers are kept by their keys, and those that
have changed are put into the tables of the shard once:

1. before `write`, when all of them are forgotten here;
2. before anything but a look at one key, which the tables of the shard answer.

Tables that forget by the bucket are not kept: what is put below their floor is not there, and only they know.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import msgspec

from kapelle.processors.tables import Key, Table, Tables, TableSpec, Timers

K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)
S = TypeVar("S", bound=Tables)


class _Unknown(Enum):
    """In place of a row or a time that was not looked up yet."""

    UNKNOWN = "unknown"


_UNKNOWN: Final = _Unknown.UNKNOWN
_encoded: Final = msgspec.msgpack.Encoder().encode


class Kept(Generic[S]):
    """All tables and timers of a shard. At first the store has nothing of it, so what is not kept is not there."""

    def __init__(self, tables: type[S], inner: S) -> None:
        self._inner = inner
        self._tables: list[KeptTable[Any, Any]] = []
        self._timers = KeptTimers(inner.timers)
        self.writer: S = tables.bind(self._open, self._timers)

    @property
    def rows(self) -> int:
        """How many rows and timers are kept."""
        return len(self._timers) + sum(len(table) for table in self._tables)

    @property
    def found_bytes(self) -> int:
        """How large the rows are that were read from the store since the last `clear`."""
        return sum(table.found_bytes for table in self._tables)

    def settle(self) -> None:
        """Put what has changed into the tables of the shard."""
        for table in self._tables:
            table.settle()
        self._timers.settle()

    def clear(self) -> None:
        """Forget all of it: it was written, or is not to be."""
        for table in self._tables:
            table.clear()
        self._timers.clear()

    def _open(self, spec: TableSpec[K, R]) -> Table[K, R]:
        inner: Table[K, R] = getattr(self._inner, spec.attribute)
        if spec.bucketed:
            return inner
        kept = KeptTable(inner)
        self._tables.append(kept)
        return kept


class KeptTable(Generic[K, R]):
    """One table. None stands for a row that is not there."""

    def __init__(self, inner: Table[K, R]) -> None:
        self._inner = inner
        self._rows: dict[K, R | None] = {}
        self._changed: set[K] = set()
        self._holds_all = True
        self.found_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: K, /) -> R | None:
        row = self._rows.get(key, _UNKNOWN)
        return self._found(key) if row is _UNKNOWN else row

    def put(self, key: K, row: R, /) -> None:
        self._rows[key] = row
        self._changed.add(key)

    def delete(self, key: K, /) -> None:
        self._rows[key] = None
        self._changed.add(key)

    def range(self, start: Key, end: Key, /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        self.settle()
        return self._inner.range(start, end, reverse=reverse)

    def prefix(self, prefix: Key = (), /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        self.settle()
        return self._inner.prefix(prefix, reverse=reverse)

    def first(self, prefix: Key = (), /) -> tuple[K, R] | None:
        self.settle()
        return self._inner.first(prefix)

    def drop_before(self, bucket: int, /) -> None:
        self._inner.drop_before(bucket)  # which refuses: this table has none

    def settle(self) -> None:
        put, delete, rows = self._inner.put, self._inner.delete, self._rows
        for key in self._changed:
            row = rows[key]
            if row is None:
                delete(key)
            else:
                put(key, row)
        self._changed.clear()

    def clear(self) -> None:
        self._rows.clear()
        self._changed.clear()
        self._holds_all = False
        self.found_bytes = 0

    def _found(self, key: K) -> R | None:
        if self._holds_all:
            return None
        row = self._rows[key] = self._inner.get(key)
        if row is not None:
            self.found_bytes += len(_encoded(row))
        return row


class KeptTimers:
    """The timers: when each is due, None for one that is not set."""

    def __init__(self, inner: Timers) -> None:
        self._inner = inner
        self._due: dict[tuple[str, str], int | None] = {}

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: str, name: str, due_at_ms: int, /) -> None:
        self._due[key, name] = due_at_ms

    def cancel(self, key: str, name: str, /) -> None:
        self._due[key, name] = None

    def due_at_ms(self, key: str, name: str, /) -> int | None:
        due_at_ms = self._due.get((key, name), _UNKNOWN)
        return self._inner.due_at_ms(key, name) if due_at_ms is _UNKNOWN else due_at_ms

    def ahead_ms(self) -> int:
        return self._inner.ahead_ms()

    def settle(self) -> None:
        for (key, name), due_at_ms in self._due.items():
            if due_at_ms is None:
                self._inner.cancel(key, name)
            else:
                self._inner.set(key, name, due_at_ms)
        self._due.clear()

    def clear(self) -> None:
        self._due.clear()
