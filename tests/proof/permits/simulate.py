"""Limited steps on a simulated cluster: one seed is one history of crashes, duplicates, limits, breakpoints and stops.

    python -m tests.proof.permits.simulate --seeds 10000 [--first 0]

Three times the faults end and everything comes to rest: then histories and tables of runs and permits must agree,
nobody may wait while there is room, and nothing may be paused without a breakpoint. In the end all breakpoints are
deleted, limits are eased and everything is restarted where it is not complete: then every step must be done.
"""

import argparse
import logging
import random
import sys
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain, count
from typing import Any, Final

from kapelle.processors.permits import permits
from kapelle.processors.processor import Processor
from kapelle.processors.runs import runs
from kapelle.processors.wiring import RUN_COMMANDS, TASKS, run_key
from kapelle.processors.workflows import workflows
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus
from kapelle.testing.schedule import LIMITS, TURNS, Process, Schedule
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.log import Place
from tests.proof.checks import Seen, table_violations
from tests.proof.engine.behaviour import STARTED, Word, words_of
from tests.proof.permits.attempts import Shards, table_claim_violations
from tests.proof.permits.checks import Found
from tests.proof.permits.people import People
from tests.proof.permits.workload import LEASE_S, Size, Work, definitions, starting, workload
from tests.proof.simulate import DELIVERIES, seen_by_readers

PROCESSORS: Final[tuple[Processor[Any], ...]] = (workflows, runs, permits)
SIZES: Final = (
    Size(flows=2, instances=2, heads=2, side=2, tails=1, tags=4, slow_share=0.4),
    Size(flows=3, instances=2, heads=1, side=3, tails=2, tags=6, slow_share=0.3),
    Size(flows=1, instances=4, heads=4, side=2, tails=1, tags=3, slow_share=0.5),
)
LIMIT_MAX: Final = 3
WAVES: Final = ((12, 110), (14, 70), (14, 70))  # deeds, and turns with faults; after a wave everything comes to rest
FIRST_POINTS: Final = 3
LEAP_MS_MAX: Final = 800
RESTS_MS: Final = 1_800_000  # less than time-outs that nobody waits for here, and than the leases of slow tasks
MENDINGS_MAX: Final = 12
WORKER: Final = "worker"


class Limited(Schedule):
    """A schedule with a worker, in which time passes."""

    round_ms = 250

    def __init__(self, seed: int) -> None:
        super().__init__(
            Topology(PROCESSORS, prefix="permits", partitions=2),
            seed,
            same_cycle=DELIVERIES[seed % len(DELIVERIES)],
            limits=LIMITS,
        )
        self.turns = {**TURNS, "leap": 2}
        self.keeps_slow_tasks = True
        self._kept: list[c.Task] = []
        self._agenda: list[tuple[int, int, c.Task, Word]] = []
        self._numbers = count()
        tasks = self.topology.topic(TASKS)
        self._read = {Place(tasks, partition): 0 for partition in range(self.topology.partitions(TASKS))}

    def publish_later(self, messages: Iterable[tuple[str, str, Contract]]) -> None:
        """After what is left of those before."""
        left, self._unpublished = self._unpublished, []
        super().publish_later(messages)
        self._unpublished += left

    def seen(self) -> Seen:
        """Everything on every stream."""
        return seen_by_readers(self, self.topology)

    def shards(self) -> Shards:
        """The tables of all members."""
        members = [process.member for process in self.processes if process.member]
        return [(s.processor, s.partition, s.state) for member in members for s in member.shards.values()]

    def release(self) -> None:
        """Slow tasks are done."""
        for task in self._kept:
            self._say(task, Word(0, c.Report.SUCCEEDED))
        self._kept.clear()

    def _step_of(self, process: Process) -> None:
        super()._step_of(process)
        self._work()

    def _idle(self) -> bool:
        return not self._agenda and super()._idle()

    def _rests(self, due_at_ms: int | None) -> bool:
        return due_at_ms is None or due_at_ms > self.now_ms + RESTS_MS

    def _leap(self) -> None:
        self.now_ms += self.chance.randrange(LEAP_MS_MAX)

    # The worker -------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Take what is new, and say what is due."""
        for task in self._new_tasks():
            self._say(task, STARTED)
            if task.lease_ms <= LEASE_S * 1000:
                for word in words_of(task):
                    heappush(self._agenda, (self.now_ms + word.after_ms, next(self._numbers), task, word))
            elif self.keeps_slow_tasks:
                self._kept.append(task)
            else:
                self._say(task, Word(0, c.Report.SUCCEEDED))
        while self._agenda and self._agenda[0][0] <= self.now_ms:
            _, _, task, word = heappop(self._agenda)
            self._say(task, word)

    def _new_tasks(self) -> Iterator[c.Task]:
        for place, offset in self._read.items():
            for at, entry in self.cluster.committed_entries(place, offset):
                self._read[place] = at + 1
                if (place, at) not in self.garbage.published:
                    task = self.codec.decode(entry.value or b"")
                    assert isinstance(task, c.Task)
                    yield task

    def _say(self, task: c.Task, word: Word) -> None:
        key = run_key(task.workflow_id, task.instance_id)
        place = Place(self.topology.topic(RUN_COMMANDS), partition_of(key, self.topology.partitions(RUN_COMMANDS)))
        self.cluster.publish(place, key.encode(), self.codec.encode(word.of(task, WORKER)))


def simulate(seed: int) -> list[str]:
    """The violations of one seeded history."""
    chance = random.Random(seed)
    work = workload(chance, SIZES[seed % len(SIZES)])
    people = People(work, chance, limit_max=LIMIT_MAX)
    schedule = Limited(seed)
    try:
        schedule.publish_later([*definitions(work), *people.first_limits(), *people.first_points(FIRST_POINTS)])
        schedule.publish_later(starting(work, chance))
        for deeds, turns in WAVES:
            schedule.publish_later(chain.from_iterable(people.deed() for _ in range(deeds)))
            schedule.run(turns)
            found = Found(schedule.seen(), work)
            if problems := found.at_rest() + _tables(schedule, found.seen):
                return problems
            people.active, people.paused = found.attempts.active(), found.attempts.active(StepStatus.PAUSED)
            schedule.release()
        return _mended(schedule, work, people)
    finally:
        schedule.close()


def _mended(schedule: Limited, work: Work, people: People) -> list[str]:
    schedule.keeps_slow_tasks = False
    schedule.publish_later(people.easing())
    _settle(schedule)
    found = Found(schedule.seen(), work)
    if problems := found.at_rest() + _tables(schedule, found.seen):
        return problems
    schedule.publish_later(people.resuming())
    _settle(schedule)
    for _ in range(MENDINGS_MAX):
        found = Found(schedule.seen(), work)
        if not found.unfinished():
            break
        schedule.publish_later(people.mending([key for _, key in work.instances]))
        _settle(schedule)
    return found.in_the_end() + _tables(schedule, found.seen) + schedule.garbage.violations(schedule.codec)


def _settle(schedule: Limited) -> None:
    schedule.heal()
    schedule.drain()


def _tables(schedule: Limited, seen: Seen) -> list[str]:
    shards = list(schedule.shards())
    return table_violations(shards, seen) + list(table_claim_violations(shards))


def problems_of(seed: int) -> list[str]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    try:
        return simulate(seed)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return [f"{type(error).__name__}: {error}"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.permits.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(args.first, args.first + args.seeds):
        problems = problems_of(seed)
        if problems:
            failed += 1
            print(f"seed {seed}: {problems[:3]}", flush=True)
    print(f"{args.seeds} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
