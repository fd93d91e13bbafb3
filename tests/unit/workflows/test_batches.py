"""Starts that come together: what each strategy makes of a batch."""

from typing import Any

import pytest

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Start
from tests.unit.workflows.world import World, only, types

CODES = {InstanceStatus.CREATED: 1, InstanceStatus.STOPPED: -1, InstanceStatus.FAILED: -2}
BROKEN = '{"n":{"type":"LONG","expression":"1 / 0"}}'


def world_of(strategy: str) -> World:
    world = World()
    world.push(run_strategy=strategy)
    return world


def codes(events: list[Any]) -> list[int]:
    """1 is queued, 0 repeated, -1 stopped and -2 failed, in the order of the requests."""
    answers = [event for event in events if isinstance(event, c.InstanceCreated | c.StartDuplicated)]
    return [CODES[answer.status] if isinstance(answer, c.InstanceCreated) else 0 for answer in answers]


@pytest.mark.parametrize(
    ("strategy", "expected", "seen"),
    [
        ("SEQUENTIAL", [1, 0, 1], "1r 2q"),
        ("STRICT_SEQUENTIAL", [1, 0, 1], "1r 2q"),
        ("PARALLEL", [1, 0, 1], "1r 2r"),
        ("FIRST_ONLY", [1, 0, -1], "1r 2S"),
        ("LAST_ONLY", [-1, 0, 1], "1S 2r"),
        ("SERIAL_LATEST_ONLY", [-1, 0, 1], "1S 2r"),
    ],
)
def test_a_batch_on_an_idle_workflow(strategy: str, expected: list[int], seen: str) -> None:
    world = world_of(strategy)

    events = world.start("a", "a", "b")

    assert codes(events) == expected
    assert world.seen() == seen


@pytest.mark.parametrize(
    ("strategy", "expected", "seen"),
    [
        ("SEQUENTIAL", [1, 1], "1r 2q 3q"),
        ("FIRST_ONLY", [-1, -1], "1r 2S 3S"),
        ("LAST_ONLY", [-1, 1], "1r 2S 3q"),
        ("SERIAL_LATEST_ONLY", [-1, 1], "1r 2S 3q"),
    ],
)
def test_a_batch_on_a_busy_workflow(strategy: str, expected: list[int], seen: str) -> None:
    world = world_of(strategy)
    world.start("running")

    events = world.start("a", "b")

    assert codes(events) == expected
    assert world.seen() == seen


@pytest.mark.parametrize(("strategy", "seen"), [("LAST_ONLY", "1r 2S 3S 4q"), ("SERIAL_LATEST_ONLY", "1r 2S 3S 4q")])
def test_the_last_of_a_batch_displaces_what_was_queued(strategy: str, seen: str) -> None:
    world = world_of(strategy)
    world.start("running")
    world.start("queued")

    world.start("a", "b")

    assert world.seen() == seen


def test_the_others_of_a_batch_are_told_by_whom_they_are_stopped() -> None:
    world = world_of("LAST_ONLY")

    stopped = next(event for event in world.start("a", "b") if isinstance(event, c.InstanceCreated))

    assert stopped.reason == "Stopped by LAST_ONLY: instance 2 run 1 was started"


def batch(*starts: tuple[str, bool]) -> c.StartInstances:
    return c.StartInstances(
        "ann",
        tuple(
            Start(request_id, run_params=BROKEN if is_broken else "{}", persist_failed_run=True)
            for request_id, is_broken in starts
        ),
    )


@pytest.mark.parametrize(
    ("strategy", "expected", "seen"),
    [
        ("SEQUENTIAL", [-2, 1, 1, -2], "1F 2r 3q 4F"),
        ("FIRST_ONLY", [-2, 1, -1, -2], "1F 2r 3S 4F"),
        ("LAST_ONLY", [-2, -1, 1, -2], "1F 2S 3r 4F"),
        ("SERIAL_LATEST_ONLY", [-2, -1, 1, -2], "1F 2S 3r 4F"),
    ],
)
def test_what_fails_before_it_begins_stays_failed_and_counts_for_nobody(
    strategy: str, expected: list[int], seen: str
) -> None:
    world = world_of(strategy)

    events = world.do(batch(("a", True), ("b", False), ("c", False), ("d", True)))

    assert codes(events) == expected
    assert world.seen() == seen


def test_a_batch_of_failures_displaces_nobody() -> None:
    world = world_of("LAST_ONLY")
    world.start("running")
    world.start("queued")

    world.do(batch(("a", True), ("b", True)))

    assert world.seen() == "1r 2q 3F 4F"


def test_a_repeated_start_inside_a_batch_is_told_the_instance_of_the_first() -> None:
    world = world_of("SEQUENTIAL")

    repeated = only(c.StartDuplicated, world.start("a", "b", "a"))

    assert (repeated.request_id, repeated.instance_id, repeated.run_id) == ("a", 1, 1)


def test_a_batch_with_one_wrong_start_starts_nothing_and_answers_each() -> None:
    world = world_of("SEQUENTIAL")
    starts = (Start("a"), Start("b", version="9"), Start("c", run_params="["))

    events = world.do(c.StartInstances("ann", starts))

    assert types(events) == ["CommandRefused"] * 3
    assert [event.request_id for event in events] == ["a", "b", "c"]
    assert events[0].refusal == "NOT_FOUND"
    assert events[0].errors == (
        "starts[1]: Expected a version of workflow 'etl' from 1 to 1, but found 9",
        "starts[2]: Expected run_params as JSON, but found '['",
    )
    assert world.seen() == ""


def test_repeated_starts_are_no_reason_to_refuse_a_batch() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a")
    world.do(c.DeactivateWorkflow("off", "ann"))

    events = world.start("a", "a")

    assert codes(events) == [0, 0]
