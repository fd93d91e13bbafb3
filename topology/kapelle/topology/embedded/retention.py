"""Forgetting what need not be kept: records of streams that are kept for a week, once they are that old, and of
streams of which the latest record of each key is wanted, once it has a successor (compaction.py).

History stays for ever. What a processor has not folded yet stays as well, and so does the last record of a place, which
tells where the place ends.
"""

from typing import Final

from kapelle.processors.streams import DAY_MS, Keep
from kapelle.topology.embedded.chunks import time_of
from kapelle.topology.embedded.compaction import Compaction
from kapelle.topology.embedded.log import EmbeddedLog
from kapelle.topology.embedded.partitions import Partition
from kapelle.topology.tables import Batch

WEEK_MS: Final = 7 * DAY_MS
EVERY_MS: Final = 60 * 60 * 1000


class Retention:
    """Trims the log now and then."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._compaction = Compaction(log)
        self._next_ms: int | None = None

    def tick(self, now_ms: int, steady_ms: int) -> None:
        """Trim, if it is time again: by the steady clock, so that a wall clock that goes back does not put it off."""
        if self._next_ms is None or steady_ms >= self._next_ms:
            self._next_ms = steady_ms + EVERY_MS
            self.trim(now_ms - WEEK_MS)
            self.compact()

    def compact(self) -> None:
        """Remove what has a successor of the same key, where that is all that is wanted."""
        for partition in self._log.partitions.values():
            if partition.keep is Keep.LATEST and partition.end:
                self._compaction.compact(partition)

    def trim(self, before_ms: int) -> None:
        """Remove what was written before this time, as far as the streams allow."""
        batch = Batch()
        for partition in self._log.partitions.values():
            if partition.keep is Keep.A_WEEK and partition.end:
                begin, cut = self._cut(partition, before_ms)
                if cut > begin:
                    partition.chunks.trim(batch, cut)
        if batch:
            self._log.write(batch)

    def _cut(self, partition: Partition, before_ms: int) -> tuple[int, int]:
        """Where the place begins now, and where it should. Times grow with offsets, so this is found by halving."""
        committed = [self._log.committed(r.processor, [partition.place])[partition.place] for r in partition.readers]
        begin = low = self._first(partition, 0)[0]
        high = min([*committed, partition.end - 1])
        while low < high:
            last, at_ms = self._first(partition, (low + high) // 2)
            if at_ms < before_ms:
                low = last + 1
            else:
                high = (low + high) // 2
        return begin, min(low, high)

    @staticmethod
    def _first(partition: Partition, offset: int) -> tuple[int, int]:
        """The chunk that holds the offset: its last offset, and when it was written."""
        chunk = partition.chunks.first(offset)
        return (partition.end, 0) if chunk is None else (chunk[0], time_of(chunk[1]))
