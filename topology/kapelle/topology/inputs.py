"""Input that vanishes below its reader, and how far each input has been read.

Records can be deleted before they are read (retention, `kafka-delete-records`), and a topic can be deleted and created
again. Offsets alone do not tell: reading would go on at the first record that is there. So a member that takes over a
partition compares the offset that was committed, and the topic's id beside it, with what the brokers tell (`judged`).
What says that input was lost is asked for twice. Then the member stops, or goes on and writes a dead letter about each
loss in the transaction that moves the offset, as the operator chose.

Where nothing is committed, nothing can be compared. So a shard commits where it begins as soon as it begins.

Marks of transactions have offsets too. A processor that has read all records of an input has an offset before the last
mark, and once retention has deleted that mark it would look like a loss. So from time to time the offsets of inputs
that were read to their end are moved behind the marks.
"""

from collections.abc import Iterable, Sequence

import msgspec

from kapelle.topology.doubts import Doubts
from kapelle.topology.errors import InputLost
from kapelle.topology.fold import Fold
from kapelle.topology.log import Cause, Log, Loss, Place, Run
from kapelle.topology.settings import MemberSettings, OnLostInput
from kapelle.topology.shard import Input, Shard


class Known(msgspec.Struct, frozen=True):
    """What the brokers tell of a partition: its first offset, its end, and the id of its topic."""

    first: int
    end: int
    topic_id: str


def judged(place: Place, committed: int | None, noted_id: str, known: Known) -> Loss | None:
    """What was lost between the committed offset and what is there.

    The id that was noted beside the offset may be cut short; an empty one was never noted. Brokers delete the offsets
    of a topic with the topic: then there is none, and the id was noted beside the offsets of other inputs.
    """
    if not known.topic_id.startswith(noted_id):
        return Loss(place, Cause.REPLACED, committed, None, known.first, known.topic_id)
    if committed is None:
        return None
    if committed < known.first:
        return Loss(place, Cause.DELETED, committed, known.first, known.first, known.topic_id)
    if committed > known.end:
        return Loss(place, Cause.SHORTENED, known.end, committed, known.end, known.topic_id)
    return None


class Inputs:
    """Says where the inputs of new shards begin, and writes down what was lost of them."""

    def __init__(self, log: Log, settings: MemberSettings) -> None:
        self._log = log
        self._policy = settings.on_lost_input
        self._advance_ms = settings.limits.advance_ms
        self._doubts = Doubts(settings.limits.doubt_ms)
        self._looked_at_ms: int | None = None
        self._told: list[Shard] = []  # of whose inputs something is to be committed at once
        self._behind: list[tuple[Shard, Input]] = []

    def place(self, processor: str, shards: Sequence[Shard], now_ms: int) -> bool:
        """Set the inputs of shards to where to read on. False while it is in doubt whether something was lost."""
        sources = [source for shard in shards for source in shard.inputs.values()]
        places = [source.place for source in sources]
        offsets = self._log.committed(processor, places)
        losses = {loss.place: loss for loss in self._log.losses(processor, places)}
        if not self._believed(processor, list(losses.values()), now_ms):
            return False
        for source in sources:
            loss = losses.get(source.place)
            source.next = source.reached = offsets[source.place] if loss is None else loss.start
        new = frozenset(self._log.uncommitted(processor, places))
        for shard in shards:
            shard.is_new = any(source.place in new for source in shard.inputs.values())
            shard.losses = [losses[input_.place] for input_ in shard.inputs.values() if input_.place in losses]
        return True

    def _believed(self, processor: str, losses: Sequence[Loss], now_ms: int) -> bool:
        if not losses:
            self._doubts.clear(processor)
            return True
        if not self._doubts.is_certain(processor, "; ".join(map(str, losses)), now_ms):
            return False
        if self._policy is OnLostInput.STOP:
            raise InputLost.of(processor, losses)
        return True

    def due(self, shards: Iterable[Shard], unread: Iterable[Run], now_ms: int) -> bool:
        """Whether there is a loss to write down, or an offset to move behind the marks of transactions."""
        active = [shard for shard in shards if shard.active]
        self._told = [shard for shard in active if shard.losses or shard.is_new]
        self._behind = []
        looked_at_ms = now_ms if self._looked_at_ms is None else self._looked_at_ms
        if not looked_at_ms <= now_ms < looked_at_ms + self._advance_ms:
            self._looked_at_ms = now_ms
            held = {(run.processor, run.place) for run in unread}
            self._behind = [
                (shard, source)
                for shard in active
                for source in shard.inputs.values()
                if source.next < source.reached and (shard.processor.name, source.place) not in held
            ]
        elif self._looked_at_ms is None:
            self._looked_at_ms = now_ms
        return bool(self._told or self._behind)

    def fold(self, fold: Fold) -> None:
        """Put letters about what was lost into the transaction, and the offsets behind it."""
        for shard in self._told:
            fold.touched.add(shard)
            for loss in shard.losses:
                fold.lost(shard, loss)
        for shard, source in self._behind:
            source.next = source.reached
            fold.touched.add(shard)

    def committed(self) -> None:
        """What was written down is committed."""
        for shard in self._told:
            shard.losses, shard.is_new = [], False
        self._told, self._behind = [], []
