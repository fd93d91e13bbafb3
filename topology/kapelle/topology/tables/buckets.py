"""Tables that forget by the bucket: the first column of their keys is an integer, and all below a floor is gone.

1. `drop_before` writes the floor, an ordinary row in a table of its own: it is in the changelog, and replay writes it.
2. Every read leaves out what is below the floor, and a put below it is ignored: an `apply` that comes late must not
   fail, and must not bring back what was forgotten.
3. `sweep` deletes what is still stored below the floor, a limited number of rows at a time. Each is a deletion in the
   changelog, which is compacted by key; the store gets one range deletion instead where they are many.

After a crash the floor is there and the sweep goes on: nothing else is kept.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeVar

import msgspec

from kapelle.processors.tables import Key, table
from kapelle.topology.tables.store import Batch
from kapelle.topology.tables.table import Place, ReadTable, WriteTable

K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)

RANGE_ROWS_MIN: Final = 100  # fewer are deleted one by one: each range deletion makes later reads a little slower


class Floor(msgspec.Struct, frozen=True):
    """Rows of a bucketed table below this bucket are gone."""

    bucket: int


FLOORS = table("_floors", key=tuple[str], row=Floor)


class Buckets:
    """The floor of one table of one shard, and the sweep below it."""

    def __init__(self, place: Place[R], floors: WriteTable[tuple[str], Floor]) -> None:
        self._place = place
        self._floors = floors
        self._bound: bytes | None = None
        self._swept: list[bytes] = []

    def bound(self) -> bytes:
        """What stands before every row that is not forgotten."""
        if self._bound is None:
            floor = self._floors.get((self._place.name,))
            self._bound = self._place.prefix if floor is None else self._before(floor.bucket)
        return self._bound

    def raise_to(self, bucket: int) -> None:
        """Forget what is below `bucket`. A floor never sinks: what is gone stays gone."""
        bound = self._before(bucket)
        if bound > self.bound():
            self._floors.put((self._place.name,), Floor(bucket))
            self._bound = bound

    def sweep(self, limit: int) -> int:
        """Delete up to `limit` of the rows below the floor, and tell how many they were."""
        overlay = self._place.overlay
        swept = [key for key, _ in islice(overlay.read(self._place.prefix, self.bound()), limit)]
        for key in swept:
            overlay.put(key, None)
        self._swept += swept
        return len(swept)

    def stage(self, batch: Batch) -> None:
        """Take the many deletions of a sweep out of the batch, and put one range in their place."""
        if len(self._swept) >= RANGE_ROWS_MIN:
            batch.delete_range(self._swept[0], self._swept[-1] + b"\0")
            for key in self._swept:
                batch.rows.pop(key, None)  # one that was never stored is not in there

    def forget_changes(self) -> None:
        self._bound = None
        self._swept = []

    def _before(self, bucket: int) -> bytes:
        return self._place.keys.bound(self._place.prefix, (bucket,))


class BucketedReadTable(ReadTable[K, R]):
    """A table that can be read, from its floor on."""

    def __init__(self, place: Place[R], buckets: Buckets) -> None:
        super().__init__(place)
        self._buckets = buckets

    def get(self, key: K, /) -> R | None:
        stored = self._encode_key(self._prefix, key)
        if stored < self._buckets.bound():
            return None
        value = self._overlay.get(stored)
        return None if value is None else self._decode_row(value, key)

    def _rows(self, start: bytes, end: bytes, reverse: bool) -> Iterator[tuple[K, R]]:
        return super()._rows(max(start, self._buckets.bound()), end, reverse)


class BucketedWriteTable(BucketedReadTable[K, R], WriteTable[K, R]):
    """A table that can be read and written, from its floor on."""

    def put(self, key: K, row: R, /) -> None:
        stored, value = self._encode_key(self._prefix, key), self._encode_row(row)
        if stored >= self._buckets.bound():
            self._change(stored, value)

    def delete(self, key: K, /) -> None:
        stored = self._encode_key(self._prefix, key)
        if stored >= self._buckets.bound():
            self._change(stored, None)

    def drop_before(self, bucket: int, /) -> None:
        self._buckets.raise_to(bucket)
