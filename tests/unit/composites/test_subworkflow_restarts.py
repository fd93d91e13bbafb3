"""Restarts around and inside of subworkflows: the same child runs again."""

from typing import Any

import pytest

from kapelle.processors.params.names import RUN_PARAMS_MAX
from kapelle.processors.params.stored import typed
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.composites.trees import call, child, foreach, push, restart, runs_of, slow, statuses
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    SPECIFIC,
    I,
    S,
    fail,
    noop,
    param,
    pushed,
    reason,
    refused,
    step,
    succeed,
    task,
)


def called(*more: Any, **fields: Any) -> RunHandle:
    """A run whose step `sub` calls a workflow of two steps."""
    engine = pushed(call("sub", "other", **fields), *more, params={"base": 1})
    return push(engine, "other", step("a", "b", x="=base"), step("b"), params={"base": 0}).start("flow")


def again(one: RunHandle, step_id: str) -> list[int]:
    """The runs in which a step was created."""
    return [each.run_id for each in one.changes(step_id) if S.CREATED in each.statuses]


@pytest.mark.parametrize("is_failed", [True, False])
def test_from_the_beginning_the_same_child_runs_from_its_beginning(is_failed: bool) -> None:
    run = called()
    succeed(child(run, "sub"), "a")
    (fail if is_failed else succeed)(child(run, "sub"), "b")

    run.restart(BEGINNING)
    one = child(run, "sub")

    assert len(run.engine.runs("other")) == 1
    assert again(one, "a") == [1, 2]
    succeed(one, "a", "b")
    assert run.status is I.SUCCEEDED


def test_from_what_is_incomplete_the_same_child_runs_what_is_incomplete() -> None:
    run = called()
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    run.restart(INCOMPLETE)
    one = child(run, "sub")

    assert (again(one, "a"), again(one, "b")) == ([1], [1, 2])
    succeed(one, "b")
    assert run.status is I.SUCCEEDED


def test_a_restart_of_the_step_restarts_the_same_child() -> None:
    run = called()
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    run.restart(SPECIFIC, step_id="sub")

    assert again(child(run, "sub"), "b") == [1, 2]
    assert len(run.engine.runs("other")) == 1


def test_a_restart_of_a_step_whose_child_succeeded_runs_the_child_from_its_beginning() -> None:
    run = called()
    succeed(child(run, "sub"), "a", "b")

    run.restart(SPECIFIC, step_id="sub")
    one = child(run, "sub")

    assert again(one, "a") == [1, 2]
    succeed(one, "a", "b")
    assert run.status is I.SUCCEEDED


def test_a_failed_step_is_restarted_with_the_same_child_while_others_run() -> None:
    run = called(step("side"))
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    run.restart(SPECIFIC, step_id="sub")
    one = child(run, "sub")

    assert run.step_rows()["sub"].attempt == 2
    assert again(one, "b") == [1, 2]
    succeed(one, "b")
    assert run.steps["sub"] is S.SUCCEEDED


def test_behind_a_step_that_runs_again_a_complete_child_runs_from_its_beginning() -> None:
    engine = pushed(step("first", "sub"), call("sub", "other"))
    run = push(engine, "other", step("a")).start("flow")
    succeed(run, "first")
    succeed(child(run, "sub"), "a")

    run.restart(SPECIFIC, step_id="first")
    succeed(run, "first")

    assert again(child(run, "sub"), "a") == [1, 2]
    assert len(engine.runs("other")) == 1


def test_the_child_keeps_its_version() -> None:
    run = called()
    fail(child(run, "sub"), "a")
    push(run.engine, "other", step("new"))

    run.restart(BEGINNING)

    assert child(run, "sub").steps == {"a": S.STARTING}


def test_the_child_gets_the_present_parameters_of_its_parent() -> None:
    run = called()
    fail(child(run, "sub"), "a")

    run.restart(BEGINNING, run_params={"base": param(5)})

    assert task(child(run, "sub"), "a").params["x"] == 5


def test_a_child_that_still_runs_refuses_and_the_step_fails() -> None:
    run = called(sync=False)
    assert run.status is I.SUCCEEDED

    run.restart(BEGINNING)

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert "to have ended" in reason(run, "sub")
    assert again(child(run, "sub"), "a") == [1]


def test_a_child_that_never_existed_is_started_by_a_restart() -> None:
    engine = pushed(call("sub", "other"))
    run = engine.start("flow")
    assert run.steps == {"sub": S.FATALLY_FAILED}
    push(engine, "other", noop("a"))

    run.restart(INCOMPLETE)

    assert run.status is I.SUCCEEDED


def test_a_child_that_was_stopped_in_the_queue_runs_from_its_beginning() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("a"), strategy="SEQUENTIAL")
    busy = engine.start("other")
    run = engine.start("flow")
    run.stop()
    succeed(busy, "a")

    run.restart(INCOMPLETE)
    succeed(child(run, "sub"), "a")

    assert child(run, "sub").key == "other/2"
    assert run.status is I.SUCCEEDED


def test_a_restarted_child_goes_through_its_own_run_strategy() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("a"), strategy="FIRST_ONLY")
    run = engine.start("flow")
    fail(child(run, "sub"), "a")
    engine.start("other")

    run.restart(INCOMPLETE)

    assert run.steps == {"sub": S.STOPPED}


# Something inside it --------------------------------------------------------------------------------------------------


def test_a_restart_of_a_child_that_has_ended_climbs_to_the_root() -> None:
    run = called()
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    restart(child(run, "sub"), BEGINNING)
    one = child(run, "sub")
    before = again(one, "a"), run.status
    succeed(one, "a", "b")

    assert before == ([1, 2], I.IN_PROGRESS)
    assert run.status is I.SUCCEEDED
    assert run.row is not None
    assert run.row.run_id == 2


def test_a_restart_of_a_step_of_the_child_runs_that_step_and_all_behind_it() -> None:
    run = called()
    succeed(child(run, "sub"), "a", "b")

    restart(child(run, "sub"), SPECIFIC, step_id="b")
    one = child(run, "sub")

    assert (again(one, "a"), again(one, "b")) == ([1], [1, 2])
    succeed(one, "b")
    assert run.status is I.SUCCEEDED


def test_run_params_of_a_restart_are_for_the_child_that_is_meant() -> None:
    run = called()
    fail(child(run, "sub"), "a")

    restart(child(run, "sub"), BEGINNING, run_params={"base": param(7)})

    assert task(child(run, "sub"), "a").params["x"] == 7


def test_step_run_params_of_a_restart_are_for_the_step_that_is_meant() -> None:
    run = called()
    fail(child(run, "sub"), "a")

    restart(child(run, "sub"), SPECIFIC, step_id="a", step_run_params={"a": {"x": param(9)}})

    assert task(child(run, "sub"), "a").params["x"] == 9


def test_a_restart_of_a_child_of_an_instance_that_runs_is_another_attempt_at_the_step() -> None:
    run = called(step("side"))
    fail(child(run, "sub"), "a")

    restart(child(run, "sub"), BEGINNING)

    assert run.step_rows()["sub"].attempt == 2
    assert runs_of(child(run, "sub")) == 2
    assert runs_of(run) == 1


def test_a_restart_of_a_child_of_a_complete_step_of_an_instance_that_runs_is_refused() -> None:
    run = called(step("side"))
    succeed(child(run, "sub"), "a", "b")

    restart(child(run, "sub"), BEGINNING)

    assert "but it is SUCCEEDED" in refused(run)


def test_a_restart_climbs_through_an_asynchronous_call_too() -> None:
    run = called(sync=False)
    fail(child(run, "sub"), "a")

    restart(child(run, "sub"), INCOMPLETE)

    assert runs_of(run) == 2
    assert again(child(run, "sub"), "a") == [1, 2]
    assert run.status is I.SUCCEEDED


def test_a_restart_inside_a_child_inside_a_loop() -> None:
    engine = pushed(foreach("loop", call("sub", "other"), i=[1, 2]))
    run = push(engine, "other", step("a")).start("flow")
    succeed(child(child(run, "loop", 1), "sub"), "a")
    fail(child(child(run, "loop", 2), "sub"), "a")

    restart(child(child(run, "loop", 2), "sub"), INCOMPLETE)
    before = statuses(run, "loop")
    succeed(child(child(run, "loop", 2), "sub"), "a")

    assert before == [I.SUCCEEDED, I.IN_PROGRESS]
    assert run.status is I.SUCCEEDED
    assert len(engine.runs("other")) == 2


def test_a_restart_of_an_iteration_inside_a_child() -> None:
    engine = pushed(call("sub", "other"))
    run = push(engine, "other", foreach("loop", step("a"), i=[1, 2])).start("flow")
    succeed(child(child(run, "sub"), "loop", 1), "a")
    fail(child(child(run, "sub"), "loop", 2), "a")

    restart(child(child(run, "sub"), "loop", 2), INCOMPLETE)
    succeed(child(child(run, "sub"), "loop", 2), "a")

    assert run.status is I.SUCCEEDED
    assert runs_of(child(child(run, "sub"), "loop", 1)) == 1


def test_a_restart_of_an_iteration_of_a_running_child_is_in_place_there() -> None:
    engine = pushed(call("sub", "other"))
    run = push(engine, "other", foreach("loop", step("a"), i=[1, 2])).start("flow")
    fail(child(child(run, "sub"), "loop", 1), "a")

    restart(child(child(run, "sub"), "loop", 1), INCOMPLETE)

    assert statuses(child(run, "sub"), "loop") == [I.IN_PROGRESS, I.IN_PROGRESS]
    assert runs_of(child(run, "sub")) == 1


def test_a_skip_of_a_step_of_a_child_that_has_ended_completes_the_parent() -> None:
    run = called()
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    child(run, "sub").act("b", Action.SKIP)

    assert child(run, "sub").steps == {"a": S.SUCCEEDED, "b": S.SKIPPED}
    assert run.status is I.SUCCEEDED


def test_a_string_map_of_the_parent_is_one_in_the_restarted_child() -> None:
    labels = {"type": "STRING_MAP", "value": {"k": "$$v"}}
    engine = pushed(call("sub", "other"), params={"labels": labels})
    push(engine, "other", step("a"), params={"labels": {"type": "STRING_MAP", "value": {}}})
    run = engine.start("flow")
    fail(child(run, "sub"), "a")

    run.restart(BEGINNING)
    succeed(child(run, "sub"), "a")

    assert run.status is I.SUCCEEDED, reason(run, "sub")


def test_the_answer_of_a_restart_that_comes_twice_is_one_run() -> None:
    run = called()
    fail(child(run, "sub"), "a")
    one = child(run, "sub")

    for _ in range(2):
        send(run.engine, one, "same")
        fail(child(run, "sub"), "a")

    assert runs_of(one) == 2
    assert runs_of(run) == 2


def send(engine: Engine, one: RunHandle, request_id: str) -> None:
    engine.send(RUN_COMMANDS, one.key, c.RestartRun(request_id, "ann", INCOMPLETE))


@pytest.mark.parametrize("is_pushed_again", [False, True])
def test_a_child_whose_workflow_was_deleted_is_not_restarted_and_the_step_fails(is_pushed_again: bool) -> None:
    run = called()
    fail(child(run, "sub"), "a")
    run.engine.send(WORKFLOW_COMMANDS, "other", c.DeleteWorkflow("delete", "ann"))
    if is_pushed_again:
        push(run.engine, "other", step("a"))

    run.restart(INCOMPLETE)

    assert run.steps == {"sub": S.FATALLY_FAILED}
    missing = "instance 1 of workflow 'other'" if is_pushed_again else "workflow 'other'"
    assert f"Expected {missing} to exist" in reason(run, "sub")


@pytest.mark.parametrize("policy", [BEGINNING, INCOMPLETE])
def test_a_string_map_of_the_parent_is_one_in_a_child_that_never_ran(policy: RestartPolicy) -> None:
    labels = {"type": "STRING_MAP", "value": {"k": "$$v"}}
    engine = pushed(call("sub", "other"), params={"labels": labels})
    known = {"labels": {"type": "STRING_MAP", "value": {}}}
    push(engine, "other", step("a", all="=1"), strategy="SEQUENTIAL", params=known)
    busy = engine.start("other")
    run = engine.start("flow")
    run.stop()
    succeed(busy, "a")
    assert runs_of(child(run, "sub")) == 0

    run.restart(policy)

    assert run.steps == {"sub": S.RUNNING}, reason(run, "sub")
    assert typed(child(run, "sub").params()["labels"]) == {"k": "$v"}


@pytest.mark.parametrize("has_run", [True, False])
def test_a_parent_may_give_more_parameters_to_a_restarted_child_than_a_person(has_run: bool) -> None:
    engine = pushed(call("sub", "other"), params={f"p{number}": number for number in range(RUN_PARAMS_MAX + 1)})
    push(engine, "other", step("a"), strategy="SEQUENTIAL")
    busy = None if has_run else engine.start("other")
    run = engine.start("flow")
    run.stop()
    if busy is not None:
        succeed(busy, "a")

    run.restart(INCOMPLETE)

    assert run.steps == {"sub": S.RUNNING}, reason(run, "sub")


def test_a_restart_of_a_child_takes_the_way_of_its_end_and_cannot_overtake_it() -> None:
    engine = push(slow(), "other", step("a"))
    run = push(engine, "flow", call("sub", "other"), step("side")).start("flow")
    one = run.child("sub")
    fail(one, "a")

    send(engine, one, "again")

    sent = [command for _, command in engine.history(WORKFLOW_INTERNAL, 0)]
    ways = [type(one).__name__ for one in sent if isinstance(one, c.RecordRunEnd | c.QueueRun)]
    assert ways == ["RecordRunEnd", "QueueRun", "QueueRun"]  # of the child: its end, the request, its new run
    assert runs_of(one) == 2
