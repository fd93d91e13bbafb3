"""Restarts of instances that have ended: which steps run again, what they know, and what all runs make together."""

import pytest

from kapelle.processors.wiring import RUN_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Refusal, RestartPolicy
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    ONCE,
    SPECIFIC,
    I,
    S,
    fail,
    noop,
    param,
    pushed,
    refused,
    run_status,
    started,
    step,
    succeed,
    task,
)


def tasks_of_run(run: RunHandle, run_id: int) -> list[str]:
    """The steps whose tasks a run gave out."""
    return [one.task.step_id for one in run.engine.tasks(run) if one.task.run_id == run_id]


# From the beginning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_failed", [True, False])
def test_a_restart_from_the_beginning_runs_every_step_again(is_failed: bool) -> None:
    run = started(step("a", "b"), step("b"))
    succeed(run, "a")
    if is_failed:
        fail(run, "b")
    else:
        succeed(run, "b")

    run.restart(BEGINNING)
    before = run.steps
    succeed(run, "a", "b")

    assert before == {"a": S.STARTING}
    assert tasks_of_run(run, 2) == ["a", "b"]
    assert run.status is I.SUCCEEDED


def test_a_restarted_run_counts_its_attempts_from_one() -> None:
    run = started(step("a"))
    task(run, "a").fail()
    run.stop()

    run.restart(BEGINNING)

    assert task(run, "a").task.attempt == 1
    assert run.step_rows()["a"].retries == {}


def test_a_restart_from_the_beginning_forgets_what_steps_left() -> None:
    run = started(step("a", "b", x=1), step("b"))
    task(run, "a").succeed(x=7)
    fail(run, "b")

    run.restart(BEGINNING)

    assert run.params("a") == {"x": 1}
    assert task(run, "a").params["x"] == 1


def test_an_instance_that_was_stopped_in_the_queue_can_be_restarted() -> None:
    engine = pushed(step("a"))
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
            "workflow": {"id": "queue", "steps": [step("a")]},
        }
    )
    first, second = engine.start("queue"), engine.start("queue")
    second.stop()
    succeed(first, "a")

    second.restart(INCOMPLETE)

    assert second.steps == {"a": S.STARTING}
    assert second.status is I.IN_PROGRESS


# From what is incomplete ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fail", "stop", "time out"])
def test_a_restart_from_what_is_incomplete_runs_it_and_all_behind_it(how: str) -> None:
    run = started(step("a", "b"), step("b", "c", timeout=60), step("c"))
    succeed(run, "a")
    if how == "fail":
        fail(run, "b")
    elif how == "stop":
        run.act("b", Action.STOP)
    else:
        run.engine.advance(60_000)

    run.restart(INCOMPLETE)
    succeed(run, "b", "c")

    assert tasks_of_run(run, 2) == ["b", "c"]
    assert run.status is I.SUCCEEDED


def test_a_complete_step_behind_an_incomplete_one_runs_again() -> None:
    run = started(step("a", "c", failure_mode="IGNORE_FAILURE"), step("b", "d"), step("c", "d"), noop("d"))
    succeed(run, "a", "c")
    fail(run, "b")
    run.restart(SPECIFIC, step_id="a")
    fail(run, "a")

    assert tasks_of_run(run, 2) == ["a", "c"]


def test_a_step_that_was_never_created_runs_when_what_it_waits_for_is_complete() -> None:
    run = started(step("a", failure_mode="FAIL_IMMEDIATELY"), step("b", "c"), noop("c"))
    fail(run, "a")

    run.restart(INCOMPLETE)
    succeed(run, "a", "b")

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}


def test_a_join_keeps_the_conditions_that_completed_predecessors_have_decided() -> None:
    run = started(noop("a", {"c": "1 < 2"}), step("b", {"c": "false"}), step("c"))
    fail(run, "b")

    run.restart(INCOMPLETE)
    succeed(run, "b")

    assert run.steps["c"] is S.STARTING


def test_a_join_whose_completed_predecessors_decided_against_it_is_unsatisfied() -> None:
    run = started(noop("a", {"c": "1 > 2"}), step("b", {"c": "false"}), step("c"))
    fail(run, "b")

    run.restart(INCOMPLETE)
    succeed(run, "b")

    assert run.steps["c"] is S.UNSATISFIED


def test_steps_that_do_not_run_again_keep_their_state_and_what_they_left() -> None:
    run = started(step("a", "b", x=1), step("b", y="=a__x"))
    task(run, "a").succeed(x=7)
    fail(run, "b")

    run.restart(INCOMPLETE)

    assert run.step_rows()["a"].run_id == 1
    assert task(run, "b").params["y"] == 7


def test_a_fully_complete_instance_has_nothing_incomplete_to_restart_from() -> None:
    run = started(noop("a", {"b": "false"}), noop("b"))

    run.restart(INCOMPLETE)

    assert "Expected a step that is not complete" in refused(run)
    assert run.row is not None
    assert run.row.run_id == 1


def test_an_instance_can_be_restarted_again_and_again() -> None:
    run = started(step("a"))
    for _ in range(3):
        fail(run, "a")
        run.restart(INCOMPLETE)
    succeed(run, "a")

    assert run.row is not None
    assert run.row.run_id == 4
    assert run.status is I.SUCCEEDED


# From a step ----------------------------------------------------------------------------------------------------------


def test_a_restart_from_a_complete_step_runs_it_and_all_behind_it() -> None:
    run = started(step("a", "b"), step("b", "c"), step("c"), step("other"))
    succeed(run, "a", "b", "c", "other")

    run.restart(SPECIFIC, step_id="b")
    succeed(run, "b", "c")

    assert tasks_of_run(run, 2) == ["b", "c"]
    assert run.status is I.SUCCEEDED


def test_a_restart_from_a_step_that_nothing_led_to_runs_it() -> None:
    run = started(noop("a", {"b": "false"}), step("b", "c"), step("c"))

    run.restart(SPECIFIC, step_id="b")
    succeed(run, "b", "c")

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}


def test_a_restart_from_a_step_that_was_never_created_is_refused() -> None:
    run = started(step("a", "b"), noop("b"))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="b")

    assert "to have been created" in refused(run)


@pytest.mark.parametrize("step_id", ["nobody", None, "n" * 400_000])
def test_a_restart_from_a_step_that_does_not_exist_is_refused(step_id: str | None) -> None:
    run = started(noop("a"))

    run.restart(SPECIFIC, step_id=step_id)

    assert "Expected a step of the workflow (a)" in refused(run)
    assert len(refused(run)) < 300


def test_a_restart_in_a_way_that_this_version_does_not_know_is_refused() -> None:
    run = started(step("a"))
    fail(run, "a")

    run.restart(RestartPolicy.OTHER)

    assert "RESTART_FROM_INCOMPLETE" in refused(run)


def test_a_restart_of_an_instance_that_does_not_exist_is_not_found() -> None:
    run = started(noop("a"))

    run.engine.send(RUN_COMMANDS, "flow/99", c.RestartRun("r-1", "ann", INCOMPLETE))

    assert run.engine.refusals()[-1].refusal is Refusal.NOT_FOUND


def test_a_step_of_an_instance_that_never_ran_cannot_be_restarted() -> None:
    run = started(noop("a"))

    run.engine.send(RUN_COMMANDS, "flow/99", c.RestartRun("r-1", "ann", SPECIFIC, "a"))

    assert "never ran" in refused(run)


def test_the_same_restart_asked_for_twice_is_one_run() -> None:
    run = started(step("a"))
    fail(run, "a")
    command = c.RestartRun("r-1", "ann", INCOMPLETE)
    run.engine.send(RUN_COMMANDS, run.key, command)
    fail(run, "a")

    run.engine.send(RUN_COMMANDS, run.key, command)

    assert run.row is not None
    assert run.row.run_id == 2


# Parameters -----------------------------------------------------------------------------------------------------------


def test_a_restart_without_parameters_keeps_those_of_the_run_before() -> None:
    engine = pushed(step("a", y="=x * 2"), params={"x": 1})
    run = engine.start("flow", run_params={"x": param(4)})
    fail(run, "a")

    run.restart(INCOMPLETE)

    assert task(run, "a").params["y"] == 8


def test_a_restart_may_change_parameters_of_the_workflow() -> None:
    run = started(step("a", y="=x * 2"), params={"x": 1})
    fail(run, "a")

    run.restart(INCOMPLETE, run_params={"x": param(5)})

    assert task(run, "a").params["y"] == 10


def test_a_parameter_that_a_restart_may_not_change_is_refused() -> None:
    run = started(step("a"), params={"x": {"type": "LONG", "value": 1, "mode": "MUTABLE_ON_START"}})
    fail(run, "a")

    run.restart(INCOMPLETE, run_params={"x": param(5)})

    assert "'x'" in refused(run)
    assert run.status is I.FAILED


@pytest.mark.parametrize("given", [{"x": 5}, {"x": {"type": "LONG", "value": "many"}}, {"params": param(1)}])
def test_parameters_that_make_no_sense_are_refused(given: dict[str, object]) -> None:
    run = started(step("a"), params={"x": 1})
    fail(run, "a")

    run.restart(INCOMPLETE, run_params=given)

    assert run.engine.refusals() != []
    assert run.status is I.FAILED


@pytest.mark.parametrize("text", ["{", "[]", "5", "[" * 50_000])
def test_parameters_that_are_no_json_object_are_refused(text: str) -> None:
    run = started(step("a"))
    fail(run, "a")

    run.engine.send(RUN_COMMANDS, run.key, c.RestartRun("r-1", "ann", INCOMPLETE, None, text))
    run.engine.send(RUN_COMMANDS, run.key, c.RestartRun("r-2", "ann", INCOMPLETE, None, "{}", text))

    assert [one.request_id for one in run.engine.refusals()] == ["r-1", "r-2"]


def test_parameters_that_no_record_can_hold_are_refused() -> None:
    run = started(step("a", x=""), params={"y": ""})
    fail(run, "a")

    half = param("x" * 480_000)
    run.restart(INCOMPLETE, run_params={"y": half}, step_run_params={"a": {"x": half}})

    assert "bytes" in refused(run)


def test_a_restart_may_change_parameters_of_a_step() -> None:
    run = started(step("a", x=1))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a", step_run_params={"a": {"x": param(3)}})

    assert task(run, "a").params["x"] == 3


def test_parameters_of_a_step_given_at_the_start_hold_in_a_restart() -> None:
    engine = pushed(step("a", x=1))
    run = engine.start("flow", step_run_params={"a": {"x": param(2)}})
    fail(run, "a")

    run.restart(INCOMPLETE)

    assert task(run, "a").params["x"] == 2


def test_expressions_can_tell_how_the_run_was_restarted() -> None:
    policy = {"type": "STRING", "expression": "params.getFromInstance('RUN_POLICY')"}
    run = started(step("a", policy=policy))
    fail(run, "a")

    run.restart(INCOMPLETE)

    policies = [one.params["policy"] for one in run.engine.tasks(run)]
    assert policies == ["START_FRESH_NEW_RUN", "RESTART_FROM_INCOMPLETE"]


# What all runs make together ------------------------------------------------------------------------------------------


def test_a_run_that_succeeds_leaves_the_instance_failed_if_another_step_still_is() -> None:
    run = started(step("a", "b"), step("b"), step("c", "d"), step("d"))
    succeed(run, "a", "c")
    fail(run, "b")
    fail(run, "d")

    run.restart(SPECIFIC, step_id="b")
    succeed(run, "b")

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "c": S.SUCCEEDED, "d": S.FATALLY_FAILED}
    assert run_status(run) is I.SUCCEEDED
    assert run.status is I.FAILED


@pytest.mark.parametrize(
    ("how", "status"), [("fail", I.FAILED), ("time out", I.TIMED_OUT), ("stop", I.STOPPED), ("skip", I.SUCCEEDED)]
)
def test_the_instance_is_the_worst_of_all_its_steps(how: str, status: I) -> None:
    run = started(step("a"), step("d", retry_policy=ONCE, timeout=60))
    succeed(run, "a")
    if how == "fail":
        fail(run, "d")
    elif how == "time out":
        run.engine.advance(60_000)
    else:
        run.act("d", Action.STOP if how == "stop" else Action.SKIP)

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert run_status(run) is I.SUCCEEDED
    assert run.status is status


def test_a_restart_that_fails_makes_the_instance_fail() -> None:
    run = started(noop("a", "b"), step("b"))
    run.act("b", Action.STOP)

    run.restart(INCOMPLETE)
    fail(run, "b")

    assert run.status is I.FAILED


def test_an_instance_whose_last_open_step_succeeds_in_a_restart_succeeds() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")
    fail(run, "b")
    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    run.restart(SPECIFIC, step_id="b")
    succeed(run, "b")

    assert run.status is I.SUCCEEDED


def test_a_restart_that_is_stopped_in_the_queue_leaves_the_steps_as_they_were() -> None:
    engine = pushed(step("a"))
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
            "workflow": {"id": "queue", "steps": [step("a")]},
        }
    )
    first = engine.start("queue")
    fail(first, "a")
    engine.start("queue")
    first.restart(INCOMPLETE)

    first.stop()

    assert first.steps == {"a": S.FATALLY_FAILED}
    assert first.status is I.STOPPED
    first.restart(INCOMPLETE)
    assert len(engine.refusals()) == 0
