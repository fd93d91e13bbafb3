"""Nothing but dead letters and refusals comes of any record, in every reader.

The seed of a failure is in its message: `KAPELLE_FUZZ_SEED=7 pytest tests/property/fuzz` runs it again, and
`KAPELLE_FUZZ_RECORDS` says how many records each test takes at most.
"""

import logging
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kapelle.processors.streams import Stream
from kapelle.processors.wiring import CANCELLATIONS, TASKS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from tests.property.fuzz import readers, records
from tests.property.fuzz.world import World

SEED = int(os.environ.get("KAPELLE_FUZZ_SEED", "17"))
RECORDS = int(os.environ.get("KAPELLE_FUZZ_RECORDS", "100000"))
BATCH = 50
NUMBERED = 3_000  # records
MEMORY_BYTES = 1 << 30
TIME_S = 18.0  # three tests, and those of numbers: a minute. A slow machine takes fewer records instead of more time


@contextmanager
def quiet() -> Iterator[None]:
    """Each record that cannot be read is a line in the log, and here there are thousands."""
    loggers = [logging.getLogger(name) for name in ("kapelle.journal", "kapelle.views", "fuzz")]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


@contextmanager
def limited(more_bytes: int) -> Iterator[None]:
    """This process may take so much more memory: what would take all of it fails soon instead."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def fed(seed: int, streams: str) -> World:
    """A world that was fed with records for its inputs, or for its histories as well."""
    world, until_s = World(seed), time.monotonic() + TIME_S
    chosen: list[Stream] = list(world.inputs)
    if streams == "all":
        chosen += [*world.histories, *world.histories, TASKS, CANCELLATIONS]
    for _ in range(RECORDS // BATCH):
        world.feed(chosen, BATCH)
        if time.monotonic() > until_s:
            break
    return world


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_no_input_makes_a_decision_raise_and_the_tables_stay_the_fold_of_the_history(seed: int) -> None:
    with quiet():
        world = fed(seed, "inputs")

        assert not world.bugs(), f"seed {seed}"
        assert not world.violations(), f"seed {seed}"
        assert readers.unreadable(world) == 0, f"seed {seed}: the engine wrote what it cannot read"
        assert readers.viewed(world) == 0, f"seed {seed}: the view cannot show what the engine wrote"
        assert not +readers.relayed(world), f"seed {seed}"
        assert world.works(), f"seed {seed}"


def test_no_record_in_a_history_stops_anybody_who_reads_it() -> None:
    with quiet():
        world = fed(SEED + 2, "all")

        assert not world.bugs(), f"seed {SEED + 2}"
        unreadable = readers.unreadable(world)
        assert unreadable > 0
        assert readers.viewed(world) >= unreadable
        assert readers.relayed(world)["spans"] >= 0
        assert readers.replayed(world) > 0
        assert world.works(), f"seed {SEED + 2}"


@pytest.mark.parametrize("number", [2**31 - 1, 2**52, 2**63 - 1])
def test_no_number_makes_anybody_take_memory_or_time_in_its_measure(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run ids, attempts, iterations, sequences, versions and all other numbers, in commands and in histories."""
    monkeypatch.setattr(records, "NUMBERS", (1, 2**31 - 1, number))
    with quiet(), limited(MEMORY_BYTES):
        world = World(SEED)
        for words in world.words.values():
            words.extend(number for one in list(words) if isinstance(one, int))
        for _ in range(NUMBERED // BATCH):
            world.feed(world.inputs, BATCH)
            world.feed(world.histories, BATCH)

        assert not world.bugs()
        assert readers.viewed(world) >= 0
        assert readers.relayed(world)["spans"] >= 0
        assert readers.applied(world) > 0
        assert world.works()


def test_a_workflow_of_a_forged_version_is_deleted_by_a_replay_at_once() -> None:
    world, at_ms = World(SEED), 1_700_000_000_000
    for number, version in enumerate((2**31 - 1, 2**52)):
        pushed = c.VersionPushed(f"push-{number}", "ann", "etl", version, "{}", "{}", at_ms)
        for event in (pushed, c.WorkflowDeleted(f"delete-{number}", "ann", "etl", at_ms)):
            world.put(WORKFLOW_EVENTS, (b"etl", world.making._encoded(event), ()))
    world.runtime.step_until_idle()

    with limited(MEMORY_BYTES):
        assert readers.replayed(world) == 0


def test_a_seed_makes_the_same_records_again() -> None:
    one, other = World(SEED), World(SEED)

    made = [[world.making.record(stream) for stream in world.inputs * 20] for world in (one, other)]

    assert made[0] == made[1]
