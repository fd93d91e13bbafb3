"""The embedded runtime under every crash: each seed is one history, and the same seed gives the same history.

Somebody publishes and counts what is acknowledged, the runtime folds step by step, and chance decides what goes wrong:
the process dies at a named moment or just before or after a write, cycles are given up, records come twice, partitions
are read in any order and amount. After every start the tables must be the fold of the history, and nothing that was
acknowledged may be missing. In the end everything must be there once and in order.
"""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from kapelle.testing.clock import VirtualClock, skip_to_next_timer
from kapelle.testing.schedule import Crashed
from kapelle.topology.crash import CrashPoint
from kapelle.topology.embedded import EmbeddedLog, EmbeddedRuntime, EmbeddedSettings, Position
from kapelle.topology.embedded.partitions import Partition, Reader
from kapelle.topology.errors import CycleAborted, ProducerLost
from kapelle.topology.log import Place, Record, Run, Taken
from kapelle.topology.member import Member
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import Batch, MemoryStore, ShardState
from tests.proof.checks import table_violations, violations
from tests.proof.mutants import BarrierIgnored, OffsetsOutside, TablesBeforeCommit
from tests.proof.processors import topology
from tests.proof.workload import Published, mixed
from tests.unit.embedded.fakes import by_place, seen, stored_shards

ALL = topology("all", partitions=2)
SEEDS = 500
MUTANT_SEEDS = 200
TURNS = 50
RECORDS = 9
BEFORE_WRITE, AFTER_WRITE = "before-write", "after-write"
# Nothing is ever restored here, so a crash while restoring cannot be.
MOMENTS = [BEFORE_WRITE, AFTER_WRITE, *(p.value for p in CrashPoint if p is not CrashPoint.DURING_RESTORE)]
LIMITS = Limits(records_max=20, folds_max=40, settle_ms_max=40, settle_again_ms=100, cycle_ms_max=60_000)


class Disk(MemoryStore):
    """A disk that tells when it is written."""

    __slots__ = ("reached",)

    def __init__(self) -> None:
        super().__init__()
        self.reached: Callable[[str], None] = lambda _moment: None

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        self.reached(BEFORE_WRITE)
        super().write(batch, sync=sync)
        self.reached(AFTER_WRITE)


class ChancyLog(EmbeddedLog):
    """A log that reads in any order and amount, brings records twice, and refuses commits, as chance has it."""

    chance: random.Random | None = None
    refusals: list[Exception]
    repeats = 0

    def take(self, records_max: int, wait_s: float) -> Taken:
        if self.chance is not None:
            records_max = self.chance.randrange(records_max + 1)
        again, self.repeats = list(self._again(self.repeats)), 0
        taken = super().take(records_max, wait_s)
        return Taken(again + taken.runs, taken.ends)

    def commit(self) -> None:
        if self.refusals:
            raise self.refusals.pop()
        super().commit()

    def _order(self, lagging: list[Reader]) -> list[Reader]:
        if self.chance is not None:
            lagging = self.chance.sample(lagging, self.chance.randrange(len(lagging) + 1))
        return lagging

    def _again(self, count: int) -> Iterator[Run]:
        """Records that were brought before."""
        for (processor, place), reader in self._readers.items() if count else ():
            begin = max(reader.position - count, 0)
            found = reader.partition.read(begin, reader.position - begin)
            yield Run(processor, place, [Record(r.offset, r.key, r.value, r.headers) for r in found])


class History:
    """One history: a disk, the runtime on it while it lives, and somebody who publishes."""

    def __init__(
        self,
        published: list[Published],
        *,
        log: type[ChancyLog] = ChancyLog,
        member: type[Member] = Member,
        same_cycle: bool = True,
    ) -> None:
        self.clock = VirtualClock()
        self.disk = Disk()
        self.chance: random.Random | None = None
        self.problems: list[str] = []
        self.crashes = 0
        self.fate: tuple[str, int] | None = None
        self._type = type("Chancy", (EmbeddedRuntime,), {"log_type": log, "member_type": member})
        self._settings = EmbeddedSettings(member=MemberSettings(same_cycle=same_cycle, limits=LIMITS))
        self._messages = by_place(ALL, published)
        self._next = dict.fromkeys(self._messages, 0)
        self._acknowledged = dict.fromkeys(self._messages, 0)
        self.runtime: EmbeddedRuntime | None = None

    # What happens ---------------------------------------------------------------------------------------------------

    def start(self) -> EmbeddedRuntime:
        """A new process finds the disk as the last one left it, checks it, and goes on. It may die of its start."""
        while self.runtime is None:
            self.disk.reached = self._reached
            self._lives(self._open)
        log = self.runtime.log
        assert isinstance(log, ChancyLog)
        log.refusals, log.chance = [], self.chance
        for place in self._next:
            self._next[place] = end = log.end(place)
            if end < self._acknowledged[place]:
                self.problems.append(f"{place}: {self._acknowledged[place]} acknowledged, but only {end} are there")
        self.problems += table_violations(stored_shards(ALL, self.disk), seen(self.runtime))
        return self.runtime

    def _open(self) -> None:
        self.runtime = self._type(
            ALL, self.disk, self._settings, clock=self.clock, crash=lambda point: self._reached(point.value)
        )

    def publish(self, place: Place, count: int) -> None:
        """Publish the next messages of a place, and note what is acknowledged."""
        runtime = self.runtime or self.start()
        for name, key, value in self._messages[place][self._next[place] :][:count]:
            runtime.publish(name, key, value).add_done_callback(self._acknowledge)
            self._next[place] += 1

    def step(self) -> None:
        runtime = self.runtime or self.start()
        self._lives(runtime.step)

    def stop(self) -> None:
        if self.runtime is not None:
            self._lives(self.runtime.close)
        self.runtime = None

    def finish(self) -> list[str]:
        """Nothing goes wrong any more: everything must come to its end. Returns all that is wrong."""
        self.fate = self.chance = None
        self.stop()
        runtime = self.start()
        for place, messages in self._messages.items():
            self.publish(place, len(messages))
        while skip_to_next_timer(runtime, self.clock):
            pass
        published = [message for messages in self._messages.values() for message in messages]
        self.problems += violations(published, seen(runtime))
        self.problems += table_violations(self._shards(runtime), seen(runtime))
        return self.problems

    def places(self) -> list[Place]:
        """Where there is something left to publish."""
        return [place for place, messages in self._messages.items() if self._next[place] < len(messages)]

    # How it happens -------------------------------------------------------------------------------------------------

    def _lives(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Crashed:
            self.crashes += 1
            self.runtime = self.fate = None
            disk, self.disk = self.disk, self.disk.copy()
            disk.reached = self._dead

    def _reached(self, moment: str) -> None:
        if self.fate is not None and self.fate[0] == moment:
            self.fate = (moment, self.fate[1] - 1)
            if self.fate[1] == 0:
                raise Crashed

    @staticmethod
    def _dead(_moment: str) -> None:
        raise AssertionError("a dead process writes")

    def _acknowledge(self, future: Future[Position]) -> None:
        if future.exception() is None:
            self._acknowledged[future.result().place] += 1

    @staticmethod
    def _shards(runtime: EmbeddedRuntime) -> list[tuple[Any, int, ShardState[Any]]]:
        return [(s.processor, s.partition, s.state) for s in runtime.member.shards.values()]


# Chance -------------------------------------------------------------------------------------------------------------


def simulate(seed: int, *, log: type[ChancyLog] = ChancyLog, member: type[Member] = Member) -> list[str]:
    """The violations of one seeded history."""
    chance = random.Random(seed)
    history = History(mixed(seed, RECORDS), log=log, member=member, same_cycle=chance.random() < 0.7)
    history.chance = chance
    for _ in range(TURNS):
        HAPPENINGS[chance.choices(range(len(HAPPENINGS)), WEIGHTS)[0]](history, chance)
    return history.finish()


def _step(history: History, chance: random.Random) -> None:
    history.step()
    history.clock.advance(chance.randrange(8))


def _publish(history: History, chance: random.Random) -> None:
    for place in chance.sample(history.places(), min(3, len(history.places()))):
        history.publish(place, chance.randrange(1, 4))


def _doom(history: History, chance: random.Random) -> None:
    history.fate = (chance.choice(MOMENTS), chance.randrange(1, 3))


def _stop(history: History, _chance: random.Random) -> None:
    history.stop()


def _refuse(history: History, chance: random.Random) -> None:
    if history.runtime is not None:
        error = chance.choice([CycleAborted("the commit was refused"), ProducerLost("the commit was not answered")])
        history.runtime.log.refusals.append(error)  # type: ignore[attr-defined]  # it is a ChancyLog


def _repeat(history: History, chance: random.Random) -> None:
    if history.runtime is not None:
        history.runtime.log.repeats = chance.randrange(1, 4)  # type: ignore[attr-defined]


def _switch(history: History, chance: random.Random) -> None:
    if history.runtime is not None:
        history.runtime.member.delivery.enabled = chance.random() < 0.5


HAPPENINGS = (_step, _publish, _doom, _stop, _refuse, _repeat, _switch)
WEIGHTS = (50, 25, 12, 3, 4, 3, 3)


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_every_seed_keeps_everything_once_and_in_order(first: int) -> None:
    found = {seed: problems for seed in range(first, first + 100) if (problems := simulate(seed))}

    assert found == {}


def test_the_same_seed_gives_the_same_bytes() -> None:
    def bytes_of(seed: int) -> list[tuple[bytes, bytes]]:
        chance = random.Random(seed)
        history = History(mixed(seed, RECORDS))
        history.chance = chance
        for _ in range(TURNS):
            HAPPENINGS[chance.choices(range(len(HAPPENINGS)), WEIGHTS)[0]](history, chance)
        history.finish()
        return list(history.disk.scan(b"", b"\xff"))

    assert bytes_of(3) == bytes_of(3)


# Every moment -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("same_cycle", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_at_any_passing_of_a_moment_loses_and_doubles_nothing(moment: str, same_cycle: bool) -> None:
    found: dict[int, list[str]] = {}
    passing = 0
    crashed = True
    while crashed:
        passing += 1
        history = History(mixed(1, 4), same_cycle=same_cycle)
        history.fate = (moment, passing)
        for _ in range(12):
            for place in history.places()[:2]:
                history.publish(place, 2)
            history.step()
            history.clock.advance(9)
        history.stop()
        crashed = history.crashes > 0
        if problems := history.finish():
            found[passing] = problems

    assert found == {}
    assert passing > 1


# Mutants ------------------------------------------------------------------------------------------------------------


class TwoWrites(ChancyLog):
    """Writes the log first and the tables afterwards, as if there were a changelog to repair them from."""

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        super().write(Batch(), sync=sync)
        super().write(batch, sync=sync)


class OffsetsForgotten(ChancyLog):
    """Writes everything but the offsets."""

    def commit(self) -> None:
        super().commit()
        self._offsets = {}


class AcknowledgedEarly(ChancyLog):
    """Acknowledges what was taken before it is written."""

    def _accept(self, records_max: int) -> None:
        super()._accept(records_max)
        for parcel, begins in self._parcels:
            parcel.written(begins)
        self._parcels = []


class PublishedDropped(ChancyLog):
    """Forgets with a cycle what was published for it."""

    def abort(self) -> None:
        for partition in self._grown:
            partition.published = []
        super().abort()


class SentKept(ChancyLog):
    """Keeps what a cycle has sent when the cycle is given up."""

    def abort(self) -> None:
        kept: dict[Partition, list[Any]] = {partition: partition.sent for partition in self._grown}
        super().abort()
        for partition, sent in kept.items():
            partition.sent = sent


@pytest.mark.parametrize("mutant", [TwoWrites, OffsetsForgotten, AcknowledgedEarly, PublishedDropped, SentKept])
def test_a_log_with_one_step_broken_is_caught(mutant: type[ChancyLog]) -> None:
    assert any(simulate(seed, log=mutant) for seed in range(MUTANT_SEEDS))


def test_a_member_that_lets_commands_overtake_each_other_is_caught() -> None:
    assert any(simulate(seed, member=BarrierIgnored) for seed in range(MUTANT_SEEDS))


@pytest.mark.parametrize("mutant", [TablesBeforeCommit, OffsetsOutside])
def test_a_member_that_does_not_write_what_it_committed_is_refused(mutant: type[Member]) -> None:
    with pytest.raises(AssertionError, match="the transaction is committed"):
        simulate(0, member=mutant)
