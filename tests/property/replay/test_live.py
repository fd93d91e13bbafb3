"""Verifying while members go on: whatever is written between two looks, right tables are found right."""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.topology.embedded import LogRecord
from kapelle.topology.log import Place
from kapelle.topology.replay.verification import Stores, Verdict, Verifying
from kapelle.topology.settings import Limits
from kapelle.topology.tables import MemoryStore
from tests.property.topology.test_replay import CODEC, KEYS, KINDS, LIMITS, TOPOLOGIES, Run

PUBLISHED = st.lists(st.tuples(KINDS, KEYS, st.integers(0, 20)), min_size=5, max_size=40)
PAUSES = st.lists(st.integers(1, 3), min_size=1, max_size=6)


class Busy:
    """A run that goes on by so many steps whenever somebody looks at its log, with something new to do in each."""

    def __init__(self, run: Run, pauses: list[int], published: Sequence[tuple[str, str, int]] = ()) -> None:
        self.run = run
        self._pauses = cycle(pauses)
        self._published = cycle(published)

    def go_on(self) -> None:
        for _ in range(next(self._pauses)):
            self.run.now_ms += 1
            for one in islice(self._published, 3):
                self.run.publish(*one)
            self.run.member.step()


class ClusterTape:
    """A partition of the simulated cluster. Whoever reads it is never alone with it."""

    def __init__(self, busy: Busy, place: Place) -> None:
        self._busy = busy
        self._place = place
        self._position = 0

    def end(self) -> int:
        self._busy.go_on()
        return self._busy.run.cluster.end(self._place)

    def read(self, end: int) -> Iterator[list[LogRecord]]:
        cluster = self._busy.run.cluster
        while self._position < end:
            stop = min(cluster.stable_end(self._place), end)
            there = cluster.committed_entries(self._place, self._position)
            yield [LogRecord(at, 0, e.key, e.value, e.headers) for at, e in there if at < stop]
            self._position = stop
            self._busy.go_on()


def verdicts(busy: Busy) -> Iterator[Verdict]:
    topology = busy.run.topology
    for shard in [(name, n) for name in topology.processors for n in range(topology.processor_partitions(name))]:
        verifying = Verifying(topology, shard, decode=CODEC.decode, stores=Stores(MemoryStore(), MemoryStore()))
        history = ClusterTape(busy, verifying.fold.place)
        yield verifying.verify(history, ClusterTape(busy, Place(topology.changelog(shard[0]), shard[1])))


@settings(max_examples=40)
@given(
    partitions=st.sampled_from([1, 2]),
    published=PUBLISHED,
    pauses=PAUSES,
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    limits=LIMITS,
)
def test_tables_that_change_while_they_are_compared_are_right(
    partitions: int, published: list[tuple[str, str, int]], pauses: list[int], sizes: list[int], limits: Limits
) -> None:
    run = Run(TOPOLOGIES[partitions], sizes, limits)
    run.member.step()

    found = list(verdicts(Busy(run, pauses, published)))

    assert [verdict for verdict in found if not verdict.is_right] == []


@settings(max_examples=40)
@given(published=PUBLISHED, pauses=PAUSES, number=st.integers(0, 1_000))
def test_a_row_that_was_changed_is_found_while_other_shards_go_on(
    published: list[tuple[str, str, int]], pauses: list[int], number: int
) -> None:
    run = Run(TOPOLOGIES[1], [1_000], Limits(cycle_ms_max=60_000))
    run.member.step()
    for one in [("ticks", "a", 0), *published]:
        run.publish(*one)
    run.drain()
    rows = [(name, key, value) for name, s in run.member.shards.items() for key, value in s.state.encoded()]
    shard, key, _ = rows[number % len(rows)]
    run.cluster.publish(Place(run.topology.changelog(shard[0]), shard[1]), key, None)

    found = {(v.processor, v.partition): v for v in verdicts(Busy(run, pauses))}

    assert [name for name, verdict in found.items() if not verdict.is_right] == [shard]
    first = found[shard].first
    assert first is not None
    assert (first.table, first.found) == (key[: key.index(0)].decode(), None)
