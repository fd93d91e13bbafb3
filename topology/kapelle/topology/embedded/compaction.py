"""Keeping the latest record of each key, in streams of which no more is wanted.

A place is walked from its end to its beginning; of each key the first record met is the latest, and all others go. They
leave their offsets behind, so that nobody's position moves: a chunk keeps an empty place for each, and is removed when
it has nothing else. The last chunk stays, since it tells where the place ends, and so does what is not folded yet.

A place is walked again only when it has grown by half, so the cost per record is bounded. Keys are remembered as
digests, up to a limit: beyond it older records of keys that were not remembered stay until a later walk.
"""

import hashlib
from typing import Final

from kapelle.topology.embedded import chunks
from kapelle.topology.embedded.chunks import GONE, Entry, is_gone
from kapelle.topology.embedded.log import EmbeddedLog
from kapelle.topology.embedded.partitions import Partition
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch

KEYS_MAX: Final = 1_000_000
BATCH_ROWS_MAX: Final = 256  # chunks changed in one write: at most as many times the size of a chunk in memory
DIGEST_BYTES: Final = 16


class Compaction:
    """Walks the places of one log."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._walked: dict[Place, tuple[int, int]] = {}  # up to where, and how many records were then left

    def compact(self, partition: Partition) -> None:
        """Walk one place, if that is worth while."""
        end = self._end(partition)
        walked, left = self._walked.get(partition.place, (0, 0))
        if end - walked <= left // 2:
            return
        self._walked[partition.place] = end, self._walk(partition, end)

    def _end(self, partition: Partition) -> int:
        """Before which offset records may go: before the last, and before what somebody has yet to fold."""
        committed = [self._log.committed(r.processor, [partition.place])[partition.place] for r in partition.readers]
        return min([*committed, partition.end - 1])

    def _walk(self, partition: Partition, end: int) -> int:
        """Take away what stands before the end and has a successor. Returns how many records are left."""
        batch = Batch()
        seen: set[bytes] = set()
        left = 0
        for last, chunk in partition.chunks.backwards(partition.end):
            entries = chunks.decode(chunk)
            latest = self._latest(entries, seen)
            if last >= end:
                continue
            kept = sum(not is_gone(entry) for entry in latest)
            left += kept
            if not kept:
                partition.chunks.remove(batch, last)
            elif latest != entries:
                partition.chunks.stage(batch, last + 1 - len(latest), latest, chunks.time_of(chunk))
            if len(batch.rows) >= BATCH_ROWS_MAX:
                self._log.write(batch)
                batch = Batch()
        if batch:
            self._log.write(batch)
        return left

    @staticmethod
    def _latest(entries: list[Entry], seen: set[bytes]) -> list[Entry]:
        """The entries with those gone whose keys come again. Adds their keys to those that were seen."""
        latest = entries.copy()
        for at in range(len(entries) - 1, -1, -1):
            key = entries[at][0]
            if key is None:
                continue
            digest = hashlib.blake2b(key, digest_size=DIGEST_BYTES).digest()
            if digest in seen:
                latest[at] = GONE
            elif len(seen) < KEYS_MAX:
                seen.add(digest)
        return latest
