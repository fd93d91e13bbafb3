"""The differences between two moments: the rows of both, folded side by side, of the same history or of two."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kapelle.topology.replay.comparison import Comparison, Data, described
from kapelle.topology.replay.fold import Decode, Folding, ShardName, decoder
from kapelle.topology.replay.history import History
from kapelle.topology.replay.lookup import TIMERS, Subject
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import Store
from kapelle.topology.tables.timers import TIMERS as ARMED

Side = tuple[History, Moment, Store]
Tell = Callable[[Folding], None]


class Changed(msgspec.Struct, frozen=True):
    """A row that differs. None: there is no such row on that side."""

    processor: str
    partition: int
    table: str
    key: list[object]
    before: Data | str | None
    after: Data | str | None


def changed(ours: Side, theirs: Side, subjects: Sequence[Subject], tell: Tell = lambda _: None) -> Iterator[Changed]:
    """The rows of some subjects that differ between two sides, shard by shard."""
    decoders = decoder(ours[0]), decoder(theirs[0])
    for subject in subjects:
        for shard in subject.shards(ours[0]):
            before, after = _folded(ours, shard, decoders[0], tell), _folded(theirs, shard, decoders[1], tell)
            for differing in Comparison(before.state, after.state):
                row = described(before.state, differing)
                name = TIMERS if row.table == ARMED.name else row.table
                if not name.startswith("_") and subject.holds(name, row.key):  # our own tables say nothing to people
                    yield Changed(*shard, name, row.key, row.expected, row.found)
            before.wipe()
            after.wipe()


def _folded(side: Side, shard: ShardName, decode: Decode, tell: Tell) -> Folding:
    history, moment, store = side
    fold = Folding(history.topology, shard, decode=decode, store=store)
    for _ in moment.fold(fold, history, shard):
        tell(fold)
    fold.settle()
    return fold
