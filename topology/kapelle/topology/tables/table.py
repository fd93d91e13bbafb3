"""Typed tables over the changes of a cycle: one kind to read, for `decide`, and one to write as well, for `apply`.

A scan sees the table as it was when the scan began, so an `apply` may change the rows that it walks over.
"""

from collections.abc import Iterator
from typing import Final, Generic, NoReturn, TypeVar

import msgspec

from kapelle.processors.errors import WriteInDecide
from kapelle.processors.tables import UNKNOWN, Key
from kapelle.topology.tables.errors import NotBucketed
from kapelle.topology.tables.keys import KeyCodec, successor
from kapelle.topology.tables.overlay import ENTRY_BYTES, UNCHANGED, Overlay
from kapelle.topology.tables.rows import RowCodec

K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)


KNOWN_BYTES_MAX: Final = 4 * 1024 * 1024  # of stored rows, for each table of a shard


class Place(Generic[R]):
    """Where the rows of one table of one shard are, and how they are coded. Its reader and its writer share it.

    `known` has rows until the changes are forgotten: a decision and the `apply` of its events read the same rows. A row
    that is put is kept only if it is the same when it is read again (`RowCodec.is_plain`).
    """

    __slots__ = ("keys", "known", "known_bytes", "name", "overlay", "prefix", "rows")

    def __init__(self, prefix: bytes, *, keys: KeyCodec, rows: RowCodec[R], overlay: Overlay) -> None:
        self.name = rows.table
        self.prefix = prefix
        self.keys = keys
        self.rows = rows
        self.overlay = overlay
        self.known: dict[Key, R | None] = {}
        self.known_bytes = 0

    def forget_known(self) -> None:
        """Forget the rows that are known. That is always right: they are read again."""
        self.known.clear()
        self.known_bytes = 0


class ReadTable(Generic[K, R]):
    """A table that can be read. Whoever tries to write it is told to emit an event instead."""

    def __init__(self, place: Place[R]) -> None:
        self._place = place
        self._prefix = place.prefix
        self._key_at = len(place.prefix)
        self._overlay = place.overlay
        self._stored = place.overlay.store.get
        self._known = place.known
        self._encode_key = place.keys.encode
        self._decode_key = place.keys.decode
        self._decode_row = place.rows.decode

    def get(self, key: K, /) -> R | None:
        row = self._known.get(key, UNKNOWN)
        if row is not UNKNOWN:
            return row
        stored = self._encode_key(self._prefix, key)
        value = self._overlay.rows.get(stored, UNCHANGED)
        if value is UNCHANGED:
            value = self._stored(stored)
        row = None if value is None else self._decode_row(value, key)
        place = self._place
        place.known_bytes += ENTRY_BYTES if value is None else ENTRY_BYTES + len(value)
        if place.known_bytes > KNOWN_BYTES_MAX:
            place.forget_known()
        self._known[key] = row
        return row

    def range(self, start: Key, end: Key, /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        return self._rows(self._bound(start), self._bound(end), reverse)

    def prefix(self, prefix: Key = (), /, *, reverse: bool = False) -> Iterator[tuple[K, R]]:
        start = self._bound(prefix)
        return self._rows(start, successor(start), reverse)

    def first(self, prefix: Key = (), /) -> tuple[K, R] | None:
        return next(self.prefix(prefix), None)

    def put(self, key: K, row: R, /) -> None:  # noqa: ARG002
        self._refuse("put")

    def delete(self, key: K, /) -> None:  # noqa: ARG002
        self._refuse("delete")

    def drop_before(self, bucket: int, /) -> None:  # noqa: ARG002
        self._refuse("drop_before")

    def _refuse(self, operation: str) -> NoReturn:
        raise WriteInDecide(self._place.name, operation)

    def _bound(self, start: Key) -> bytes:
        return self._place.keys.bound(self._prefix, start)

    def _rows(self, start: bytes, end: bytes, reverse: bool) -> Iterator[tuple[K, R]]:
        return self._decoded(self._overlay.read(start, end, reverse=reverse))

    def _decoded(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[K, R]]:
        decode_key, decode_row, key_at = self._decode_key, self._decode_row, self._key_at
        for stored, value in pairs:
            key = decode_key(stored, key_at)
            yield key, decode_row(value, key)


class WriteTable(ReadTable[K, R]):
    """A table that can be read and written."""

    def __init__(self, place: Place[R]) -> None:
        super().__init__(place)
        self._encode_row = place.rows.encode
        self._is_plain = place.rows.is_plain
        self._change = place.overlay.put

    def put(self, key: K, row: R, /) -> None:
        self._change(self._encode_key(self._prefix, key), self._encode_row(row))
        if self._is_plain:
            self._known[key] = row  # its bytes are among the changes, which have a limit of their own
        else:
            self._known.pop(key, None)

    def delete(self, key: K, /) -> None:
        self._change(self._encode_key(self._prefix, key), None)
        self._known[key] = None

    def drop_before(self, bucket: int, /) -> None:  # noqa: ARG002
        raise NotBucketed(self._place.name)
