"""Making the state of an embedded log again from the history that is left, when its rows may be of different times.

1. History ends before its first gap: events after one were decided on what is gone.
2. Tables are the fold of the history that is left, so that `kapelle verify` finds them right.
3. Unless nothing at all is missing, processors go on at the end of their inputs: how far they had come may be one of
   the rows that are lost, and to fold a command a second time would be worse than to leave it out.
"""

from typing import Final

import msgspec

from kapelle.processors.streams import Keep
from kapelle.schemas import Framing
from kapelle.topology.build import Topology
from kapelle.topology.embedded import chunks
from kapelle.topology.embedded.layout import offset_key, offset_row, stored_offset
from kapelle.topology.embedded.partitions import Partition, partitions_of
from kapelle.topology.embedded.soundness import Lost
from kapelle.topology.partition_time import SYSTEM_CLOCK
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.history import StoredHistory, event_place
from kapelle.topology.tables import Batch, ShardMeta, ShardState, Store
from kapelle.topology.tables.writes import forget_writes, writes_in

_NOT_CHECKED: Final = (Keep.LATEST,)  # compaction leaves gaps there


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What was not there, and what was there but is not folded any more."""

    lost: tuple[Lost, ...] = ()
    skipped: tuple[Lost, ...] = ()


def rebuild(
    topology: Topology, store: Store, identity: str, *, acknowledged: int, framing: Framing | None = None
) -> Rebuilt:
    """Make a store consistent in itself. `acknowledged`: the number of the last write that it should have."""
    places = partitions_of(topology, store)
    events = {event_place(topology, *shard) for shard in _shards(topology)}
    writes = writes_in(store)
    lost: list[Lost] = []
    batch = Batch()
    for partition in places.values():
        gaps = [] if partition.keep in _NOT_CHECKED else _gaps(partition)
        if gaps and partition.place in events:
            partition.chunks.cut(batch, gaps[0].first)
            gaps = [Lost(partition.place, gaps[0].first, partition.end)]
        lost += gaps
    forget_writes(batch)
    store.write(batch, sync=True)
    _fold(StoredHistory(topology, store, framing=framing), store, identity)
    is_whole = not lost and writes.missing is None and writes.last >= acknowledged
    return Rebuilt(lost=tuple(lost), skipped=_offsets(topology, store, keep=is_whole))


def _shards(topology: Topology) -> list[tuple[str, int]]:
    return [(name, n) for name in topology.processors for n in range(topology.processor_partitions(name))]


def _gaps(partition: Partition) -> list[Lost]:
    """The records that are not there although later ones are."""
    gaps: list[Lost] = []
    expected = 0 if partition.keep is Keep.FOR_EVER else None
    for last, chunk in partition.chunks.scan(0):
        begin = last + 1 - len(chunks.decode(chunk))
        if expected is not None and begin > expected:
            gaps.append(Lost(partition.place, expected, begin))
        expected = last + 1
    return gaps


def _fold(history: StoredHistory, store: Store, identity: str) -> None:
    """Put the fold of the history in the place of all tables."""
    decode = decoder(history)
    for shard in _shards(history.topology):
        batch = Batch()
        ShardState(history.topology.processors[shard[0]], shard[1], store).wipe(batch)
        store.write(batch)
        fold = Folding(history.topology, shard, decode=decode, store=store)
        for records in history.read(fold.place, 0, history.ends([fold.place])[fold.place]):
            fold.take(records)
        fold.write()
        batch = Batch()
        fold.state.stage(batch, ShardMeta(0, SYSTEM_CLOCK(), identity, {}))
        store.write(batch, sync=True)


def _offsets(topology: Topology, store: Store, *, keep: bool) -> tuple[Lost, ...]:
    """Let processors go on where they were, or at the end of what is there. Returns what they leave out."""
    skipped: list[Lost] = []
    batch = Batch()
    for partition in partitions_of(topology, store).values():
        for reader in partition.readers:
            stored = stored_offset(store, reader.processor, partition.place)
            offset = min(stored, partition.end) if keep else partition.end
            if offset != stored:
                batch.put(offset_key(reader.processor, partition.place), offset_row(offset))
            if offset > stored:
                skipped.append(Lost(partition.place, stored, offset))
    store.write(batch, sync=True)
    return tuple(skipped)
