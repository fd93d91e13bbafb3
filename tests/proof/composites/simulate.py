"""Trees on a simulated cluster: one seed is one history of crashes, rebalances, duplicates, stops and restarts.

    python -m tests.proof.composites.simulate --seeds 10000 [--first 0]

The faults end, everything comes to rest, and all trees are restarted where they are not complete. Then each must have
succeeded, and all that `checks` demands must hold of both halves.
"""

import argparse
import logging
import random
import sys
from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.runs import runs
from kapelle.processors.workflows import workflows
from kapelle.testing.schedule import LIMITS, Schedule
from kapelle.topology.build import Topology
from kapelle.topology.member import Member
from tests.proof.checks import table_violations
from tests.proof.composites.checks import tree_violations, unfinished
from tests.proof.composites.workload import beginning, disturbances, mending, shapes
from tests.proof.simulate import DELIVERIES, seen_by_readers

PROCESSORS: Final[tuple[Processor[Any], ...]] = (workflows, runs)
TREES: Final = 2
DISTURBANCES: Final = 12
TURNS: Final = 160


def simulate(seed: int, *, member: type[Member] = Member) -> list[str]:
    """The violations of one seeded history."""
    chance = random.Random(seed)
    trees = shapes(chance, TREES)
    schedule = Schedule(
        Topology(PROCESSORS, prefix="trees", partitions=2),
        seed,
        member=member,
        same_cycle=DELIVERIES[seed % len(DELIVERIES)],
        limits=LIMITS,
    )
    try:
        schedule.publish_later([*beginning(trees, chance), *disturbances(trees, chance, DISTURBANCES)])
        schedule.run(TURNS)
        found = _violations(schedule)
        schedule.publish_later(mending(trees, "mend"))
        schedule.heal()
        schedule.drain()
        return found + _violations(schedule) + unfinished(trees, seen_by_readers(schedule, schedule.topology))
    finally:
        schedule.close()


def problems_of(seed: int) -> list[str]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    try:
        return simulate(seed)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return [f"{type(error).__name__}: {error}"]


def _violations(schedule: Schedule) -> list[str]:
    seen = seen_by_readers(schedule, schedule.topology)
    members = [process.member for process in schedule.processes if process.member]
    shards = [(s.processor, s.partition, s.state) for one in members for s in one.shards.values()]
    return tree_violations(seen) + table_violations(shards, seen) + schedule.garbage.violations(schedule.codec)


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
