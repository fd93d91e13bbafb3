"""The changes of one table since the last commit, read together with what is stored below them."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from kapelle.topology.tables.gaps import Gaps
from kapelle.topology.tables.ordered import Ordered
from kapelle.topology.tables.store import Store

UNCHANGED: Final = b"unchanged"  # compared by identity: no stored value is this object
ENTRY_BYTES: Final = 160  # what Python adds to a changed row: two objects and their place in the dictionary

Change = tuple[bytes, bytes | None]
Pair = tuple[bytes, bytes]


class Overlay(Ordered[bytes | None]):
    """Changed keys with their last values; None is a deletion. What is not changed is read from the store.

    `size_bytes` is what the changes take in memory, so that a cycle can be ended before it takes too much.
    """

    __slots__ = ("_fleeting", "_gaps", "_has_gaps", "_stored_gaps", "size_bytes", "store")
    _gaps: Gaps  # neither changed nor stored rows: true until the changes are forgotten
    _stored_gaps: Gaps  # no stored rows: true until others than these changes are stored

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.size_bytes = 0
        self._fleeting: list[bytes] = []  # changed, and then deleted
        self._has_gaps = False  # tables that are never scanned pay for nothing else

    def get(self, key: bytes) -> bytes | None:
        value = self.rows.get(key, UNCHANGED)
        return self.store.get(key) if value is UNCHANGED else value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Change a key; None deletes it."""
        if self._scans:
            self._leave_to_scans()
        old = self.rows.get(key, UNCHANGED)
        if old is UNCHANGED:
            self.size_bytes += ENTRY_BYTES + len(key)
            if self._keys is not None:
                self._added.append(key)
        elif old is not None:
            self.size_bytes -= len(old)
            if value is None:
                self._fleeting.append(key)
        if value is not None:
            self.size_bytes += len(value)
            if self._has_gaps:
                self._gaps.cut(key)
                self._stored_gaps.cut(key)
        self.rows[key] = value

    def forget_unborn(self) -> None:
        """Forget what was put and deleted since the last commit, and was never stored.

        Other deletions are not looked up: who deletes a row that is not there is rare, and the deletion does no harm.
        """
        rows, stored = self.rows, self.store.get
        unborn = [key for key in set(self._fleeting) if rows[key] is None and stored(key) is None]
        if unborn:
            if self._scans:
                self._leave_to_scans()
            for key in unborn:
                del self.rows[key]
            self._keys = None
            self._added = []
        self._fleeting = []

    def clear(self) -> None:
        """Forget the changes."""
        if self.size_bytes:
            super().clear()
            self.size_bytes = 0
            self._fleeting = []
        if self._has_gaps:
            self._gaps.clear()

    def forget_store(self) -> None:
        """Forget what is known of the store: others have written to it."""
        if self._has_gaps:
            self._gaps.clear()
            self._stored_gaps.clear()

    def forget_reads(self) -> None:
        """Forget what reading has noted, after a read that was cut off anywhere. The changes stay."""
        self._keys = None
        self._added = []
        self.forget_store()

    def read(self, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[Pair]:
        """The rows from `start` (included) to `end` (excluded) as they are now, changes included."""
        if reverse:
            return _merged(self.scan(start, end, reverse=True), self.store.scan(start, end, reverse=True), reverse=True)
        if not self._has_gaps:
            self._has_gaps, self._gaps, self._stored_gaps = True, Gaps(), Gaps()
        begin = self._gaps.past(start)
        if begin >= end:
            return iter(())
        stored = self.store.scan(self._stored_gaps.past(begin), end)
        first_stored = next(stored, None)
        if first_stored is not None:
            stored = chain((first_stored,), stored)
        rows = _merged(self.scan(begin, end), stored) if self.rows else stored
        # The first row is taken at once: what is learned from it must be true now, not when somebody asks for it.
        first = next(rows, None)
        until = end if first is None else first[0]
        self._gaps.add(start, until)
        # A changed row will be stored, so a gap in the store ends before the first of those as well.
        self._stored_gaps.add(begin, until if first_stored is None else min(until, first_stored[0]))
        return iter(()) if first is None else chain((first,), rows)


def _merged(changed: Iterator[Change], stored: Iterator[Pair], *, reverse: bool = False) -> Iterator[Pair]:
    """Both in order. Where both have a key, the change counts."""
    change = next(changed, None)
    for pair in stored:
        key = pair[0]
        while change is not None and (change[0] > key if reverse else change[0] < key):
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changed, None)
        if change is None or change[0] != key:
            yield pair
        else:
            if change[1] is not None:
                yield key, change[1]
            change = next(changed, None)
    while change is not None:
        if change[1] is not None:
            yield change[0], change[1]
        change = next(changed, None)
