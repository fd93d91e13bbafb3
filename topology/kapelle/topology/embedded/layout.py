"""The keys of the log in the store, beside the tables, whose keys begin with a letter.

    01 topic 00 partition offset          a chunk of records, under the offset of its last one
    02 processor 00 topic 00 partition    the next offset that the processor has not folded
    03                                    what the directory was made for
    04 slot                               the number of a write, in turns (tables/writes.py)

A chunk stands under its last offset, so that the first chunk at or after an offset is the one that holds it, and the
last chunk of a place tells its end. What was trimmed needs no note: the first chunk that is left says where it begins.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kapelle.processors.streams import Keep
from kapelle.topology.build import Topology
from kapelle.topology.embedded import chunks
from kapelle.topology.embedded.chunks import Entry
from kapelle.topology.embedded.errors import DirectoryDiffers
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, Store

FORMAT: Final = 1

_LOG: Final = b"\x01"
_OFFSETS: Final = b"\x02"
_ABOUT: Final = b"\x03"
_OFFSET_BYTES: Final = 8
_OFFSET_MAX: Final = b"\xff" * _OFFSET_BYTES


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a directory was made for."""

    format: int = FORMAT
    prefix: str
    made_at_ms: int
    partitions: dict[str, int]

    @property
    def identity(self) -> str:
        return f"{self.prefix}-{self.made_at_ms}"


class Chunks:
    """The chunks of one place in a store."""

    __slots__ = ("_end", "_prefix", "_store")

    def __init__(self, place: Place, store: Store) -> None:
        self._store = store
        self._prefix = _LOG + place.topic.encode() + b"\0" + place.partition.to_bytes(4, "big")
        self._end = self._prefix + _OFFSET_MAX

    def end(self) -> int:
        """The offset after the last record."""
        last = next(self._store.scan(self._prefix, self._end, reverse=True), None)
        return 0 if last is None else self._last(last[0]) + 1

    def scan(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """The chunks from the one that holds this offset on, each with its last offset."""
        for key, chunk in self._store.scan(self._key(offset), self._end):
            yield self._last(key), chunk

    def first(self, offset: int) -> tuple[int, bytes] | None:
        """The chunk that holds this offset, or else the next, with its last offset."""
        return next(self.scan(offset), None)

    def stage(self, batch: Batch, end: int, entries: list[Entry], at_ms: int) -> None:
        """Put records that follow the end into a batch."""
        for count, chunk in chunks.encode(entries, at_ms):
            end += count
            batch.put(self._key(end - 1), chunk)

    def backwards(self, end: int) -> Iterator[tuple[int, bytes]]:
        """The chunks that end before this offset, the last one first, each with its last offset."""
        for key, chunk in self._store.scan(self._prefix, self._key(end), reverse=True):
            yield self._last(key), chunk

    def remove(self, batch: Batch, last: int) -> None:
        """Put the removal of one chunk into a batch."""
        batch.delete(self._key(last))

    def trim(self, batch: Batch, offset: int) -> None:
        """Put the removal of the chunks that end before this offset into a batch."""
        batch.delete_range(self._key(0), self._key(offset))

    def cut(self, batch: Batch, offset: int) -> None:
        """Put the removal of the chunks that end at this offset or after it into a batch."""
        batch.delete_range(self._key(offset), self._end)

    def _key(self, offset: int) -> bytes:
        return self._prefix + offset.to_bytes(_OFFSET_BYTES, "big")

    def _last(self, key: bytes) -> int:
        return int.from_bytes(key[-_OFFSET_BYTES:], "big")


def offset_key(processor: str, place: Place) -> bytes:
    names = f"{processor}\0{place.topic}\0".encode()
    return _OFFSETS + names + place.partition.to_bytes(4, "big")


def offset_row(offset: int) -> bytes:
    return offset.to_bytes(_OFFSET_BYTES, "big")


def stored_offset(store: Store, processor: str, place: Place) -> int:
    """The next offset that the processor has not folded."""
    return int.from_bytes(store.get(offset_key(processor, place)) or b"", "big")


def topics(topology: Topology) -> dict[str, tuple[int, Keep]]:
    """The topics that an embedded log keeps: all but the changelogs, since the tables stand beside it."""
    changelogs = {topology.changelog(name) for name in topology.processors}
    return {t.name: (t.partitions, t.keep) for t in topology.topics() if t.name not in changelogs}


def open_directory(topology: Topology, store: Store, now_ms: int) -> About:
    """Note what a new directory is for; refuse one that is for something else. New topics are welcome."""
    needed = {name: partitions for name, (partitions, _) in topics(topology).items()}
    directory = about(store)
    if directory is None:
        directory = About(prefix=topology.prefix, made_at_ms=now_ms, partitions={})
    refuse_other(topology, directory)
    merged = directory.partitions | needed
    if merged != directory.partitions:
        directory = msgspec.structs.replace(directory, partitions=merged)
        batch = Batch()
        batch.put(_ABOUT, msgspec.msgpack.encode(directory))
        store.write(batch, sync=True)
    return directory


def refuse_other(topology: Topology, directory: About) -> None:
    """Refuse a directory that was made for something else."""
    if directory.prefix != topology.prefix:
        raise DirectoryDiffers("the prefix", expected=topology.prefix, found=directory.prefix)
    for name, (partitions, _) in topics(topology).items():
        if directory.partitions.get(name, partitions) != partitions:
            raise DirectoryDiffers(f"partitions of {name}:", expected=partitions, found=directory.partitions[name])


def about(store: Store) -> About | None:
    """What a directory was made for; None if it is new."""
    row = store.get(_ABOUT)
    if row is None:
        return None
    version = msgspec.msgpack.decode(row)["format"]
    if version != FORMAT:
        raise DirectoryDiffers("format", expected=FORMAT, found=version)
    return msgspec.msgpack.decode(row, type=About)
