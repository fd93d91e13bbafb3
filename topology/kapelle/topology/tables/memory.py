"""A store in memory, for tests and simulations. It is made in a microsecond and forgets everything at the end."""

from collections.abc import Iterator
from typing import Self

from kapelle.topology.tables.ordered import Ordered
from kapelle.topology.tables.store import Batch


class MemoryStore:
    """A store whose writes are atomic and, since there is no disk, always synced."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: Ordered[bytes] = Ordered()

    def get(self, key: bytes, /) -> bytes | None:
        return self._rows.rows.get(key)

    def scan(self, start: bytes, end: bytes, /, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self._rows.scan(start, end, reverse=reverse)

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:  # noqa: ARG002  there is nothing to sync
        rows = self._rows
        for start, end in batch.ranges:
            for key, _ in list(rows.scan(start, end)):
                rows.remove(key)
        for key, value in batch.rows.items():
            if value is None:
                rows.remove(key)
            else:
                rows.put(key, value)

    def copy(self) -> Self:
        """What a process finds that starts after this one has crashed: the same content, and no scan under way."""
        other = type(self)()
        other._rows = Ordered(self._rows.rows.copy())
        return other

    def close(self) -> None:
        """Nothing to do: a store that is reopened after a clean stop is this one."""

    def __len__(self) -> int:
        return len(self._rows.rows)

    def __bool__(self) -> bool:
        return True  # an empty store is a store: `given or MemoryStore()` must take what is given
