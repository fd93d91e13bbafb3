"""Thousands of seeded histories of a simulated cluster. A seed that fails is printed, and fails again when run."""

import pytest

from kapelle.testing.schedule import Schedule
from tests.proof.mutants import MUTANTS
from tests.proof.simulate import ALL, seen_by_readers, simulate
from tests.proof.workload import mixed
from tests.simulation.seeds import PIECES, check, named

MUTANT_SEEDS_MAX = 400

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("seeds", PIECES[::2], ids=named)
def test_every_seeded_history_is_exactly_once_and_in_order(seeds: range) -> None:
    check(seeds)


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_broken_protocol_step_is_caught(name: str) -> None:
    def caught(seed: int) -> bool:
        try:
            return bool(simulate(seed, member=MUTANTS[name]))
        except Exception:  # noqa: BLE001 - a broken member may break anything
            return True

    assert any(caught(seed) for seed in range(MUTANT_SEEDS_MAX)), f"{name} survived {MUTANT_SEEDS_MAX} seeds"


@pytest.mark.parametrize("seed", [3, 18, 42])
def test_the_same_seed_gives_the_same_bytes(seed: int) -> None:
    def history() -> object:
        schedule = Schedule(ALL, seed)
        schedule.publish_later(mixed(seed, 12))
        schedule.run(120)
        return schedule.faults, seen_by_readers(schedule, ALL)

    assert history() == history()


def test_schedules_meet_faults() -> None:
    """A schedule in which nothing goes wrong would prove nothing."""
    faults = []
    for seed in range(20):
        schedule = Schedule(ALL, seed)
        schedule.publish_later(mixed(seed, 12))
        schedule.run(120)
        faults.append(schedule.faults)

    assert faults.count(0) <= 1
    assert sum(faults) / len(faults) > 5
