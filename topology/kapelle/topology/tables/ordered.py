"""A map of bytes that is a plain dictionary until somebody scans it, and keeps its keys sorted from then on."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Final, Generic, TypeVar

V = TypeVar("V")

_INSORT_MAX: Final = 16  # more new keys than this are sorted in together


class Ordered(Generic[V]):
    """A sorted map. A scan sees it as it was when the scan began.

    `rows` may be read by anyone, but is replaced when a write meets a scan under way: fetch it anew for every use.
    """

    __slots__ = ("_added", "_keys", "_scans", "rows")

    def __init__(self, rows: dict[bytes, V] | None = None) -> None:
        self.rows: dict[bytes, V] = {} if rows is None else rows
        self._keys: list[bytes] | None = None
        self._added: list[bytes] = []
        self._scans = 0

    def put(self, key: bytes, value: V) -> None:
        if self._scans:
            self._leave_to_scans()
        if self._keys is not None and key not in self.rows:
            self._added.append(key)
        self.rows[key] = value

    def remove(self, key: bytes) -> None:
        """Forget the key, if it is there."""
        if key in self.rows:
            if self._scans:
                self._leave_to_scans()
            del self.rows[key]
            if self._keys is not None:
                keys = self._sorted()
                del keys[bisect_left(keys, key)]

    def clear(self) -> None:
        # New ones, so that a scan under way keeps what it began with.
        self.rows = {}
        self._keys = None
        self._added = []
        self._scans = 0

    def scan(self, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, V]]:
        keys = self._sorted()
        low, high = bisect_left(keys, start), bisect_left(keys, end)
        if low >= high:
            return iter(())
        self._scans += 1
        return self._walk(range(high - 1, low - 1, -1) if reverse else range(low, high), keys, self.rows)

    def _walk(self, places: Sequence[int], keys: list[bytes], rows: dict[bytes, V]) -> Iterator[tuple[bytes, V]]:
        try:
            for place in places:
                key = keys[place]
                yield key, rows[key]
        finally:
            if rows is self.rows:
                self._scans -= 1

    def _leave_to_scans(self) -> None:
        """Go on with copies. A scan that was dropped before its first row still counts: that costs one copy."""
        self.rows = self.rows.copy()
        self._keys = None if self._keys is None else self._keys.copy()
        self._scans = 0

    def _sorted(self) -> list[bytes]:
        if self._keys is None:
            self._keys = sorted(self.rows)
            self._added = []
        elif self._added:
            # No scan walks these keys now: the write that added the first of them left the old ones to it.
            if len(self._added) > _INSORT_MAX:
                self._keys += self._added
                self._keys.sort()
            else:
                for key in self._added:
                    insort(self._keys, key)
            self._added = []
        return self._keys
