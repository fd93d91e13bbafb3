"""The places of an embedded log: what is written, what is about to be, and how far each processor has read."""

from typing import Final

import msgspec

from kapelle.processors.streams import Keep
from kapelle.topology.build import Topology
from kapelle.topology.embedded import chunks
from kapelle.topology.embedded.chunks import Entry, is_gone
from kapelle.topology.embedded.errors import RecordsMissing
from kapelle.topology.embedded.layout import Chunks, topics
from kapelle.topology.log import Headers, Place, Record
from kapelle.topology.tables import Batch, Store

READ_BYTES_MAX: Final = 16 * 1024 * 1024  # one read gives no more than this, give or take a chunk


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record as anyone reads it."""

    offset: int
    at_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None = None


class Partition:
    """One place. Its offsets run through what is stored, what was published since, and what the cycle has sent."""

    __slots__ = ("chunks", "end", "keep", "place", "published", "readers", "sent")

    def __init__(self, place: Place, keep: Keep, store: Store) -> None:
        self.place = place
        self.keep = keep
        self.chunks = Chunks(place, store)
        self.end = self.chunks.end()
        self.published: list[Entry] = []  # from outside: kept until it is written, whatever becomes of the cycle
        self.sent: list[Entry] = []  # in the transaction: forgotten with it
        self.readers: list[Reader] = []

    def stage(self, batch: Batch, at_ms: int, *, committed: bool) -> int:
        """Put what is to be written into the batch. Returns how many records that are."""
        entries = self.published + self.sent if committed else self.published
        if entries:
            self.chunks.stage(batch, self.end, entries, at_ms)
        return len(entries)

    def written(self, count: int, *, committed: bool) -> None:
        """What was staged is stored."""
        self.end += count
        self.published = []
        if committed:
            self.sent = []

    def read(self, offset: int, limit: int) -> list[LogRecord]:
        """Stored records from an offset on; from the first that is left, if that one is gone."""
        records: list[LogRecord] = []
        size_bytes = 0
        for last, chunk in self.chunks.scan(offset):
            entries = chunks.decode(chunk)
            at_ms = chunks.time_of(chunk)
            base = last + 1 - len(entries)
            there = [
                LogRecord(at, at_ms, *entry)
                for at, entry in enumerate(entries, base)
                if at >= offset and not is_gone(entry)
            ]
            records += there[: limit - len(records)]
            size_bytes += len(chunk)
            if len(records) >= limit or size_bytes >= READ_BYTES_MAX:
                break
        return records


class Reader:
    """One processor at one place."""

    __slots__ = ("_ahead", "_ahead_at", "partition", "position", "processor", "started")

    def __init__(self, processor: str, partition: Partition) -> None:
        self.processor = processor
        self.partition = partition
        self.position = 0
        self.started = False
        self._ahead: list[Entry] = []  # what was fetched last, so that a chunk is decoded once
        self._ahead_at = 0

    def start(self, offset: int) -> None:
        self.position = offset
        self.started = True
        self._ahead = []
        self._ahead_at = 0

    @property
    def lags(self) -> bool:
        return self.started and self.position < self.partition.end + len(self.partition.published)

    def read(self, limit: int) -> tuple[list[Record], int]:
        """Some of the next records, at most the limit, and how many bytes were fetched for them.

        None where all was compacted away: the position has moved all the same.
        """
        partition = self.partition
        if self.position >= partition.end:
            return self._records(partition.published, partition.end, limit), 0
        size_bytes = 0
        if self.position >= self._ahead_at + len(self._ahead):
            size_bytes = self._fetch(limit)
        return self._records(self._ahead, self._ahead_at, limit), size_bytes

    def _fetch(self, limit: int) -> int:
        """Read chunks from the position on, until there are enough records or bytes."""
        ahead: list[Entry] = []
        size_bytes = 0
        for last, chunk in self.partition.chunks.scan(self.position):
            entries = chunks.decode(chunk)
            if ahead and last + 1 - len(entries) != self._ahead_at + len(ahead):
                break  # all of a chunk was compacted away: what follows has a place of its own
            ahead += entries
            self._ahead_at = last + 1 - len(ahead)
            size_bytes += len(chunk)
            if len(ahead) >= limit or size_bytes >= chunks.CHUNK_BYTES_MAX:
                break
        if not ahead:
            raise RecordsMissing(self.partition.place, self.position, self.partition.end)
        self._ahead = ahead
        self.position = max(self.position, self._ahead_at)  # what was there before may have been trimmed
        return size_bytes

    def _records(self, entries: list[Entry], entries_at: int, limit: int) -> list[Record]:
        """The entries from the position on, as records."""
        begin = self.position - entries_at
        taken = entries[begin : begin + limit]
        records = [
            Record(offset, key, value, headers) for offset, (key, value, headers) in enumerate(taken, self.position)
        ]
        self.position += len(taken)
        if self.partition.keep is Keep.LATEST:
            return [record for record in records if record.key is not None or record.value is not None]
        return records


def partitions_of(topology: Topology, store: Store) -> dict[Place, Partition]:
    """Every place of the topology, with the processors that read it."""
    partitions = {
        Place(name, number): Partition(Place(name, number), keep, store)
        for name, (count, keep) in topics(topology).items()
        for number in range(count)
    }
    for name, processor in topology.processors.items():
        for stream in processor.inputs:
            for number in range(topology.partitions(stream)):
                partition = partitions[Place(topology.topic(stream), number)]
                partition.readers.append(Reader(name, partition))
    return partitions
