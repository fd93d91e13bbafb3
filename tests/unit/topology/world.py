"""A small world to test the runtime in: one or more real members on a simulated cluster, driven step by step.

world = World(processor_of(decide))
world.publish("ticks", "a", tick("1"))
world.run()
assert world.events("counting") == [("a", Counted("1", "a", 1))]
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas import Codec, Contract
from kapelle.schemas.contracts import DeadLetter
from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.testing.cluster import Cluster, Entry, Outcome, Transaction
from kapelle.testing.simulated_log import SimulatedLog
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.crash import Crash, never
from kapelle.topology.log import Headers, Out, Place, Row, Taken
from kapelle.topology.member import Member
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.shard import Shard
from kapelle.topology.tables import MemoryStore, Store
from tests.proof.checks import folded
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Counting, count, counted

NOW_MS = 1_700_000_000_000
STEPS_MAX = 200
# Slow machines must not end a cycle early: tests that want that say so.
LIMITS = Limits(cycle_ms_max=60_000)

ticks = Stream("ticks", (Tick,))
counts = Stream("counting.events", (Counted,), Keep.FOR_EVER)

Decided = Callable[[Message[Tick], Counting, int], Iterable[Effect]]
Applied = Callable[[Message[Counted], Counting], None]


def tick(name: str, word: str = "word") -> Tick:
    return Tick(name, word, NOW_MS, 1)


def processor_of(
    decide: Decided = count, apply: Applied = counted, *, outputs: Sequence[Stream] = ()
) -> Processor[Counting]:
    """A processor like `counting`, with handlers of one's own."""
    processor = Processor("counting", tables=Counting, inputs=[ticks], events=counts, outputs=outputs)
    processor.decides(Tick)(decide)
    processor.applies(Counted)(apply)
    return processor


class WatchedLog(SimulatedLog):
    """A simulated log that remembers what it was asked, and fails when told to."""

    def __init__(self, cluster: Cluster, topology: Topology, name: str) -> None:
        super().__init__(cluster, topology, name)
        self.asked: list[tuple[int, float]] = []  # records_max and wait_s of each take
        self.ends_asked: list[list[Place]] = []
        self.errors: dict[str, list[Exception]] = {}  # by method: what its next calls raise, before they do anything
        self.published_schemas: list[SchemaRecord] = []
        self.schemas_asked = 0
        self.freed: list[tuple[str, list[Place]]] = []

    def take(self, records_max: int, wait_s: float) -> Taken:
        self.asked.append((records_max, wait_s))
        self._fail("take")
        return super().take(records_max, wait_s)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        self.ends_asked.append(list(places))
        self._fail("ends")
        return super().ends(places)

    def start(self, processor: str, offsets: Mapping[Place, int]) -> None:
        self._fail("start")
        super().start(processor, offsets)

    def committed(self, processor: str, places: Sequence[Place]) -> dict[Place, int]:
        self._fail("committed")
        self._fail(f"committed of {processor}")
        return super().committed(processor, places)

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:
        self._fail("rows")
        return super().rows(rows_max, wait_s)

    def schemas(self) -> list[SchemaRecord]:
        self.schemas_asked += 1
        return self.published_schemas

    def free(self, processor: str, places: Sequence[Place]) -> None:
        self.freed.append((processor, list(places)))
        super().free(processor, places)

    def begin(self) -> None:
        self._fail("begin")
        super().begin()

    def send(self, outs: Sequence[Out]) -> None:
        self._fail("send")
        super().send(outs)

    def send_rows(self, place: Place, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._fail("send_rows")
        super().send_rows(place, rows)

    def send_offsets(self, processor: str, offsets: Mapping[Place, int]) -> None:
        self._fail("send_offsets")
        super().send_offsets(processor, offsets)

    def commit(self) -> None:
        self._fail("commit")
        super().commit()

    def abort(self) -> None:
        self._fail("abort")
        super().abort()

    def renew(self) -> None:
        self._fail("renew")
        super().renew()

    def _fail(self, method: str) -> None:
        if self.errors.get(method):
            raise self.errors[method].pop(0)


class World:
    """A topology, its cluster, and the members that were started. The clock stands still until told to go on."""

    def __init__(
        self,
        *processors: Processor[Any],
        partitions: int = 1,
        settings: MemberSettings | None = None,
        store: Store | None = None,
        crash: Crash = never,
    ) -> None:
        self.topology = Topology(processors, prefix="w", partitions=partitions)
        self.codec = Codec(self.topology.catalog())
        self.cluster = Cluster()
        self.now_ms = NOW_MS
        self.settings = settings or MemberSettings(limits=LIMITS)
        self.members: dict[str, Member] = {}
        self.logs: dict[str, WatchedLog] = {}
        self.store: Store = store if store is not None else MemoryStore()
        self.member = self.start("one", store=self.store, crash=crash)
        self.log = self.logs["one"]

    def start(self, name: str, *, store: Store | None = None, crash: Crash = never) -> Member:
        """Start a member. Partitions are shared among all that were started."""
        log = self.logs[name] = WatchedLog(self.cluster, self.topology, name)
        member = Member(
            self.topology,
            log,
            store if store is not None else MemoryStore(),
            settings=self.settings,
            clock=lambda: self.now_ms,
            crash=crash,
        )
        self.members[name] = member
        member.join()
        self.share()
        return member

    def restart(self) -> None:
        """The first member dies without a word; another of its name, with its store, takes its place."""
        self.cluster.expel("one")
        self.member = self.start("one", store=self.store)
        self.log = self.logs["one"]

    def share(self, *, among: Sequence[str] = ()) -> None:
        """Partitions go to these members in turn; to all by default."""
        for name in self.topology.processors:
            partitions = range(self.topology.processor_partitions(name))
            self.cluster.share(name, partitions, list(among) or list(self.members))

    def publish(
        self, stream: str, key: str | bytes | None, value: Contract | bytes | None, headers: Headers | None = None
    ) -> None:
        """A record from outside. A key or value of bytes goes as it is."""
        declared = self.topology.streams[stream]
        partition = partition_of(key, self.topology.partitions(declared)) if isinstance(key, str) else 0
        stored_key = key.encode() if isinstance(key, str) else key
        stored = value if value is None or isinstance(value, bytes) else self.codec.encode(value)
        place = Place(self.topology.topic(declared), partition)
        self.cluster.partitions.setdefault(place, []).append(Entry(None, stored_key, stored, headers))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            for member in list(self.members.values()):
                member.step()

    def run(self) -> None:
        """Step until there is nothing to do for anyone."""
        for _ in range(STEPS_MAX):
            busy = [member.step() for member in list(self.members.values())]
            if not any(busy) and all(m.ready for m in self.members.values() if m.shards) and not self._unread():
                return
        raise AssertionError(f"still busy after {STEPS_MAX} steps")

    def entries(self, topic: str) -> list[Entry]:
        """What a `read_committed` reader sees on a topic, partition by partition."""
        places = sorted(p for p in self.cluster.partitions if p.topic == topic)
        return [entry for place in places for _, entry in self.cluster.committed_entries(place)]

    def read(self, stream: str) -> list[tuple[str, Any]]:
        entries = self.entries(self.topology.topic(self.topology.streams[stream]))
        return [((e.key or b"").decode(), self.codec.decode(e.value or b"")) for e in entries]

    def events(self, processor: str) -> list[tuple[str, Any]]:
        return self.read(self.topology.processors[processor].events.name)

    def letters(self) -> list[DeadLetter]:
        letters = Codec(self.topology.catalog(), record_bytes_max=10_000_000)
        return [letters.decode(e.value or b"") for e in self.entries(self.topology.dead_letters)]  # type: ignore[misc]

    def committed(self, processor: str) -> dict[Place, int]:
        """The offsets that the processor's group has committed."""
        return self.cluster.groups[processor].offsets

    def shard(self, processor: str, partition: int = 0) -> Shard:
        return self.member.shards[processor, partition]

    def fold_of(self, processor: str, partition: int = 0) -> str:
        """The fingerprint of the tables that history alone gives."""
        found = self.topology.processors[processor]
        entries = self.cluster.committed_entries(Place(self.topology.topic(found.events), partition))
        history = [((e.key or b"").decode(), self.codec.decode(e.value or b"")) for _, e in entries]
        return folded(found, partition, history).fingerprint()

    def entry_in(self, transaction: Transaction) -> Entry:
        """A record of a transaction, of no consequence."""
        return Entry(transaction, b"k", b"?", None)

    def abort_open(self) -> None:
        """The cluster ends every transaction that nobody has finished."""
        for transaction in list(self.cluster.open):
            self.cluster.finish(transaction, Outcome.ABORTED)

    def _unread(self) -> bool:
        return any(
            self.cluster.committed_entries(place, self.cluster.groups[name].offsets.get(place, 0))
            for name, processor in self.topology.processors.items()
            for stream in processor.inputs
            for place in (
                Place(self.topology.topic(stream), p) for p in range(self.topology.processor_partitions(name))
            )
        )
