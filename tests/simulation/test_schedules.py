"""Thousands of seeded histories of a simulated cluster. A seed that fails is printed, and fails again when run."""

import logging
import multiprocessing
import os
from collections.abc import Iterator

import pytest

from kapelle.testing.schedule import Schedule
from tests.proof.mutants import MUTANTS
from tests.proof.simulate import ALL, seen_by_readers, simulate
from tests.proof.workload import mixed

SEEDS = int(os.environ.get("KAPELLE_SIMULATION_SEEDS", "10000"))
FIRST = int(os.environ.get("KAPELLE_SIMULATION_FIRST", "0"))
MUTANT_SEEDS_MAX = 400


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Members tell of every cycle that they give up: here that is all they do."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def failure_of(seed: int) -> tuple[int, list[str]]:
    """What is wrong with the history of a seed. Anything raised is a failure too, and must not hide the seed."""
    logging.disable(logging.CRITICAL)
    try:
        return seed, simulate(seed)
    except (Exception, AssertionError) as error:  # noqa: BLE001 - see above
        return seed, [f"{type(error).__name__}: {error}"]


@pytest.mark.timeout(600)
def test_every_seeded_history_is_exactly_once_and_in_order() -> None:
    with multiprocessing.get_context("spawn").Pool(os.cpu_count() or 1) as pool:
        results = pool.imap_unordered(failure_of, range(FIRST, FIRST + SEEDS), chunksize=50)
        failures = [f"seed {seed}: {problems[:3]}" for seed, problems in results if problems]

    assert not failures, f"{len(failures)} of {SEEDS} seeds failed; simulate(seed) shows it again:\n" + "\n".join(
        failures[:5]
    )


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
