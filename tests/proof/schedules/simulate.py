"""Schedules and backfills on a simulated cluster: one seed is one history of crashes, duplicates and people.

    python -m tests.proof.schedules.simulate --seeds 10000 [--first 0]

Time passes in leaps, over the days on which the clocks of Europe and America are put forward or back. In some histories
the clocks of members are set, back and ahead, each by itself; in a few of them by weeks. Twice the faults end and
everything comes to rest: then no tick may be left to decide on, each one has exactly one fate, each slot of a backfill
exactly one instance, and tables are what history says.
"""

import argparse
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from kapelle.processors.permits import permits
from kapelle.processors.processor import Processor
from kapelle.processors.runs import runs
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.processors.workflows import workflows
from kapelle.schemas import contracts as c
from kapelle.testing import clock_jumps
from kapelle.testing.clock_jumps import Jumping
from kapelle.testing.schedule import LIMITS, TURNS, NotDrained, Schedule
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.log import Place
from tests.proof.checks import Seen, table_violations
from tests.proof.schedules.fates import AHEAD_MS_MAX, Histories, fate_violations
from tests.proof.schedules.lanes import MOST, lane_violations
from tests.proof.schedules.workload import HOUR_MS, People
from tests.proof.simulate import DELIVERIES, seen_by_readers
from tests.proof.workload import Published

PROCESSORS: Final[tuple[Processor[Any], ...]] = (workflows, runs, permits)
WORKFLOWS: Final = ("w-1", "w-2", "w-3")
TURNS_OF_WAVES: Final = (130, 90)
# Shortly before clocks are put forward or back in Berlin or New York, and a day on which nothing happens.
BEGINS: Final = ("2026-03-28T23:40", "2026-10-24T23:40", "2026-11-01T04:30", "2026-03-08T06:20", "2026-07-01T12:00")
JUMPING_EVERY: Final = 3  # of seeds, those in which clocks are set
AWAY_EVERY: Final = 24  # of seeds, those in which they are set by weeks
JUMPS_MS: Final = (1_000, 60_000, 600_000, 3 * HOUR_MS)
LEAPS_MS: Final = (1_000, 20_000, 60_000, 60_000, 130_000, 130_000, 600_000, 2 * HOUR_MS)
LONGEST_TIMER_MS: Final = 50 * 24 * HOUR_MS  # a clock may be three weeks ahead once, and then three weeks behind
RESTS_MS: Final = 3_000  # without a timer
PATIENCE: Final = 5
AT_ONCE: Final = 3  # things that people do in a turn, at most


class ShortJumps(Jumping):
    """Clocks that are set by some hours at most."""

    def turn(self) -> None:
        if self._chance.random() < clock_jumps.JUMP_CHANCE:
            clock = self._chance.choice(self._clocks)
            by_ms = self._chance.choice(JUMPS_MS) * self._chance.choice((-1, 1)) + self._chance.randrange(1_000)
            clock.ahead_ms = 0 if self._chance.random() < clock_jumps.BACK_CHANCE else by_ms
            self.jumps += 1


class Scheduled(Schedule):
    """A schedule with people, in which time passes."""

    round_ms = 250

    def __init__(self, seed: int) -> None:
        is_jumping, is_away = seed % JUMPING_EVERY == 0, seed % AWAY_EVERY == 0
        jumping = (Jumping if is_away else ShortJumps)(seed, LONGEST_TIMER_MS) if is_jumping else None
        self.now_ms = 0
        super().__init__(
            Topology(PROCESSORS, prefix="schedules", partitions=2),
            seed,
            same_cycle=DELIVERIES[seed % len(DELIVERIES)],
            limits=LIMITS,
            jumping=jumping,
        )
        begin = datetime.fromisoformat(BEGINS[seed % len(BEGINS)]).replace(tzinfo=UTC)
        self.now_ms = int(begin.timestamp()) * 1_000 + self.chance.randrange(60_000)
        self.jumping = jumping
        self.longest_jump_ms = max(clock_jumps.SIZES_MS if is_away else JUMPS_MS)
        self.people = People(WORKFLOWS, random.Random(f"people {seed}"), has_dense_all=not is_away)
        self.turns = {**TURNS, "leap": 6, "deed": 8}

    def publish_now(self, messages: Iterable[Published]) -> None:
        """In this order, at once."""
        for name, key, value in messages:
            stream = self.topology.streams[name]
            place = Place(self.topology.topic(stream), partition_of(key, self.topology.partitions(stream)))
            self.cluster.publish(place, key.encode(), self.codec.encode(value))

    def seen(self) -> Seen:
        """Everything on every stream."""
        return seen_by_readers(self, self.topology)

    def shards(self) -> list[Any]:
        """All shards, with their owners' tables."""
        return [shard for process in self.processes if process.member for shard in process.member.shards.values()]

    def drain(self) -> None:
        """The same, with more patience: after an absence of weeks many instances wait for each other."""
        for _ in range(PATIENCE - 1):
            with suppress(NotDrained):
                super().drain()
                return
        super().drain()

    def _deed(self) -> None:
        self.people.now_ms = self.now_ms
        for _ in range(self.chance.randint(1, AT_ONCE)):
            self.publish_now(self.people.deed())

    def _leap(self) -> None:
        self.now_ms += self.chance.choice(LEAPS_MS) + self.chance.randrange(1_000)

    def _idle(self) -> bool:
        return super()._idle() and all(self._is_at_rest(shard) for shard in self.shards())

    def _rests(self, due_at_ms: int | None) -> bool:  # noqa: ARG002 - it depends on the time of the shard
        return True

    @staticmethod
    def _is_at_rest(shard: Any) -> bool:
        due_at_ms = shard.state.next_due_at_ms()
        return due_at_ms is None or due_at_ms > shard.time.now_ms + RESTS_MS


def histories_of(seen: Seen) -> Histories:
    """What happened to each workflow."""
    found: dict[str, list[Any]] = {key: [] for key in WORKFLOWS}
    for rows in seen[WORKFLOW_EVENTS.name].values():
        for key, event in rows:
            found.setdefault(key, []).append(event)
    return found


def simulate(seed: int, counts: Counter[str] | None = None) -> list[str]:
    """The violations of one seeded history."""
    schedule = Scheduled(seed)
    try:
        schedule.publish_now(schedule.people.first())
        for turns in TURNS_OF_WAVES:
            schedule.run(turns)
            schedule.publish_now(schedule.people.ending())
            schedule.drain()
            if problems := _violations(schedule, counts if turns is TURNS_OF_WAVES[-1] else None):
                return problems
        return []
    finally:
        schedule.close()


def _violations(schedule: Scheduled, counts: Counter[str] | None) -> list[str]:
    seen, shards = schedule.seen(), schedule.shards()
    histories = histories_of(seen)
    schedule.people.ended = [
        (key, event.instance_id)
        for key, events in histories.items()
        for event in events
        if isinstance(event, c.InstanceEnded) and event.was_launched
    ]
    # Where clocks are set, a timer may have been set by one that was slow.
    late_ms = 0 if schedule.jumping is None else 2 * schedule.longest_jump_ms
    times = {
        shard.partition: process.clock() - late_ms
        for process in schedule.processes
        if process.member is not None
        for shard in process.member.shards.values()
        if shard.processor is workflows
    }
    now_ms = {
        key: times[partition_of(key, schedule.topology.processor_partitions(workflows.name))] for key in histories
    }
    ahead_ms_max = AHEAD_MS_MAX if schedule.jumping is None else LONGEST_TIMER_MS
    problems, fates = fate_violations(histories, now_ms, ahead_ms_max=ahead_ms_max)
    more, lanes = lane_violations(histories)
    if counts is not None:
        most = max(counts[MOST], lanes[MOST])
        counts.update(fates + lanes)
        counts[MOST] = most
    problems += more + table_violations([(s.processor, s.partition, s.state) for s in shards], seen)
    problems += schedule.garbage.violations(schedule.codec)
    return problems + (schedule.jumping.problems if schedule.jumping else [])


def problems_of(seed: int, counts: Counter[str] | None = None) -> list[str]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    try:
        return simulate(seed, counts)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return [f"{type(error).__name__}: {error}"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.schedules.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    failed, counts = 0, Counter[str]()
    for seed in range(args.first, args.first + args.seeds):
        if problems := problems_of(seed, counts):
            failed += 1
            print(f"seed {seed}: {problems[:3]}", flush=True)
    print("; ".join(f"{what}: {count:,}" for what, count in sorted(counts.items())))
    print(f"{args.seeds} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
