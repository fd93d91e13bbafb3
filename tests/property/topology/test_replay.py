"""The replay law: after every step of any run, every shard's tables are the fold of its history."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.schemas import Codec
from kapelle.testing.cluster import Cluster
from kapelle.testing.simulated_log import SimulatedLog
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.log import Place
from kapelle.topology.member import Member
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import MemoryStore
from tests.proof.checks import Seen, table_violations, violations
from tests.proof.contracts import Hop, Offer, Reminder, Side, Tick
from tests.proof.processors import topology
from tests.proof.workload import Published

TOPOLOGIES = {partitions: topology("all", prefix="r", partitions=partitions) for partitions in (1, 2)}
CODEC = Codec(TOPOLOGIES[1].catalog())
STEPS_MAX = 1_000
IDLE_STEPS = 5

KEYS = st.sampled_from(["a", "b", "ab"])
KINDS = st.sampled_from(["ticks", "offers", "stage-1", "reminders"])
# What happens: records of some kind are published, time goes by, or the member does a step.
TURNS = st.lists(st.one_of(st.tuples(KINDS, KEYS, st.integers(0, 20)), st.integers(1, 30), st.none()), max_size=40)


class Run:
    """One member on a cluster without faults, and what was published to it."""

    def __init__(self, made: Topology, sizes: list[int], limits: Limits) -> None:
        self.topology = made
        self.cluster = Cluster()
        self.published: list[Published] = []
        self.now_ms = 1_000_000
        self._sizes = sizes
        log = SimulatedLog(self.cluster, made, "one", choose=self._choose)
        settings = MemberSettings(limits=limits)
        self.member = Member(made, log, MemoryStore(), settings=settings, clock=lambda: self.now_ms)
        self.member.join()
        for name in made.processors:
            self.cluster.share(name, range(made.processor_partitions(name)), ["one"])

    def _choose(self, count: int) -> int:
        """How many of the records that are there are taken: as the example says, in turn."""
        self._sizes.append(self._sizes.pop(0))
        return min(self._sizes[-1], count - 1)

    def publish(self, kind: str, key: str, number: int) -> None:
        name = f"{kind}-{len(self.published)}"
        sent = sum(1 for stream, k, _ in self.published if (stream, k) == (kind, key)) + 1
        value: Any = {
            "ticks": Tick(name, key, 0, 1),
            "offers": Offer(name, Side.LEFT if number % 2 else Side.RIGHT),
            "stage-1": Hop(key, sent),
            "reminders": Reminder(name, number),
        }[kind]
        stream = self.topology.streams[kind]
        place = Place(self.topology.topic(stream), partition_of(key, self.topology.partitions(stream)))
        self.cluster.publish(place, key.encode(), CODEC.encode(value))
        self.published.append((kind, key, value))

    def drain(self) -> None:
        """Take everything, and let every timer come due: go on until nothing has been done for a while."""
        self._sizes[:] = [1_000]
        idle = 0
        for _ in range(STEPS_MAX):
            self.now_ms += 10
            idle = 0 if self.member.step() else idle + 1
            if idle == IDLE_STEPS:
                return
        raise AssertionError(f"still busy after {STEPS_MAX} steps")

    def seen(self) -> Seen:
        return {
            name: {
                partition: [
                    ((e.key or b"").decode(), CODEC.decode(e.value or b""))
                    for _, e in self.cluster.committed_entries(Place(self.topology.topic(stream), partition))
                ]
                for partition in range(self.topology.partitions(stream))
            }
            for name, stream in self.topology.streams.items()
        }

    def differing(self) -> list[str]:
        shards = [(s.processor, s.partition, s.state) for s in self.member.shards.values()]
        return table_violations(shards, self.seen())


LIMITS = st.builds(
    Limits,
    records_max=st.sampled_from([1, 3, 1_000]),
    folds_max=st.sampled_from([1, 2, 1_000]),
    overlay_bytes_max=st.sampled_from([1, 1_000_000]),
    settle_ms_max=st.just(5),
    settle_again_ms=st.just(5),
    cycle_ms_max=st.just(60_000),
)


@settings(max_examples=150, deadline=None)
@given(
    partitions=st.sampled_from([1, 2]),
    turns=TURNS,
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    limits=LIMITS,
)
def test_tables_are_the_fold_of_history_after_every_step(
    partitions: int, turns: list[tuple[str, str, int] | int | None], sizes: list[int], limits: Limits
) -> None:
    run = Run(TOPOLOGIES[partitions], sizes, limits)
    run.member.step()

    for turn in turns:
        match turn:
            case (kind, key, number):
                run.publish(kind, key, number)
            case int(ms):
                run.now_ms += ms
            case None:
                run.member.step()
                assert run.differing() == []
    run.drain()

    assert run.differing() == []
    assert violations(run.published, run.seen()) == []
