"""The changes of one table since the last commit, read together with what is stored below them."""

from collections.abc import Iterator
from typing import Final

from kapelle.topology.tables.ordered import Ordered
from kapelle.topology.tables.store import Store

UNCHANGED: Final = b"unchanged"  # compared by identity: no stored value is this object
ENTRY_BYTES: Final = 160  # what Python adds to a changed row: two objects and their place in the dictionary

Pair = tuple[bytes, bytes]


class Overlay(Ordered[bytes | None]):
    """Changed keys with their last values; None is a deletion. What is not changed is read from the store.

    `size_bytes` is what the changes take in memory, so that a cycle can be ended before it takes too much.
    """

    __slots__ = ("size_bytes", "store")

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.size_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        value = self.rows.get(key, UNCHANGED)
        return self.store.get(key) if value is UNCHANGED else value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Change a key; None deletes it. A deletion is kept even if nothing is stored: the changelog may have it."""
        if self._scans:
            self._leave_to_scans()
        old = self.rows.get(key, UNCHANGED)
        if old is UNCHANGED:
            self.size_bytes += ENTRY_BYTES + len(key)
            if self._keys is not None:
                self._added.append(key)
        elif old is not None:
            self.size_bytes -= len(old)
        if value is not None:
            self.size_bytes += len(value)
        self.rows[key] = value

    def clear(self) -> None:
        super().clear()
        self.size_bytes = 0

    def read(self, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        """The rows from `start` (included) to `end` (excluded) as they are now, changes included."""
        stored = self.store.scan(start, end, reverse=reverse)
        if not self.rows:
            return stored
        return _merged(self.scan(start, end, reverse=reverse), stored, reverse=reverse)


def _merged(changed: Iterator[tuple[bytes, bytes | None]], stored: Iterator[Pair], *, reverse: bool) -> Iterator[Pair]:
    """Both in order. Where both have a key, the change counts."""
    change = next(changed, None)
    for pair in stored:
        key = pair[0]
        while change is not None and (change[0] > key if reverse else change[0] < key):
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changed, None)
        if change is None:
            yield pair
            yield from stored
            return
        if change[0] != key:
            yield pair
        elif change[1] is not None:
            yield key, change[1]
            change = next(changed, None)
        else:
            change = next(changed, None)
    while change is not None:
        if change[1] is not None:
            yield change[0], change[1]
        change = next(changed, None)
