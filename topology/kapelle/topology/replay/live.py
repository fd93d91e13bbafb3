"""The live tables of a topology on Kafka, checked against its history: those of the changelogs, or of a directory."""

from collections.abc import Callable, Iterator, Sequence

from kapelle.topology.log import Place
from kapelle.topology.replay.fold import ShardName, decoder
from kapelle.topology.replay.history import event_place
from kapelle.topology.replay.kafka import KafkaHistory
from kapelle.topology.replay.verification import Stores, Verdict, Verifying
from kapelle.topology.tables import ShardState, Store

Tell = Callable[[str, int], None]  # a shard, and how many events of it were folded


class LiveTables:
    """Verifies shards one after the other. With `kept`, the tables of a process that has stopped, brought up to date.

    To bring them up to date is what that process would do at its next start: rows that it had already, and that were
    not written since, are taken as they are.
    """

    def __init__(self, history: KafkaHistory, stores: Stores, kept: Store | None = None) -> None:
        self._history = history
        self._topology = history.topology
        self._stores = stores
        self._kept = kept
        self._decode = decoder(history)

    def verify(self, shards: Sequence[ShardName], tell: Tell = lambda _, __: None) -> Iterator[Verdict]:
        """A verdict for each shard. Those that never did anything are not looked at."""
        places = {shard: (event_place(self._topology, *shard), self._changelog(shard)) for shard in shards}
        ends = self._history.offsets.ends([place for both in places.values() for place in both])
        for shard in shards:
            if any(ends[place] for place in places[shard]):
                yield self._verified(shard, tell)
            else:
                yield Verdict(processor=shard[0], partition=shard[1], events=0, rows=0)

    def _verified(self, shard: ShardName, tell: Tell) -> Verdict:
        verifying = Verifying(self._topology, shard, decode=self._decode, stores=self._stores)
        try:
            start = 0
            if self._kept is not None:
                start_or_reason = self._taken(shard, verifying, self._kept)
                if isinstance(start_or_reason, str):
                    return Verdict(processor=shard[0], partition=shard[1], events=0, rows=0, skipped=start_or_reason)
                start = start_or_reason
            place = event_place(self._topology, *shard)
            history, changelog = self._history.tapes(place, self._changelog(shard), start=start)
            return verifying.verify(history, changelog, lambda events: tell(f"{shard[0]}-{shard[1]}", events))
        finally:
            verifying.fold.wipe()
            verifying.live.wipe()

    def _taken(self, shard: ShardName, verifying: Verifying, kept: Store) -> int | str:
        """Begin with the tables of the directory. Returns which offset they stand for, or why they are not compared."""
        state = ShardState(verifying.fold.processor, shard[1], kept)
        meta = state.meta()
        if meta is None:
            return "not in the directory"
        if meta.changelog_id != self._history.changelog_id(self._topology.changelog(shard[0])):
            return "of another changelog"
        verifying.live.copy(kept)
        return meta.changelog_offset

    def _changelog(self, shard: ShardName) -> Place:
        return Place(self._topology.changelog(shard[0]), shard[1])
