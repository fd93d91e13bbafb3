"""Changing the run strategy while instances exist: what is refused, and that nobody is left behind."""

import pytest

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.unit.workflows.world import World, only


def world_of(strategy: object, *starts: str) -> World:
    world = World()
    world.push(run_strategy=strategy)
    for request_id in starts:
        world.start(request_id)
    return world


@pytest.mark.parametrize("after", ["FIRST_ONLY", "LAST_ONLY"])
def test_with_one_running_and_one_queued_nobody_can_be_the_only_one(after: str) -> None:
    world = world_of("SEQUENTIAL", "a", "b")

    refused = only(c.CommandRefused, world.switch(after))

    assert refused.refusal == "PRECONDITION_FAILED"
    assert refused.message == (
        f"Cannot switch from SEQUENTIAL to {after}: expected at most one instance queued or running, but found 2"
    )
    assert world.seen() == "1r 2q"


@pytest.mark.parametrize("after", ["FIRST_ONLY", "LAST_ONLY"])
def test_with_one_alive_the_switch_is_free(after: str) -> None:
    world = world_of("SEQUENTIAL", "a")

    only(c.PropertiesChanged, world.switch(after))

    world.start("b")
    assert world.seen() == {"FIRST_ONLY": "1r 2S", "LAST_ONLY": "1r 2q"}[after]


def test_a_failure_must_be_dealt_with_before_a_workflow_becomes_strict() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.fail(1)

    refused = only(c.CommandRefused, world.switch("STRICT_SEQUENTIAL"))
    assert refused.message == (
        "Cannot switch from SEQUENTIAL to STRICT_SEQUENTIAL: expected no failed instance that blocks it, but found 1"
    )

    world.unblock()
    only(c.PropertiesChanged, world.switch("STRICT_SEQUENTIAL"))


def test_a_restarted_failure_is_dealt_with() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.fail(1)
    world.restart(1)

    only(c.PropertiesChanged, world.switch("STRICT_SEQUENTIAL"))


def test_a_strict_workflow_with_a_failure_may_stay_strict() -> None:
    world = world_of("STRICT_SEQUENTIAL", "a")
    world.fail(1)

    only(c.PropertiesChanged, world.switch("STRICT_SEQUENTIAL"))


@pytest.mark.parametrize("after", ["FIRST_ONLY", "LAST_ONLY", "SEQUENTIAL", "SERIAL_LATEST_ONLY", "PARALLEL"])
def test_the_one_that_a_strict_workflow_held_back_runs_under_the_next_strategy(after: str) -> None:
    world = world_of("STRICT_SEQUENTIAL", "a", "b")
    world.fail(1)
    assert world.seen() == "1F 2q"

    world.switch(after)

    assert world.seen() == "1F 2r"


def test_fewer_at_a_time_stops_nobody_and_launches_nobody_until_there_is_room() -> None:
    world = world_of(3, "a", "b", "c", "d")

    world.switch("SEQUENTIAL")
    world.end(1)
    world.end(2)
    assert world.seen() == "1✓ 2✓ 3r 4q"

    world.end(3)
    assert world.seen() == "1✓ 2✓ 3✓ 4r"


def test_more_at_a_time_launches_those_who_now_may_run() -> None:
    world = world_of("SEQUENTIAL", "a", "b", "c", "d")

    world.switch(3)

    assert world.seen() == "1r 2r 3r 4q"


def test_those_who_were_queued_before_are_displaced_by_the_next_arrival() -> None:
    world = world_of("SEQUENTIAL", "a", "b", "c")
    world.switch("SERIAL_LATEST_ONLY")
    assert world.seen() == "1r 2q 3q"

    world.start("d")

    assert world.seen() == "1r 2S 3S 4q"


def test_a_push_that_switches_is_refused_as_a_whole() -> None:
    world = world_of("SEQUENTIAL", "a", "b")

    refused = only(c.CommandRefused, world.push(run_strategy="FIRST_ONLY"))

    assert refused.refusal == "PRECONDITION_FAILED"
    workflow = world.state.reader.workflows.get(("etl",))
    assert workflow is not None
    assert workflow.latest_version == 1


def test_a_push_without_a_strategy_goes_back_to_sequential() -> None:
    world = world_of(2, "a", "b", "c")

    world.push(properties={"description": "new"})
    world.end(1, InstanceStatus.SUCCEEDED)

    assert world.seen() == "1✓ 2r 3q"


def test_a_push_without_properties_leaves_the_strategy() -> None:
    world = world_of(2, "a", "b", "c")

    world.push(properties=None)
    world.end(1, InstanceStatus.SUCCEEDED)

    assert world.seen() == "1✓ 2r 3r"
