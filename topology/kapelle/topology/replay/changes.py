"""The differences between two moments: the rows of both, folded side by side, of the same history or of two."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from kapelle.topology.replay.comparing import Comparison, Data, described
from kapelle.topology.replay.folding import Decode, Folding, ShardName, decoder
from kapelle.topology.replay.history import History
from kapelle.topology.replay.looking import TIMERS, Subject
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


def changed(one: Side, other: Side, subjects: Sequence[Subject], tell: Tell = lambda _: None) -> Iterator[Changed]:
    """The rows of some subjects that differ between two sides, shard by shard."""
    decoders = decoder(one[0]), decoder(other[0])
    for subject in subjects:
        for shard in subject.shards(one[0]):
            before, after = _folded(one, shard, decoders[0], tell), _folded(other, shard, decoders[1], tell)
            for each in Comparison(before.state, after.state):
                found = described(before.state, each)
                name = TIMERS if found.table == ARMED.name else found.table
                if not name.startswith("_") and subject.holds(name, found.key):  # our own tables say nothing to people
                    yield Changed(*shard, name, found.key, found.expected, found.found)
            before.wipe()
            after.wipe()


def _folded(side: Side, shard: ShardName, decode: Decode, tell: Tell) -> Folding:
    history, moment, store = side
    fold = Folding(history.topology, shard, decode=decode, store=store)
    for _ in moment.fold(fold, history, shard):
        tell(fold)
    fold.settle()
    return fold
