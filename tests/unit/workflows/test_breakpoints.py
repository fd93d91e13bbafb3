"""Breakpoints: which are set, what a launch carries, and what running instances are told."""

from typing import Any

import pytest

from kapelle.processors.workflows.breakpoints import BREAKPOINTS_MAX, TOLD_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.support.trees import foreach, rounds
from tests.unit.workflows.world import KEY, NOW_MS, World, only, types

PARALLEL = {"rule": "PARALLEL", "workflow_concurrency": 1000}


def world_of(*starts: str, strategy: object = PARALLEL) -> World:
    world = World()
    world.push(run_strategy=strategy)
    for request_id in starts:
        world.start(request_id)
    return world


def crowd(count: int) -> World:
    """A world in which so many instances run."""
    world = world_of()
    for _ in range(count // 10):
        world.start(*(world.fresh() for _ in range(10)))
    return world


def on(step_id: str = "load", **fields: object) -> c.Breakpoint:
    """A breakpoint as `set_breakpoint` of the world makes it."""
    return c.Breakpoint(step_id, **{"author": "ann", "at_ms": NOW_MS, **fields})  # type: ignore[arg-type]


def told(world: World) -> list[tuple[str, c.ChangeBreakpoints]]:
    return world.sent_of(c.ChangeBreakpoints)


def launches(world: World) -> list[tuple[c.Breakpoint, ...]]:
    return [start.breakpoints for _, start in world.sent_of(c.StartRun)]


# Setting ------------------------------------------------------------------------------------------------------------


def test_a_breakpoint_is_set_with_its_author_and_time() -> None:
    world = world_of()

    events = world.set_breakpoint(request_id="b")

    assert types(events) == ["BreakpointSet", "CommandSettled"]
    event = only(c.BreakpointSet, events)
    assert (event.request_id, event.workflow_id, event.breakpoint, event.generation) == ("b", KEY, on(), 1)


def test_a_breakpoint_that_is_set_again_has_the_later_author_and_time() -> None:
    world = world_of()
    world.set_breakpoint()
    world.now_ms += 1

    world.do(c.SetBreakpoint("again", "bob", "load"))
    world.start("a")

    assert launches(world) == [(on(author="bob", at_ms=NOW_MS + 1),)]
    counts = world.state.reader.counts.get((KEY,))
    assert counts is not None
    assert (counts.breakpoints, counts.breakpoints_generation) == (1, 2)


def test_a_repeated_request_sets_nothing() -> None:
    world = world_of("a")
    world.set_breakpoint(request_id="b")
    world.delete_breakpoint()
    sent = len(world.sent)

    again = world.set_breakpoint(request_id="b")

    assert only(c.CommandSettled, again).status == "UNCHANGED"
    assert len(world.sent) == sent
    world.start("later")
    assert launches(world)[-1] == ()


@pytest.mark.parametrize("step_id", ["loop", "inner", "again", "again-inner"])
def test_a_breakpoint_may_be_on_a_step_at_any_depth(step_id: str) -> None:
    world = World()
    inner = {"step": {"id": "inner", "type": "NoOp"}}
    world.push({"steps": [foreach("loop", 2, inner, rounds("again", 2))]})

    assert types(world.set_breakpoint(step_id)) == ["BreakpointSet", "CommandSettled"]


def pushed_twice() -> World:
    """A workflow with a step that only version 1 has, and one that only version 2 has. None is active yet."""
    world = World()
    for step_id in ("first", "second"):
        world.push({"steps": [{"step": {"id": step_id, "type": "NoOp"}}]}, is_active=False)
    return world


def test_the_step_is_looked_for_in_the_active_version_or_else_in_the_latest() -> None:
    world = pushed_twice()
    assert only(c.CommandRefused, world.set_breakpoint("first")).refusal == "NOT_FOUND"
    assert types(world.set_breakpoint("second")) == ["BreakpointSet", "CommandSettled"]

    world.do(c.ActivateVersion("v", "ann", "1"))

    assert types(world.set_breakpoint("first")) == ["BreakpointSet", "CommandSettled"]
    assert only(c.CommandRefused, world.set_breakpoint("second")).refusal == "NOT_FOUND"


def test_the_step_is_looked_for_in_the_version_that_is_given() -> None:
    world = pushed_twice()

    assert types(world.set_breakpoint("first", version=1)) == ["BreakpointSet", "CommandSettled"]
    assert only(c.CommandRefused, world.set_breakpoint("second", version=1)).refusal == "NOT_FOUND"


def test_a_workflow_has_a_bounded_number_of_breakpoints() -> None:
    world = world_of()
    for attempt in range(1, BREAKPOINTS_MAX + 1):
        world.set_breakpoint(attempt=attempt)

    refused = only(c.CommandRefused, world.set_breakpoint())

    assert (refused.refusal, refused.message) == (
        "CONFLICT",
        "Expected workflow 'etl' to have fewer than 40 breakpoints, but it has 40: delete one first",
    )
    assert types(world.set_breakpoint(attempt=1)) == ["BreakpointSet", "CommandSettled"]
    world.delete_breakpoint(attempt=2)
    assert types(world.set_breakpoint()) == ["BreakpointSet", "CommandSettled"]


# Launches -----------------------------------------------------------------------------------------------------------


def test_a_launch_without_breakpoints_carries_none() -> None:
    world = world_of("a")

    [(_, start)] = world.sent_of(c.StartRun)

    assert (start.breakpoints, start.breakpoints_generation) == ((), 0)


def test_a_launch_carries_the_breakpoints_for_its_run_in_one_order() -> None:
    world = world_of("a", strategy="SEQUENTIAL")
    before: list[dict[str, Any]] = [{}, {"version": 1}, {"instance_id": 2}, {"instance_id": 2, "run_id": 1}]
    for fields in (*before, {"attempt": 3}):
        world.set_breakpoint(**fields)
    world.push(is_active=False)
    others: list[dict[str, Any]] = [{"version": 2}, {"instance_id": 1}, {"instance_id": 2, "run_id": 2}]
    for fields in others:
        world.set_breakpoint(**fields)

    world.start("b")
    world.end(1)

    [_, (_, start)] = world.sent_of(c.StartRun)
    assert start.breakpoints == (
        on(),
        on(attempt=3),
        on(instance_id=2),
        on(instance_id=2, run_id=1),
        on(version=1),
    )
    assert start.breakpoints_generation == 8


def test_a_queued_run_is_launched_with_what_is_set_when_it_leaves_the_queue() -> None:
    world = world_of("a", "b", strategy="SEQUENTIAL")
    world.set_breakpoint()

    world.end(1)

    assert launches(world) == [(), (on(),)]


def test_another_run_of_an_instance_meets_them_again() -> None:
    world = world_of("a")
    world.set_breakpoint()
    world.set_breakpoint(instance_id=1, run_id=1)
    world.set_breakpoint(instance_id=1, run_id=2)
    world.fail(1)

    world.restart(1)

    assert launches(world) == [(), (on(), on(instance_id=1, run_id=2))]


# Telling ------------------------------------------------------------------------------------------------------------


def test_those_that_run_are_told_of_a_breakpoint_and_those_that_do_not_are_not() -> None:
    world = world_of("a", "b", "c")
    world.end(2)

    world.set_breakpoint()

    assert told(world) == [(f"etl/{number}", c.ChangeBreakpoints(1, (on(),))) for number in (1, 3)]


def test_an_instance_is_told_of_all_that_are_for_its_run() -> None:
    world = world_of("a")
    world.set_breakpoint(instance_id=1, run_id=1)
    world.push(run_strategy=PARALLEL)
    world.start("b")

    world.set_breakpoint(version=2)

    (_, first), (_, second) = told(world)[-2:]
    assert first.breakpoints == (on(instance_id=1, run_id=1),)
    assert second.breakpoints == (on(version=2),)
    assert {first.generation, second.generation} == {2}


def test_only_that_instance_is_told_of_a_breakpoint_on_one_instance() -> None:
    world = world_of("a", "b", "c")

    world.set_breakpoint(instance_id=2)
    world.delete_breakpoint(instance_id=2)
    world.set_breakpoint(instance_id=9)

    assert [key for key, _ in told(world)] == ["etl/2", "etl/2"]


def test_a_deletion_resumes_what_the_breakpoint_holds() -> None:
    world = world_of("a")
    world.set_breakpoint()
    world.set_breakpoint(attempt=2)

    events = world.delete_breakpoint(request_id="d")

    event = only(c.BreakpointDeleted, events)
    assert (event.request_id, event.author, event.breakpoint, event.generation) == ("d", "bob", on(), 3)
    assert event.resume
    assert told(world)[-1] == ("etl/1", c.ChangeBreakpoints(3, (on(attempt=2),), on()))


def test_a_deletion_without_resume_leaves_attempts_paused() -> None:
    world = world_of("a")
    world.set_breakpoint()

    event = only(c.BreakpointDeleted, world.delete_breakpoint(resume=False))

    assert not event.resume
    assert told(world)[-1] == ("etl/1", c.ChangeBreakpoints(2, ()))


def test_only_a_breakpoint_with_the_same_fields_is_deleted() -> None:
    world = world_of()
    world.set_breakpoint(version=1)

    others: list[dict[str, Any]] = [{}, {"attempt": 1}, {"version": 1, "instance_id": 1}, {"version": 1, "attempt": 1}]
    for fields in others:
        assert only(c.CommandRefused, world.delete_breakpoint(**fields)).refusal == "NOT_FOUND"

    assert types(world.delete_breakpoint(version=1)) == ["BreakpointDeleted", "CommandSettled"]
    assert only(c.CommandRefused, world.delete_breakpoint(version=1)).refusal == "NOT_FOUND"


def test_a_run_is_not_told_that_a_breakpoint_of_other_runs_is_gone() -> None:
    world = world_of("a")
    world.push(run_strategy=PARALLEL)
    world.start("b")
    world.set_breakpoint(version=2)
    world.set_breakpoint(instance_id=1, run_id=7)

    world.delete_breakpoint(version=2)
    world.delete_breakpoint(instance_id=1, run_id=7)

    removed = [(key, change.removed) for key, change in told(world)[-3:]]
    assert removed == [("etl/1", None), ("etl/2", on(version=2)), ("etl/1", None)]


# Batches ------------------------------------------------------------------------------------------------------------


def test_many_are_told_in_batches() -> None:
    world = crowd(2 * TOLD_MAX + 10)

    world.decide(c.SetBreakpoint("b", "ann", "load"))
    assert len(told(world)) == TOLD_MAX
    for _ in range(2):
        key, rest = world.continued.popleft()
        world.decide(rest, key)

    assert not world.continued
    assert [key for key, _ in told(world)] == [f"etl/{number}" for number in range(1, 2 * TOLD_MAX + 11)]


def test_those_that_just_fit_are_told_by_one_decision() -> None:
    world = crowd(TOLD_MAX)

    world.decide(c.SetBreakpoint("b", "ann", "load"))

    assert len(told(world)) == TOLD_MAX
    assert not world.continued


def test_what_was_launched_since_the_change_is_not_told_again() -> None:
    world = crowd(TOLD_MAX + 10)
    world.decide(c.SetBreakpoint("b", "ann", "load"))
    world.decide(c.StartInstances("ann", (c.Start("late"),)))
    assert launches(world)[-1] == (on(),)

    key, rest = world.continued.popleft()
    world.decide(rest, key)

    assert not world.continued
    assert [key for key, _ in told(world)][-1] == f"etl/{TOLD_MAX + 10}"


def test_an_instance_that_is_told_late_never_goes_back() -> None:
    world = crowd(TOLD_MAX + 10)
    world.decide(c.SetBreakpoint("first", "ann", "load"))
    world.decide(c.DeleteBreakpoint("second", "ann", "load"))
    world.decide(c.SetBreakpoint("third", "ann", "load", attempt=2))
    while world.continued:
        key, rest = world.continued.popleft()
        world.decide(rest, key)

    of_last = [change for key, change in told(world) if key == f"etl/{TOLD_MAX + 10}"]
    assert [change.generation for change in of_last] == [3, 3, 3]
    assert [change.breakpoints for change in of_last] == [(on(attempt=2),)] * 3
    assert [change.removed for change in of_last] == [None, on(), None]


def test_a_removal_reaches_those_that_are_told_after_the_breakpoint_was_set_again() -> None:
    world = crowd(TOLD_MAX + 10)
    world.set_breakpoint()
    world.decide(c.DeleteBreakpoint("delete", "ann", "load"))
    world.now_ms += 1
    world.do(c.SetBreakpoint("again", "ann", "load"))

    of_last = [change for key, change in told(world) if key == f"etl/{TOLD_MAX + 10}"]

    assert of_last[-2:] == [
        c.ChangeBreakpoints(3, (on(at_ms=NOW_MS + 1),), on()),
        c.ChangeBreakpoints(3, (on(at_ms=NOW_MS + 1),)),
    ]


def test_a_batch_for_numbers_beyond_all_instances_tells_those_that_there_are() -> None:
    world = world_of("a")
    latest = 2**63 - 1

    world.decide(c.TellBreakpoints(after_instance_id=0, upto_instance_id=latest))
    world.decide(c.TellBreakpoints(after_instance_id=latest, upto_instance_id=latest))

    assert [key for key, _ in told(world)] == ["etl/1"]


# Deleted workflows --------------------------------------------------------------------------------------------------


def test_a_deleted_workflow_loses_its_breakpoints_and_numbers_go_on() -> None:
    world = world_of("a")
    world.set_breakpoint()
    world.end(1, InstanceStatus.SUCCEEDED)

    world.do(c.DeleteWorkflow("d", "ann"))
    world.push()
    world.start("b")

    assert launches(world)[-1] == ()
    assert only(c.CommandRefused, world.delete_breakpoint()).refusal == "NOT_FOUND"
    assert only(c.BreakpointSet, world.set_breakpoint()).generation == 2
    assert world.replayed() == world.state.fingerprint()


def test_a_workflow_with_an_instance_that_may_be_paused_is_not_deleted() -> None:
    world = world_of("a")
    world.set_breakpoint()

    assert only(c.CommandRefused, world.do(c.DeleteWorkflow("d", "ann"))).refusal == "CONFLICT"


def test_history_rebuilds_the_tables() -> None:
    world = world_of("a", "b")
    world.set_breakpoint()
    world.set_breakpoint(instance_id=1, run_id=1, attempt=2)
    world.set_breakpoint()
    world.delete_breakpoint()
    world.fail(1)
    world.restart(1)

    assert world.replayed() == world.state.fingerprint()
