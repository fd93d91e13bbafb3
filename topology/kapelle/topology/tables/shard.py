"""The state of one processor on one partition, as the runtime holds it.

    state = ShardState(processor, partition, store)
    processor.deciders[…](message, state.reader, now_ms)        decide reads
    processor.appliers[…](event, state.writer)                  apply writes; nothing is stored yet
    state.changes()                                             what goes to the changelog
    state.stage(batch, meta); store.write(batch); state.clear() after the commit
    state.clear()                                               after an abort

A stored key is the shard's prefix (processor, 00, partition), the table's (name, 00) and the encoded key. A key in the
changelog is the same without the shard's prefix.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from kapelle.processors.processor import Processor
from kapelle.processors.tables import Key, Tables, TableSpec, table
from kapelle.topology.tables.buckets import FLOORS, BucketedReadTable, BucketedWriteTable, Buckets, Floor
from kapelle.topology.tables.keys import successor
from kapelle.topology.tables.layout import TableLayout, check_name, layout, table_layout
from kapelle.topology.tables.overlay import Overlay
from kapelle.topology.tables.store import Batch, Store
from kapelle.topology.tables.table import Place, ReadTable, WriteTable
from kapelle.topology.tables.timers import DUE, TIMERS, ReadTimers, TimerQueue, WriteTimers

S = TypeVar("S", bound=Tables)
K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)
Row = tuple[bytes, bytes | None]


class ShardMeta(msgspec.Struct, frozen=True):
    """What the stored rows of a shard stand for. It is written together with them, and is not in the changelog."""

    changelog_offset: int
    saved_at_ms: int
    changelog_id: str
    positions: dict[str, int]


class TimeBound(msgspec.Struct, frozen=True):
    """No owner of the shard has been handed a later time. It is in the changelog, but not in history."""

    at_ms: int


META: Final = table_layout(table("_meta", key=tuple[()], row=ShardMeta))
_FLOORS: Final = table_layout(FLOORS)
TIME: Final = table("_time", key=tuple[()], row=TimeBound)
_TIME: Final = table_layout(TIME)
_UNSEEN: Final = frozenset({TIME.name})  # what history does not give, so that nothing is compared with it
_TIMERS: Final = table_layout(TIMERS)
_DUE: Final = table_layout(DUE)


def shard_prefix(processor: str, partition: int) -> bytes:
    check_name("a processor", processor)
    return processor.encode() + b"\0" + partition.to_bytes(4, "big")


class ShardState(Generic[S]):
    """The tables and timers of one shard, with the changes since the last commit."""

    reader: S
    writer: S

    def __init__(self, processor: Processor[S], partition: int, store: Store) -> None:
        self.prefix = shard_prefix(processor.name, partition)
        self._store = store
        self._places: dict[str, Place[Any]] = {}
        self._buckets: dict[str, Buckets] = {}
        floors: WriteTable[tuple[str], Floor] = WriteTable(self._place(_FLOORS))
        self._time: WriteTable[tuple[()], TimeBound] = WriteTable(self._place(_TIME))
        self._timers = TimerQueue(self._place(_TIMERS), self._place(_DUE))
        for each in layout(processor.tables):
            place = self._place(each)
            if each.bucketed:
                self._buckets[place.name] = Buckets(place, floors)
        self._overlays = tuple(place.overlay for place in self._places.values())
        self.reader = processor.tables.bind(self._open_reader, ReadTimers(self._timers))
        self.writer = processor.tables.bind(self._open_writer, WriteTimers(self._timers))

    @property
    def size_bytes(self) -> int:
        """What the changes since the last commit take in memory."""
        return sum([overlay.size_bytes for overlay in self._overlays])

    @property
    def changed(self) -> bool:
        return any(overlay.rows for overlay in self._overlays)

    def changes(self) -> list[Row]:
        """The changed rows with their last values, for the changelog. None is a deletion.

        Rows that came and went since the last commit are forgotten here: neither changelog nor store has heard of them.
        """
        cut = len(self.prefix)
        for overlay in self._overlays:
            overlay.forget_unborn()
        return [(key[cut:], value) for overlay in self._overlays for key, value in overlay.rows.items()]

    def stage(self, batch: Batch, meta: ShardMeta) -> None:
        """Put the changes and what they stand for into a batch that is about to be written."""
        for overlay in self._overlays:
            batch.update(overlay.rows)
        for buckets in self._buckets.values():
            buckets.stage(batch)
        batch.put(self.prefix + META.prefix, META.rows.encode(meta))

    def clear(self) -> None:
        """Forget the changes: after an abort, or when the batch that they were staged in has been written."""
        if self._timers.changed:
            self._timers.forget_changes()
        for overlay in self._overlays:
            overlay.clear()
        self._forget_known()
        for buckets in self._buckets.values():
            buckets.forget_changes()

    def forget_reads(self) -> None:
        """Forget what reading has noted: a decision was cut off, maybe in the middle of a read."""
        for overlay in self._overlays:
            overlay.forget_reads()
        self._forget_known()

    def restore(self, rows: Iterable[Row], batch: Batch) -> None:
        """Put rows of the changelog into a batch. Until it is written and `clear` was called, nothing may be read."""
        prefix = self.prefix
        batch.update({prefix + key: value for key, value in rows})
        self._forget_store()

    def wipe(self, batch: Batch) -> None:
        """Delete all that is stored of this shard, its meta row too. The same holds for reading as after `restore`."""
        batch.delete_range(self.prefix, successor(self.prefix))
        self._forget_store()

    def meta(self) -> ShardMeta | None:
        """What the stored rows stand for; None if nothing was ever stored here."""
        value = self._store.get(self.prefix + META.prefix)
        return None if value is None else META.rows.decode(value, ())

    def due(self, now_ms: int, limit: int) -> list[tuple[str, str, int]]:
        """Up to `limit` timers (key, name, due_at_ms) that are due at `now_ms`, earliest first."""
        return self._timers.due(now_ms, limit)

    def be_ahead(self, ms: int) -> None:
        """Note how far the time of the shard is ahead of the wall clock, for decisions about the time of day."""
        self._timers.ahead_ms = ms

    def next_due_at_ms(self) -> int | None:
        return self._timers.next_due_at_ms()

    def time_bound_ms(self) -> int | None:
        """The latest time that an owner of the shard may have been handed; None if there was none."""
        bound = self._time.get(())
        return None if bound is None else bound.at_ms

    def set_time_bound(self, at_ms: int) -> None:
        """Let later owners begin at this time."""
        self._time.put((), TimeBound(at_ms))

    def sweep(self, limit: int) -> int:
        """Delete up to `limit` rows that their tables have dropped by the bucket, and tell how many they were."""
        count = 0
        for buckets in self._buckets.values():
            count += buckets.sweep(limit - count)
        return count

    def rows(self) -> Iterator[tuple[str, Key, msgspec.Struct]]:
        """Every row that can be seen, by table: those of the processor, then its timers and floors."""
        for name in sorted(self._places.keys() - _UNSEEN):
            if name != DUE.name:  # an index of the timers, with nothing of its own
                for key, row in self._opened(name, write=False).prefix():
                    yield name, key, row

    def encoded(self) -> Iterator[tuple[bytes, bytes]]:
        """Every row that can be seen, the index of timers too, as it is in the changelog, in the order of the keys."""
        cut = len(self.prefix)
        for name in sorted(self._places.keys() - _UNSEEN):
            place, buckets = self._places[name], self._buckets.get(name)
            start = place.prefix if buckets is None else buckets.bound()
            for key, value in place.overlay.read(start, successor(place.prefix)):
                yield key[cut:], value

    def encoded_row(self, key: bytes) -> bytes | None:
        """The row under a key of the changelog, if there is one that can be seen."""
        name, stored = key[: key.index(0)].decode(), self.prefix + key
        if name in self._buckets and stored < self._buckets[name].bound():
            return None
        return self._places[name].overlay.get(stored)

    def decoded(self, key: bytes, value: bytes) -> tuple[str, Key, msgspec.Struct]:
        """What a row of the changelog says: its table, its key there, and the row."""
        name = key[: key.index(0)].decode()
        place = self._places[name]
        columns: Key = place.keys.decode(key, len(name) + 1)
        return name, columns, place.rows.decode(value, columns)

    def bounds(self) -> dict[str, tuple[bytes, bytes]]:
        """Where the stored rows of each table begin and end, those of timers and floors too. From any thread."""
        return {name: (place.prefix, successor(place.prefix)) for name, place in self._places.items()}

    def fingerprint(self) -> str:
        """A digest of all rows that can be seen. Shards with equal rows have equal ones, whatever their history."""
        digest = hashlib.blake2b(digest_size=16)
        for name, key, row in self.rows():
            place = self._places[name]
            for part in (place.keys.encode(name.encode() + b"\0", key), place.rows.encode(row)):
                digest.update(len(part).to_bytes(4, "big") + part)
        return digest.hexdigest()

    def _place(self, each: TableLayout[R]) -> Place[R]:
        place = Place(self.prefix + each.prefix, keys=each.keys, rows=each.rows, overlay=Overlay(self._store))
        self._places[each.name] = place
        return place

    def _open_reader(self, spec: TableSpec[K, R]) -> ReadTable[K, R]:
        return self._opened(spec.name, write=False)

    def _open_writer(self, spec: TableSpec[K, R]) -> ReadTable[K, R]:
        return self._opened(spec.name, write=True)

    def _opened(self, name: str, *, write: bool) -> ReadTable[Any, Any]:
        place, buckets = self._places[name], self._buckets.get(name)
        if buckets is None:
            return WriteTable(place) if write else ReadTable(place)
        return BucketedWriteTable(place, buckets) if write else BucketedReadTable(place, buckets)

    def _forget_store(self) -> None:
        for overlay in self._overlays:
            overlay.forget_store()
        self._forget_known()
        self._timers.forget_changes()

    def _forget_known(self) -> None:
        for place in self._places.values():
            place.forget_known()
