"""One seed of the simulation: run the schedule, then check everything."""

from collections import defaultdict
from typing import Any

from kapelle.testing.clock_jumps import Jumping
from kapelle.testing.schedule import LIMITS, Schedule
from kapelle.topology.build import Topology
from kapelle.topology.log import Place
from kapelle.topology.member import Member
from tests.proof.checks import table_violations, violations
from tests.proof.processors import topology
from tests.proof.workload import REMINDER_MS_MAX, mixed

ALL = topology("all", partitions=2)
JUMPING_EVERY = 4  # of seeds, those in which clocks jump
DELIVERIES = (True, False, None)  # same-cycle delivery on, off, switching


def simulate(seed: int, *, member: type[Member] = Member, records: int = 12, turns: int = 120) -> list[str]:
    """The violations of one seeded history. The seed also chooses the kind of delivery, and whether clocks jump."""
    jumping = Jumping(seed, REMINDER_MS_MAX) if seed % JUMPING_EVERY == 0 else None
    delivery = DELIVERIES[seed % 3]
    schedule = Schedule(ALL, seed, member=member, same_cycle=delivery, limits=LIMITS, jumping=jumping)
    published = mixed(seed, records)
    schedule.publish_later(published)
    try:
        schedule.run(turns)
        seen = seen_by_readers(schedule, ALL)
        members = [p.member for p in schedule.processes if p.member]
        shards = [(s.processor, s.partition, s.state) for m in members for s in m.shards.values()]
        garbage = schedule.garbage.violations(schedule.codec)
        found = violations(published, seen) + table_violations(shards, seen) + garbage
        return found + (jumping.problems if jumping else [])
    finally:
        schedule.close()


def seen_by_readers(schedule: Schedule, topology: Topology) -> dict[str, dict[int, list[tuple[str, Any]]]]:
    """Everything on every stream, as a `read_committed` reader sees it."""
    seen: dict[str, dict[int, list[tuple[str, Any]]]] = defaultdict(dict)
    for name, stream in topology.streams.items():
        for partition in range(topology.partitions(stream)):
            entries = schedule.cluster.committed_entries(Place(topology.topic(stream), partition))
            seen[name][partition] = [
                ((e.key or b"").decode(), schedule.codec.decode(e.value or b""))
                for offset, e in entries
                if (Place(topology.topic(stream), partition), offset) not in schedule.garbage.published
            ]
    return seen
