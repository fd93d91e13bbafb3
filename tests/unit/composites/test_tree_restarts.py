"""A restart that climbs: it must be of a child that its parent has now, and each request acts once."""

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Refusal
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import call, child, foreach, loop_while, push, restart, runs_of, statuses
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    I,
    Json,
    S,
    fail,
    noop,
    param,
    pushed,
    reason,
    refused,
    started,
    step,
    succeed,
)

AT = {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}


# Subworkflows that their parent no longer has -------------------------------------------------------------------------


def test_the_child_of_an_earlier_turn_is_not_restarted() -> None:
    engine = pushed(noop("head", "sub"), call("sub", "other", to=["tail"]), noop("tail", {"head": "at < 6"}, at=AT))
    run = push(engine, "other", noop("a")).start("flow")
    first, second = engine.runs("other")

    restart(first, BEGINNING)

    assert "Expected other/1 to be the child of step 'sub' of flow/1, but other/2 is" in refused(run)
    assert engine.refusals()[-1].refusal is Refusal.INVALID
    assert [runs_of(one) for one in (run, first, second)] == [1, 1, 1]


def with_another_child(*more: Json, sync: bool = True) -> tuple[RunHandle, RunHandle]:
    """A run whose step called `a`, and after a restart calls `b`; and the child of `a`."""
    name = {"type": "STRING", "expression": "name"}
    engine = pushed(call("sub", "a", subworkflow_id=name, sync=sync), *more, params={"name": "a"})
    run = push(push(engine, "a", step("in")), "b", step("in")).start("flow")
    before = run.child("sub")
    fail(before, "in")
    for one in more:
        succeed(run, one["step"]["id"])
    run.restart(BEGINNING, run_params={"name": param("b")})
    assert run.child("sub").key == "b/1"
    return run, before


def test_the_child_of_an_earlier_run_is_not_restarted_when_the_parent_has_ended() -> None:
    run, before = with_another_child()
    fail(run.child("sub"), "in")

    restart(before, BEGINNING)

    assert "Expected a/1 to be the child of step 'sub' of flow/1, but b/1 is" in refused(run)
    assert [runs_of(one) for one in (run, before, run.child("sub"))] == [2, 1, 1]


def test_the_child_of_an_earlier_run_is_not_restarted_while_the_parent_runs() -> None:
    run, before = with_another_child(step("side"))
    fail(run.child("sub"), "in")

    restart(before, BEGINNING)

    assert "but b/1 is" in refused(run)
    assert [runs_of(one) for one in (before, run.child("sub"))] == [1, 1]


def test_an_asynchronous_child_that_the_parent_has_no_more_is_not_restarted() -> None:
    run, before = with_another_child(sync=False)

    restart(before, BEGINNING)

    assert "but b/1 is" in refused(run)
    assert runs_of(before) == 1


def test_a_child_that_never_ran_and_that_the_parent_has_no_more_is_not_restarted() -> None:
    name = {"type": "STRING", "expression": "name"}
    engine = pushed(call("sub", "a", subworkflow_id=name), params={"name": "a"})
    push(push(engine, "a", step("in"), strategy="SEQUENTIAL"), "b", step("in"))
    engine.start("a")
    run = engine.start("flow")
    before = run.child("sub")
    run.stop()
    run.restart(BEGINNING, run_params={"name": param("b")})
    fail(run.child("sub"), "in")

    restart(before, BEGINNING)

    assert "Expected a/2 to be the child of step 'sub' of flow/1, but b/1 is" in refused(run)
    assert runs_of(run.child("sub")) == 1


def test_a_restart_of_a_child_starts_no_other_one_if_the_step_names_another_workflow_now() -> None:
    name = {"type": "STRING", "expression": "name"}
    engine = pushed(call("sub", "a", subworkflow_id=name, wrong="=10 / by", by=1), params={"name": "a"})
    run = push(push(engine, "a", step("in")), "b", step("in")).start("flow")
    before = run.child("sub")
    fail(before, "in")
    restart(run, BEGINNING, run_params={"name": param("b")}, step_run_params={"sub": {"by": param(0)}})
    assert (run.steps["sub"], run.child("sub").key) == (S.INTERNALLY_FAILED, "a/1")

    restart(before, BEGINNING)

    assert run.steps["sub"] is S.FATALLY_FAILED
    assert reason(run, "sub") == "Expected 'a' as subworkflow_id, because a/1 is to be restarted, but found 'b'"
    assert (engine.runs("b"), runs_of(before)) == ([], 1)


# Iterations and rounds that their step no longer has ------------------------------------------------------------------


def counted(*more: Json) -> RunHandle:
    """A run whose loop had three iterations, and has one after a restart from the beginning."""
    array = {"type": "LONG_ARRAY", "expression": "return new long[count];"}
    loop = foreach("loop", step("in"), loop_params={"type": "MAP", "value": {"i": array}})
    run = started(loop, *more, params={"count": 3})
    for number in (1, 2, 3):
        succeed(child(run, "loop", number), "in")
    run.restart(BEGINNING, run_params={"count": param(1)})
    return run


def test_an_iteration_that_the_loop_has_no_more_is_not_restarted_in_its_place() -> None:
    run = counted()

    restart(child(run, "loop", 3), BEGINNING)

    assert "to have been launched in this run of step 'loop' of flow/1, but it was not" in refused(run)
    assert run.engine.refusals()[-1].refusal is Refusal.INVALID
    assert statuses(run, "loop") == [I.IN_PROGRESS, I.SUCCEEDED, I.SUCCEEDED]


def test_an_iteration_that_the_loop_has_no_more_is_not_restarted_after_the_end_of_the_run() -> None:
    run = counted()
    succeed(child(run, "loop"), "in")
    assert run.status is I.SUCCEEDED

    restart(child(run, "loop", 3), BEGINNING)

    assert "to have been launched in this run" in refused(run)
    assert runs_of(run) == 2


def test_an_iteration_that_a_restart_from_the_beginning_has_not_come_to_is_not_restarted() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3], concurrency=1))
    for number in (1, 2, 3):
        succeed(child(run, "loop", number), "in")
    run.restart(BEGINNING)

    restart(child(run, "loop", 3), BEGINNING)

    assert "to have been launched in this run" in refused(run)
    assert runs_of(child(run, "loop", 3)) == 1


def test_an_iteration_is_not_restarted_if_the_loop_failed_before_it_had_iterations() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2], wrong="=10 / by"), params={"by": 1})
    for number in (1, 2):
        succeed(child(run, "loop", number), "in")
    run.restart(BEGINNING, run_params={"by": param(0)})

    restart(child(run, "loop", 2), BEGINNING)

    assert "to have been launched in this run" in refused(run)
    assert runs_of(child(run, "loop", 2)) == 1


def test_a_round_that_the_loop_has_not_come_to_again_is_not_restarted() -> None:
    run = started(loop_while("loop", "n < 3", step("in", n="=n + 1"), first={"n": 0}))
    for number in (1, 2, 3):
        succeed(child(run, "loop", number), "in")
    run.restart(BEGINNING)
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 3), BEGINNING)

    assert "to have been launched in this run" in refused(run)
    assert [runs_of(child(run, "loop", number)) for number in (1, 2, 3)] == [2, 1, 1]


def test_a_round_before_the_one_that_a_restart_went_on_with_can_be_restarted() -> None:
    run = started(loop_while("loop", "n < 3", step("in", n="=n + 1"), first={"n": 0}))
    succeed(child(run, "loop", 1), "in")
    fail(child(run, "loop", 2), "in")
    run.restart()
    fail(child(run, "loop", 2), "in")

    restart(child(run, "loop", 1), BEGINNING)

    assert [runs_of(child(run, "loop", number)) for number in (1, 2)] == [2, 2]
    assert not [one for one in run.engine.refusals() if isinstance(one, c.CommandRefused)]


# Ancestors that are about to run ------------------------------------------------------------------------------------


def test_a_restart_is_refused_while_an_ancestor_waits_in_its_queue_to_be_restarted() -> None:
    engine = pushed(call("sub", "other"))
    run = push(engine, "other", foreach("loop", step("in"), i=[1]), strategy="SEQUENTIAL").start("flow")
    middle = run.child("sub")
    one = child(middle, "loop")
    fail(one, "in")
    busy = engine.start("other")
    run.restart()
    assert middle.status is I.CREATED

    restart(one, BEGINNING)

    assert "Expected run 2 of instance other/1 to have ended, but it is CREATED" in refused(run)
    assert engine.refusals()[-1].refusal is Refusal.CONFLICT
    succeed(child(busy, "loop"), "in")
    succeed(one, "in")
    assert (run.status, runs_of(one)) == (I.SUCCEEDED, 2)


def test_a_refused_start_of_a_later_turn_names_no_child_of_the_turn_before() -> None:
    at = {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}
    engine = pushed(noop("head", "sub"), call("sub", "other", to=["tail"]), noop("tail", {"head": "at < 6"}, at=at))
    run = push(engine, "other", step("a")).start("flow")
    first = run.child("sub")
    engine.send(WORKFLOW_COMMANDS, "other", c.DeactivateWorkflow("off", "ann"))
    succeed(first, "a")
    assert run.steps["sub"] is S.FATALLY_FAILED

    run.restart(INCOMPLETE)
    second = reason(run, "sub")
    restart(first, BEGINNING)

    assert second.startswith("other FAILED: Expected")
    assert "Expected other/1 to be the child of step 'sub' of flow/1, but it has none now" in refused(run)
    assert runs_of(first) == 1
