"""What people may do to a step: the whole table of states and actions, and what each action makes of the step."""

import json

import pytest

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Emit
from kapelle.processors.messages import Message
from kapelle.processors.runs import runs
from kapelle.processors.runs.states import STEP_ACTIONS
from kapelle.processors.wiring import RUN_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Refusal, StepStatus
from tests.unit.runs.flows import (
    INCOMPLETE,
    MINUTE_MS,
    SPECIFIC,
    I,
    S,
    actions,
    fail,
    noop,
    passed,
    pause,
    reason,
    refused,
    started,
    step,
    succeed,
    task,
)

END, AGAIN = {Action.STOP, Action.KILL}, {Action.RESTART, Action.SKIP}
ALLOWED: dict[StepStatus, set[Action]] = {
    S.CREATED: END,
    S.INITIALIZED: {Action.SKIP, *END},
    S.PAUSED: {Action.RESUME, Action.SKIP, *END},
    S.WAITING_FOR_SIGNALS: {Action.SKIP, Action.BYPASS, *END},
    S.EVALUATING_PARAMS: {Action.SKIP, *END},
    S.WAITING_FOR_PERMITS: {Action.SKIP, *END},
    S.STARTING: {Action.SKIP, *END},
    S.RUNNING: {Action.SKIP, *END},
    S.FINISHING: {Action.SKIP, *END},
    S.USER_FAILED: {Action.SKIP, *END},
    S.PLATFORM_FAILED: {Action.SKIP, *END},
    S.TIMEOUT_FAILED: {Action.SKIP, *END},
    S.DISABLED: {Action.RESTART},
    S.UNSATISFIED: {Action.RESTART},
    S.SKIPPED: AGAIN,
    S.SUCCEEDED: AGAIN,
    S.COMPLETED_WITH_ERROR: AGAIN,
    S.FATALLY_FAILED: AGAIN,
    S.INTERNALLY_FAILED: AGAIN,
    S.STOPPED: AGAIN,
    S.TIMED_OUT: AGAIN,
}
ACTIVE = [status for status, allowed in ALLOWED.items() if Action.STOP in allowed]
OVER = [status for status in ALLOWED if status not in ACTIVE]
MADE_OF = {Action.STOP: S.STOPPED, Action.KILL: S.FATALLY_FAILED, Action.SKIP: S.SKIPPED}


def decided(status: StepStatus, action: Action) -> list[object]:
    """The events of an action on a step that history has brought into a state, while another step runs."""
    run = started(step("a"), step("b"))
    found = run.changes("a")[-1]
    draft = Draft(runs, run.key, run.engine.state("runs", run.key))
    change = c.StepChanged(1, "a", 1, 1, found.sequence, (status,), run.engine.clock.now_ms)
    draft.emit(change)
    message = Message(run.key, c.ActOnStep("r", "ann", "a", action, ""), "0")
    effects = runs.deciders[c.ActOnStep](message, draft.state, run.engine.clock.now_ms)
    return [one.value for one in effects if isinstance(one, Emit)]


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL, Action.SKIP])
@pytest.mark.parametrize("status", ACTIVE)
def test_an_active_step_takes_the_actions_of_the_table_and_no_others(status: StepStatus, action: Action) -> None:
    events = decided(status, action)

    if action in ALLOWED[status]:
        changed = next(one for one in events if isinstance(one, c.StepChanged))
        assert changed.statuses[-1] is MADE_OF[action]
    else:
        (refusal,) = events
        assert isinstance(refusal, c.CommandRefused)
        assert str(status) in refusal.message
        assert str(action) in refusal.message


def test_a_step_is_paused_by_a_breakpoint_and_by_no_action() -> None:
    (refusal,) = decided(S.CREATED, Action.PAUSE)

    assert isinstance(refusal, c.CommandRefused)
    assert refusal.message == "Expected KILL, STOP for a step that is CREATED, but found PAUSE"


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL])
@pytest.mark.parametrize("status", OVER)
def test_a_step_that_is_over_can_be_neither_stopped_nor_killed(status: StepStatus, action: Action) -> None:
    (refusal,) = decided(status, action)

    assert isinstance(refusal, c.CommandRefused)
    assert refusal.refusal is Refusal.INVALID
    assert str(status) in refusal.message


@pytest.mark.parametrize("status", [S.FATALLY_FAILED, S.INTERNALLY_FAILED, S.STOPPED, S.TIMED_OUT])
def test_a_step_that_failed_while_the_run_goes_on_can_be_skipped(status: StepStatus) -> None:
    events = decided(status, Action.SKIP)

    changed = next(one for one in events if isinstance(one, c.StepChanged))
    assert (changed.attempt, changed.statuses) == (2, (S.CREATED, S.SKIPPED))


@pytest.mark.parametrize("status", [S.DISABLED, S.UNSATISFIED, S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR])
def test_a_step_that_is_complete_cannot_be_skipped_while_the_run_goes_on(status: StepStatus) -> None:
    (refusal,) = decided(status, Action.SKIP)

    assert isinstance(refusal, c.CommandRefused)


@pytest.mark.parametrize("action", [Action.RESTART, Action.UNBLOCK, Action.TIME_OUT, Action.OTHER])
@pytest.mark.parametrize("status", list(ALLOWED))
def test_what_is_no_action_on_a_step_is_refused_in_every_state(status: StepStatus, action: Action) -> None:
    (refusal,) = decided(status, action)

    assert isinstance(refusal, c.CommandRefused)


def test_the_table_of_actions_is_the_one_that_the_engine_asks() -> None:
    assert STEP_ACTIONS == ALLOWED


def test_an_action_on_a_step_that_was_never_created_is_refused() -> None:
    run = started(step("a", "b"), noop("b"))

    run.act("b", Action.STOP)

    assert "to have been created" in refused(run)


@pytest.mark.parametrize("is_over", [False, True])
def test_the_skip_of_a_step_that_was_never_created_is_bad_input_whether_the_instance_has_ended_or_not(
    is_over: bool,
) -> None:
    run = started(step("a", "b"), noop("b"))
    if is_over:
        fail(run, "a")

    run.act("b", Action.SKIP)

    assert run.engine.refusals()[-1].refusal is Refusal.INVALID
    assert refused(run) == "Expected step 'b' to have been created, but it was not"
    assert "b" not in run.steps


def test_an_action_on_a_step_that_does_not_exist_is_refused_with_its_name_cut() -> None:
    run = started(step("a"))

    run.act("x" * 500_000, Action.STOP)

    assert len(refused(run)) < 200


def test_an_action_on_an_instance_that_does_not_exist_is_not_found() -> None:
    run = started(step("a"))

    run.engine.send(RUN_COMMANDS, "flow/99", c.ActOnStep("r", "ann", "a", Action.STOP, ""))

    assert run.engine.refusals()[-1].refusal is Refusal.NOT_FOUND


# What actions do ------------------------------------------------------------------------------------------------------


def test_an_action_is_recorded_with_its_author_and_reason() -> None:
    run = started(step("a"), step("b"))

    run.act("a", Action.STOP, "no need")

    (found,) = [one for one in run.events() if isinstance(one, c.ActionTaken)]
    assert (found.author, found.step_id, found.action, found.reason) == ("tester", "a", Action.STOP, "no need")
    assert reason(run, "a") == "no need"


def test_an_action_without_a_reason_says_who_asked() -> None:
    run = started(step("a"), step("b"))

    run.act("a", Action.STOP)

    assert reason(run, "a") == "tester asked for STOP"


def test_the_stop_of_a_step_ends_only_that_branch() -> None:
    run = started(step("a", "c"), step("b"), noop("c"))

    run.act("a", Action.STOP)
    before = run.status
    succeed(run, "b")

    assert before is I.IN_PROGRESS
    assert run.steps == {"a": S.STOPPED, "b": S.SUCCEEDED}
    assert run.status is I.STOPPED


def test_the_stop_of_a_step_that_waits_for_its_retry_ends_the_waiting() -> None:
    run = started(step("a"))
    task(run, "a").fail()

    run.act("a", Action.STOP)
    run.engine.advance(60 * MINUTE_MS)

    assert len(run.engine.tasks(run)) == 1
    assert run.status is I.STOPPED


def test_a_skipped_step_is_complete_and_the_run_goes_on() -> None:
    run = started(step("a", "b"), noop("b"))

    run.act("a", Action.SKIP)

    assert passed(run, "a")[-1] is S.SKIPPED
    assert run.steps["b"] is S.SUCCEEDED
    assert run.status is I.SUCCEEDED


def test_a_skipped_sleep_does_not_go_on_later() -> None:
    run = started(pause("a", "b"), noop("b"))

    run.act("a", Action.SKIP)
    run.engine.advance(10 * MINUTE_MS)

    assert len(run.changes("b")) == 1


def test_the_conditions_of_a_skipped_step_are_evaluated_with_the_parameters_that_it_began_with() -> None:
    run = started(step("a", {"b": "x > 1", "c": "x <= 1"}, x=5), noop("b"), noop("c"))

    run.act("a", Action.SKIP)

    assert run.steps == {"a": S.SKIPPED, "b": S.SUCCEEDED, "c": S.UNSATISFIED}


def test_all_that_follows_runs_if_a_skipped_step_lacks_what_its_conditions_need() -> None:
    run = started(
        step("first", "a", n=1),
        step("a", {"b": "x > 1", "c": "x <= 1"}, x="=1 / first__n"),
        noop("b"),
        noop("c"),
        step("other"),
    )
    task(run, "first").succeed(n=0)

    run.act("a", Action.SKIP)

    assert {name: run.steps[name] for name in "abc"} == {"a": S.SKIPPED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}


def test_a_failed_step_that_is_skipped_while_others_run_saves_the_run() -> None:
    run = started(step("a", "c"), step("b", "c"), noop("c"))
    fail(run, "a")

    run.act("a", Action.SKIP)
    succeed(run, "b")

    assert run.steps == {"a": S.SKIPPED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_what_comes_after_a_skipped_step_reads_its_parameters() -> None:
    run = started(step("a", "b", x=5), step("b", y="=a__x + 1"))

    run.act("a", Action.SKIP)

    assert task(run, "b").params["y"] == 6


# Steps of instances that have ended -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_failed", [True, False])
def test_the_skip_of_a_step_of_an_ended_instance_runs_all_behind_it_in_a_new_run(is_failed: bool) -> None:
    run = started(step("a", "b"), step("b", "c"), noop("c"))
    succeed(run, "a")
    if is_failed:
        fail(run, "b")
    else:
        succeed(run, "b")

    run.act("b", Action.SKIP)

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SKIPPED, "c": S.SUCCEEDED}
    assert run.row is not None
    assert run.row.run_id == 2
    assert run.status is I.SUCCEEDED


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL])
def test_a_step_of_an_ended_instance_can_be_neither_stopped_nor_killed(action: Action) -> None:
    run = started(noop("a"))

    run.act("a", action)

    assert "SUCCEEDED" in refused(run)


def test_an_unsatisfied_step_of_an_ended_instance_cannot_be_skipped() -> None:
    run = started(noop("a", {"b": "false"}), noop("b"))

    run.act("b", Action.SKIP)

    assert "RESTART for a step that is UNSATISFIED" in refused(run)


# Restarting a step while the run goes on ------------------------------------------------------------------------------


def test_a_failed_step_is_restarted_as_a_new_attempt_of_the_same_run() -> None:
    run = started(step("a", "c"), step("b"), noop("c"))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a")
    found = task(run, "a").task
    succeed(run, "a", "b")

    assert (found.run_id, found.attempt) == (1, 2)
    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED
    assert actions(run) == [(Action.RESTART, "a")]


def test_a_restart_by_hand_is_counted_apart() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a")

    assert run.step_rows()["a"].retries == {"manual": 1}


def test_a_step_that_is_restarted_takes_the_parameters_that_are_given() -> None:
    run = started(step("a", x=1), step("b"))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a", step_run_params={"a": {"x": {"type": "LONG", "value": 2}}})

    assert task(run, "a").params["x"] == 2


def test_parameters_given_for_a_restarted_step_stay_for_its_retries() -> None:
    run = started(step("a", x=1), step("b"))
    fail(run, "a")
    run.restart(SPECIFIC, step_id="a", step_run_params={"a": {"x": {"type": "LONG", "value": 2}}})

    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)

    assert (task(run, "a").task.attempt, task(run, "a").params["x"]) == (3, 2)


@pytest.mark.parametrize("status", [S.STARTING, S.RUNNING, S.SUCCEEDED, S.USER_FAILED, S.UNSATISFIED])
def test_only_a_step_that_failed_can_be_restarted_while_the_run_goes_on(status: StepStatus) -> None:
    run = started(step("a", {"c": "false"}), step("b"), noop("c"))
    name = "c" if status is S.UNSATISFIED else "a"
    if status is S.RUNNING:
        task(run, "a").begin()
    if status in (S.SUCCEEDED, S.UNSATISFIED):
        succeed(run, "a")
    if status is S.USER_FAILED:
        task(run, "a").fail()

    run.restart(SPECIFIC, step_id=name)

    assert run.steps[name] is status
    assert f"but it is {status}" in refused(run)


@pytest.mark.parametrize("mode", ["IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
def test_a_step_with_another_failure_mode_cannot_be_restarted_while_the_run_goes_on(mode: str) -> None:
    run = started(step("a", failure_mode=mode), step("b"))
    run.act("a", Action.STOP)

    run.restart(SPECIFIC, step_id="a")

    assert mode in refused(run)


def test_parameters_of_the_workflow_cannot_change_while_the_run_goes_on() -> None:
    run = started(step("a"), step("b"), params={"x": 1})
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a", run_params={"x": {"type": "LONG", "value": 2}})

    assert "run_params" in refused(run)


@pytest.mark.parametrize(
    "given",
    [
        {"a": 5},
        {"nobody": {}},
        {"a": {"x": 5}},
        {"a": {"x": {"type": "STRING", "value": "many"}}},
        {"a": {"params": {"type": "LONG", "value": 1}}},
        ["a"],
    ],
)
@pytest.mark.parametrize("is_over", [True, False])
def test_parameters_of_steps_that_make_no_sense_are_refused(given: object, is_over: bool) -> None:
    run = started(step("a", x=1), step("b"))
    fail(run, "a")
    if is_over:
        succeed(run, "b")
    before = run.steps

    command = c.RestartRun("r-1", "ann", SPECIFIC, "a", "{}", json.dumps(given))
    run.engine.send(RUN_COMMANDS, run.key, command)

    assert run.engine.refusals()[-1].request_id == "r-1"
    assert run.steps == before


def test_a_running_instance_as_a_whole_cannot_be_restarted() -> None:
    run = started(step("a"))

    run.restart(INCOMPLETE)

    assert "to have ended" in refused(run)
