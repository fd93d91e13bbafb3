"""What the tests of the embedded log have in common: a log over memory, and what anyone can see of a runtime."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from kapelle.processors.processor import Processor
from kapelle.schemas import Codec
from kapelle.testing.clock import VirtualClock
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.embedded import EmbeddedLog, EmbeddedRuntime, Inbox
from kapelle.topology.embedded.inbox import Parcel, Position, Receipt
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, MemoryStore, ShardState, Store, StoreFailed
from tests.proof.checks import Seen
from tests.proof.processors import topology
from tests.proof.workload import Published

COUNTING = topology("counting", partitions=2)
TICKS = [Place("proof.ticks", 0), Place("proof.ticks", 1)]
EVENTS = [Place("proof.counting.events", 0), Place("proof.counting.events", 1)]


class Assigned:
    """A listener that remembers what it was given."""

    def __init__(self) -> None:
        self.partitions: dict[str, list[int]] = {}

    def assigned(self, processor: str, partitions: Iterable[int]) -> None:
        self.partitions[processor] = list(partitions)

    def revoked(self, processor: str, partitions: Iterable[int]) -> None:
        raise AssertionError(f"an embedded log takes nothing away, but did: {processor} {list(partitions)}")


class FullDisk(MemoryStore):
    """A store that cannot be written when it is told so."""

    __slots__ = ("full",)

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        if self.full:
            raise StoreFailed(Path("state"), "no space left")
        super().write(batch, sync=sync)


class LogCase:
    """A log over a store, with its inbox, joined and ready to be taken from."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = MemoryStore() if store is None else store  # an empty store is false
        self.clock = VirtualClock()
        self.inbox = Inbox()
        self.log = EmbeddedLog(COUNTING, self.store, inbox=self.inbox, clock=self.clock)
        self.log.patient = False
        self.listener = Assigned()
        self.log.join(self.listener)
        self.log.take(0, 0)

    def start(self) -> None:
        """Read on from the committed offsets, as a member does."""
        self.log.start("counting", self.log.committed("counting", TICKS))

    def publish(self, place: Place, *values: str) -> list[Receipt[Position]]:
        receipts = [Receipt(lambda positions: positions[0]) for _ in values]
        parcels = [Parcel(receipt) for receipt in receipts]
        for parcel, value in zip(parcels, values, strict=True):
            parcel.add(place, (b"k", value.encode(), ()), 1)
        self.inbox.put(parcels, 0)
        return receipts

    def taken(self, records_max: int = 100) -> list[tuple[int, int, str]]:
        """(partition, offset, value) of what the log brings."""
        runs = self.log.take(records_max, 0).runs
        return [(run.place.partition, r.offset, (r.value or b"").decode()) for run in runs for r in run.records]

    def read(self, place: Place, offset: int = 0, limit: int = 100) -> list[tuple[int, str]]:
        return [(r.offset, (r.value or b"").decode()) for r in self.log.read(place, offset, limit)]

    def write(self, place: Place, *values: str) -> None:
        """Publish and make durable, without a cycle."""
        self.publish(place, *values)
        self.log._accept(len(values))
        self.log.flush()


@cache
def codec_of(topology: Topology) -> Codec:
    """One for all: a codec learns to read each type once."""
    return Codec(topology.catalog())


def seen(runtime: EmbeddedRuntime) -> Seen:
    """Everything on every stream, as any reader sees it."""
    codec = codec_of(runtime.topology)
    found: dict[str, dict[int, list[tuple[str, Any]]]] = defaultdict(dict)
    for name, stream in runtime.topology.streams.items():
        for partition in range(runtime.topology.partitions(stream)):
            rows = found[name][partition] = []
            while len(rows) < runtime.end(name, partition):
                records = runtime.read(name, partition, len(rows), limit=10_000)
                rows += [((r.key or b"").decode(), codec.decode(r.value or b"")) for r in records]
    return found


def stored_shards(topology: Topology, store: Store) -> list[tuple[Processor[Any], int, ShardState[Any]]]:
    """The tables as they are on disk, whoever is running."""
    return [
        (processor, partition, ShardState(processor, partition, store))
        for name, processor in topology.processors.items()
        for partition in range(topology.processor_partitions(name))
    ]


def by_place(topology: Topology, published: Iterable[Published]) -> dict[Place, list[Published]]:
    """What is to be published, by where it goes. Within a place, the order counts."""
    found: dict[Place, list[Published]] = defaultdict(list)
    for name, key, value in published:
        stream = topology.streams[name]
        place = Place(topology.topic(stream), partition_of(key, topology.partitions(stream)))
        found[place].append((name, key, value))
    return dict(found)
