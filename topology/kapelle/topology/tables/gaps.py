"""Ranges of keys that are known to be empty, so that a scan can skip them.

Deleted rows stay in a store for a while, and a scan crawls over them. A queue is deleted from just where it is read, so
every look at its head would crawl over all that was ever taken from it: after 50,000 rows that takes 7 ms. Whoever
scans therefore notes how far there was nothing, and begins there the next time.
"""

from bisect import bisect_right
from typing import Final

GAPS_MAX: Final = 1_000


class Gaps:
    """Disjoint stretches [start, end) without rows. Forgetting one is always right, so a full list begins anew."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[bytes] = []
        self._ends: list[bytes] = []

    def past(self, key: bytes) -> bytes:
        """The first key from `key` on that may have a row."""
        place = bisect_right(self._starts, key) - 1
        return self._ends[place] if place >= 0 and self._ends[place] > key else key

    def add(self, start: bytes, end: bytes) -> None:
        """Note that there is no row from `start` (included) to `end` (excluded)."""
        if start >= end:
            return
        starts, ends = self._starts, self._ends
        place = bisect_right(starts, start) - 1
        if place >= 0 and ends[place] >= start:
            if ends[place] >= end:
                return
            ends[place] = end
        else:
            if len(starts) >= GAPS_MAX:
                self.clear()
                place = -1
            place += 1
            starts.insert(place, start)
            ends.insert(place, end)
        while place + 1 < len(starts) and starts[place + 1] <= end:
            ends[place] = max(end, ends[place + 1])
            del starts[place + 1], ends[place + 1]

    def cut(self, key: bytes) -> None:
        """Note that there may be a row at `key`."""
        place = bisect_right(self._starts, key) - 1
        if place >= 0 and self._ends[place] > key:
            self._ends[place] = key

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()
