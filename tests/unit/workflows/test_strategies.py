"""Every row of the table of run strategies, and the cases at its edges."""

import pytest

from kapelle.processors.workflows import LAUNCHES_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus
from tests.unit.workflows.world import World, only, types


def world_of(strategy: object) -> World:
    world = World()
    world.push(run_strategy=strategy)
    return world


def test_sequential_runs_one_at_a_time_and_goes_on_after_a_failure() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a", "b", "c")
    assert world.seen() == "1r 2q 3q"

    world.fail(1)

    assert world.seen() == "1F 2r 3q"


def test_sequential_is_the_strategy_of_those_who_name_none() -> None:
    world = World()
    world.push()

    world.start("a", "b")

    assert world.seen() == "1r 2q"


def test_strict_sequential_stays_behind_a_failure_until_it_is_unblocked() -> None:
    world = world_of("STRICT_SEQUENTIAL")
    world.start("a", "b", "c")

    world.fail(1)
    assert world.seen() == "1F 2q 3q"

    world.unblock(1)
    assert world.seen() == "1F 2r 3q"


def test_strict_sequential_runs_the_restarted_failure_before_those_that_waited_for_it() -> None:
    world = world_of("STRICT_SEQUENTIAL")
    world.start("a", "b", "c")
    world.fail(1)

    world.restart(1)
    assert world.seen() == "1.2r 2q 3q"

    world.end(1, run_id=2)
    assert world.seen() == "1.2✓ 2r 3q"


@pytest.mark.parametrize("status", [InstanceStatus.STOPPED, InstanceStatus.TIMED_OUT, InstanceStatus.SUCCEEDED])
def test_strict_sequential_is_held_up_by_failures_alone(status: InstanceStatus) -> None:
    world = world_of("STRICT_SEQUENTIAL")
    world.start("a", "b")

    world.end(1, status)

    assert world.seen().endswith("2r")


def test_strict_sequential_queues_what_arrives_while_it_is_held_up() -> None:
    world = world_of("STRICT_SEQUENTIAL")
    world.start("a")
    world.fail(1)

    world.start("b")

    assert world.seen() == "1F 2q"


def test_strict_sequential_holds_a_restarted_run_up_while_another_failure_remains() -> None:
    world = world_of("PARALLEL")
    world.start("a", "b", "c")
    world.fail(1)
    world.fail(2)
    world.unblock()
    world.switch("STRICT_SEQUENTIAL")
    world.fail(3)
    world.restart(1)
    assert world.seen() == "1.2q 2F 3F"

    world.unblock(3)

    assert world.seen() == "1.2r 2F 3F"


def test_strict_sequential_is_held_up_by_a_queued_instance_that_is_killed() -> None:
    world = world_of("STRICT_SEQUENTIAL")
    world.start("a", "b", "c")

    world.terminate(2, Action.KILL)
    world.end(1)

    assert world.seen() == "1✓ 2F 3q"


def test_strict_sequential_is_held_up_by_an_instance_whose_parameters_failed() -> None:
    world = World()
    world.push({"params": {"n": {"type": "LONG", "value": 1}}}, run_strategy="STRICT_SEQUENTIAL")

    world.start("a", run_params='{"n":{"type":"LONG","expression":"1 / 0"}}', persist_failed_run=True)
    world.start("b")

    assert world.seen() == "1F 2q"


def test_parallel_runs_as_many_as_it_may() -> None:
    world = world_of(2)
    world.start("a", "b", "c", "d")
    assert world.seen() == "1r 2r 3q 4q"

    world.end(2)

    assert world.seen() == "1r 2✓ 3r 4q"


def test_parallel_runs_twenty_unless_it_says_otherwise() -> None:
    world = world_of("PARALLEL")

    for batch in range(3):
        world.start(*(f"{batch}-{number}" for number in range(10)))

    assert world.seen().count("r") == 20


def test_first_only_stops_what_arrives_while_something_runs() -> None:
    world = world_of("FIRST_ONLY")
    world.start("a")
    stopped = only(c.InstanceCreated, world.start("b"))
    world.start("c")
    assert world.seen() == "1r 2S 3S"

    world.end(1)
    world.start("d")

    assert world.seen() == "1✓ 2S 3S 4r"
    assert stopped.reason == "Stopped by FIRST_ONLY: instance 1 run 1 is queued or running"


def test_last_only_stops_what_runs_and_what_waits_for_what_came_last() -> None:
    world = world_of("LAST_ONLY")
    world.start("a")

    second = world.start("b")
    third = world.start("c")
    assert world.seen() == "1r 2S 3q"

    world.end(1, InstanceStatus.STOPPED)
    assert world.seen() == "1S 2S 3r"
    assert only(c.TerminationRequested, second).instance_id == 1
    assert types(third) == ["InstanceEnded", "InstanceCreated"]
    assert only(c.InstanceEnded, third).reason == "Stopped by LAST_ONLY: instance 3 run 1 was started"
    assert [(key, told.run_id, told.action) for key, told in world.sent_of(c.TerminateRun)] == [("etl/1", 1, "STOP")]


def test_last_only_launches_the_last_whatever_the_one_before_ends_in() -> None:
    world = world_of("LAST_ONLY")
    world.start("a")
    world.start("b")

    world.end(1, InstanceStatus.SUCCEEDED)

    assert world.seen() == "1✓ 2r"


def test_serial_latest_only_leaves_what_runs_and_keeps_one_in_the_queue() -> None:
    world = world_of("SERIAL_LATEST_ONLY")
    world.start("a")
    world.start("b")
    third = world.start("c")
    assert world.seen() == "1r 2S 3q"

    world.end(1)

    assert world.seen() == "1✓ 2S 3r"
    assert not world.sent_of(c.TerminateRun)
    assert only(c.InstanceEnded, third).reason == "Stopped by SERIAL_LATEST_ONLY: instance 3 run 1 was started"


def test_a_restarted_old_instance_overtakes_newer_ones_in_the_queue() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a", "b", "c")
    world.end(1)
    world.restart(1)
    assert world.seen() == "1.2q 2r 3q"

    world.end(2)

    assert world.seen() == "1.2r 2✓ 3q"


def test_one_decision_launches_a_bounded_number_and_asks_itself_for_the_rest() -> None:
    world = world_of("SEQUENTIAL")
    for batch in range(13):
        world.start(*(f"{batch}-{number}" for number in range(10)))
    command = c.ChangeProperties("wide", "ann", '{"run_strategy": 1000}')

    first = world.decide(command)
    assert len([event for event in first if isinstance(event, c.InstanceLaunched)]) == LAUNCHES_MAX
    assert [value for _, value in world.continued] == [c.LaunchQueued()]

    while world.continued:
        key, value = world.continued.popleft()
        world.decide(value, key)
    assert world.seen().count("r") == 130


def test_an_end_that_was_told_before_has_no_effect() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a", "b", "c")
    world.end(1)

    assert world.end(1) == []
    assert world.seen() == "1✓ 2r 3q"


@pytest.mark.parametrize(("instance_id", "run_id"), [(1, 1), (1, 3), (2, 1), (7, 1)])
def test_an_end_of_another_run_than_the_running_one_has_no_effect(instance_id: int, run_id: int) -> None:
    world = world_of("SEQUENTIAL")
    world.start("a", "b")
    world.terminate(2)
    world.end(1)
    world.restart(1)
    assert world.seen() == "1.2r 2S"

    assert world.end(instance_id, run_id=run_id) == []
    assert world.seen() == "1.2r 2S"


def test_an_end_in_a_state_that_is_none_has_no_effect() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a")

    assert world.end(1, InstanceStatus.PAUSED) == []


def test_workflows_do_not_wait_for_each_other() -> None:
    world = world_of("SEQUENTIAL")
    text = '{"properties":{"owner":"ann"},"workflow":{"id":"other","steps":[{"step":{"id":"s","type":"NoOp"}}]}}'
    world.do(c.PushVersion("p", "ann", text), "other")

    world.start("a")
    world.do(c.StartInstances("ann", (c.Start("a"),)), "other")

    assert [key for key, _ in world.sent_of(c.StartRun)] == ["etl/1", "other/1"]
