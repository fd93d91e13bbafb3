"""Trees on a simulated cluster: one seed is one history of crashes, rebalances, duplicates, stops and restarts.

    python -m tests.proof.composites.simulate --seeds 10000 [--first 0]

The faults end, and everything comes to rest. Then run strategies are eased, and all trees are restarted where they are
not complete. Then each must have succeeded, and all that `checks` demands must hold of every part of the history.
"""

import argparse
import logging
import random
import sys
from collections.abc import Iterable
from itertools import chain, count
from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.runs import runs
from kapelle.processors.workflows import workflows
from kapelle.schemas import Contract
from kapelle.testing.schedule import LIMITS, TURNS, Schedule
from kapelle.topology.build import Topology
from kapelle.topology.member import Member
from tests.proof.checks import Seen, table_violations
from tests.proof.composites.checks import held_up, tree_violations, unfinished
from tests.proof.composites.workload import definitions, disturbance, easing, mending, shapes, starting
from tests.proof.simulate import DELIVERIES, seen_by_readers

PROCESSORS: Final[tuple[Processor[Any], ...]] = (workflows, runs)
TREES: Final = 2
SIDES: Final = (2, 3, 5)
WAVES: Final = ((16, 130), (10, 70))  # disturbances, and turns with faults; between waves everything comes to rest
LEAP_MS_MAX: Final = 800  # with a time-out of a second, and twigs that sleep for one
HELD_UP_MS: Final = 1_800_000  # less than the time-outs that nobody waits for here
SLEEPING_EVERY: Final = 2  # of seeds, those in which twigs sleep


class Trees(Schedule):
    """A schedule in which time passes: steps time out, and twigs that sleep wake up."""

    round_ms = 250

    def __init__(self, seed: int, member: type[Member]) -> None:
        super().__init__(
            Topology(PROCESSORS, prefix="trees", partitions=2),
            seed,
            member=member,
            same_cycle=DELIVERIES[seed % len(DELIVERIES)],
            limits=LIMITS,
        )
        self.turns = {**TURNS, "leap": 2}
        self.may_be_held_up = True  # a failed instance of a strict sequence holds up others, whose runs have time-outs

    def publish_later(self, messages: Iterable[tuple[str, str, Contract]]) -> None:
        """After what is left of those before."""
        left, self._unpublished = self._unpublished, []
        super().publish_later(messages)
        self._unpublished += left

    def seen(self) -> Seen:
        """Everything on every stream."""
        return seen_by_readers(self, self.topology)

    def _rests(self, due_at_ms: int | None) -> bool:
        is_far = due_at_ms is None or due_at_ms > self.now_ms + HELD_UP_MS
        return is_far if self.may_be_held_up else super()._rests(due_at_ms)

    def _leap(self) -> None:
        self.now_ms += self.chance.randrange(LEAP_MS_MAX)


def simulate(seed: int, *, member: type[Member] = Member) -> list[str]:
    """The violations of one seeded history."""
    chance = random.Random(seed)
    trees = shapes(chance, TREES, twig_sleeps_s=int(seed % SLEEPING_EVERY == 0), sides=SIDES)
    schedule = Trees(seed, member)
    number = count()
    try:
        schedule.publish_later(definitions(trees))
        for shape in trees:
            schedule.publish_later(starting(shape, chance))
        found = []
        for disturbances, turns in WAVES:
            wave = [disturbance(trees, next(number), chance) for _ in range(disturbances)]
            schedule.publish_later(chain.from_iterable(wave))
            schedule.run(turns)
            found += held_up(trees, schedule.seen())
        schedule.may_be_held_up = False
        for then in (easing(trees, "ease"), mending(trees, "mend")):
            schedule.publish_later(then)
            schedule.heal()
            schedule.drain()
        seen = schedule.seen()
        members = [process.member for process in schedule.processes if process.member]
        shards = [(s.processor, s.partition, s.state) for one in members for s in one.shards.values()]
        found += tree_violations(seen) + unfinished(trees, seen) + table_violations(shards, seen)
        return found + schedule.garbage.violations(schedule.codec)
    finally:
        schedule.close()


def problems_of(seed: int) -> list[str]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    try:
        return simulate(seed)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return [f"{type(error).__name__}: {error}"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.composites.simulate", description=__doc__)
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
