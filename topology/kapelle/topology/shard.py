"""A shard at run time: one processor's one partition, with its inputs and how far each has got."""

from typing import NamedTuple, Self

from kapelle.processors.fitness import checks_of
from kapelle.processors.messages import Foreign
from kapelle.processors.streams import Stream
from kapelle.schemas.headers import HeaderForm
from kapelle.topology.build import AnyProcessor, Topology
from kapelle.topology.log import Loss, Place
from kapelle.topology.shard_time import ShardTime
from kapelle.topology.tables import ShardState, Store


class Input:
    """One input partition of a shard.

    next     the first offset that has not been folded
    reached  all before this offset has been read, transaction markers included; `next` may be further
    barrier  direct delivery must wait until `reached` has come here (see delivery.py)
    sent     this process has sent commands here by topic that the barrier does not cover yet
    checks   for each type that it carries, what tells whether a record of it is unfit
    """

    __slots__ = ("barrier", "checks", "next", "place", "reached", "sent", "takes_foreign")

    def __init__(self, place: Place, stream: Stream, processor: AnyProcessor) -> None:
        self.place = place
        self.checks = checks_of(stream, processor.readers)
        self.takes_foreign = Foreign in stream.contracts
        self.next = 0
        self.reached = 0
        self.barrier = 0
        self.sent = False

    @property
    def settled(self) -> bool:
        """Nothing stands in the topic that a direct delivery could overtake."""
        return not self.sent and max(self.reached, self.next) >= self.barrier


class Forms(dict[type, HeaderForm]):
    """The header forms of one source for public streams, by contract, made when they are first asked for."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, contract: type) -> HeaderForm:
        # The first bytes of the value tell what it is; a header that repeats it would cost as much as the others.
        form = self[contract] = HeaderForm(self._source, contract.__name__, content_type=None)
        return form


class Route(NamedTuple):
    """An output stream as the fold needs it: where each key's records go, and of which types and form they are."""

    places: tuple[Place, ...]
    contracts: frozenset[type]
    public: bool

    @classmethod
    def to(cls, stream: Stream, topology: Topology) -> Self:
        topic, count = topology.topic(stream), topology.partitions(stream)
        return cls(tuple([Place(topic, n) for n in range(count)]), frozenset(stream.contracts), stream.public)


class Shard:
    """One processor's one partition, as this process holds it."""

    def __init__(self, processor: AnyProcessor, partition: int, *, topology: Topology, store: Store) -> None:
        self.processor = processor
        self.partition = partition
        self.state = ShardState(processor, partition, store)
        self.inputs = {
            topology.topic(s): Input(Place(topology.topic(s), partition), s, processor) for s in processor.inputs
        }
        self.changelog = Place(topology.changelog(processor.name), partition)
        self.events = Place(topology.topic(processor.events), partition)
        self.active = False
        self.time = ShardTime()
        self.forms = Forms(f"/{topology.prefix}/{processor.name}")
        self.losses: list[Loss] = []  # of inputs, not yet written down
        self.is_new = False  # one of its inputs has no committed offset yet
        self.parked: set[tuple[str, str, int]] = set()  # timers whose decision raised; tried again after a restart
        # Bound once: these are read for every record.
        self.reader = self.state.reader
        self.writer = self.state.writer
        self.deciders = processor.deciders
        self.appliers = processor.appliers
        self.events_public = processor.events.public
        self.routes = {s.name: Route.to(s, topology) for s in processor.outputs}

    def __str__(self) -> str:
        return f"{self.processor.name}-{self.partition}"

    @property
    def offsets(self) -> dict[Place, int]:
        """What to commit for this shard: the first offsets that have not been folded."""
        return {i.place: i.next for i in self.inputs.values()}

    def rewind(self) -> None:
        """Forget what was not committed."""
        self.state.clear()
        self.losses = []  # asked for again
        self.parked.clear()  # the letters about them may have been given up with the cycle
        self.active = False
