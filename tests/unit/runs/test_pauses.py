"""Attempts pause at breakpoints, and continue when a person resumes them or deletes the breakpoint."""

import json
from typing import Any

import pytest

from kapelle.processors.runs.context import SENT_MAX
from kapelle.processors.wiring import RUN_COMMANDS, RUN_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Refusal, RestartPolicy
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.support.trees import foreach, rounds, subworkflow, tree
from tests.unit.runs.flows import (
    MINUTE_MS,
    ONCE,
    SPECIFIC,
    I,
    S,
    fail,
    noop,
    passed,
    pushed,
    reason,
    refused,
    started,
    step,
    succeed,
    task,
)
from tests.unit.runs.test_permits import holders, limit


def set_(engine: Engine, step_id: str, workflow_id: str = "flow", *, author: str = AUTHOR, **precise: Any) -> None:
    """Set a breakpoint."""
    command = c.SetBreakpoint(engine.request_id(), author, step_id, **precise)
    engine.send(WORKFLOW_COMMANDS, workflow_id, command)


def delete(engine: Engine, step_id: str, workflow_id: str = "flow", *, resume: bool = True, **precise: int) -> None:
    """Delete a breakpoint."""
    command = c.DeleteBreakpoint(engine.request_id(), AUTHOR, step_id, resume=resume, **precise)
    engine.send(WORKFLOW_COMMANDS, workflow_id, command)


def resume(run: RunHandle, step_id: str, **more: Any) -> None:
    """Resume an attempt."""
    command = c.ActOnStep(run.engine.request_id(), AUTHOR, step_id, Action.RESUME, "", **more)
    run.engine.send(RUN_COMMANDS, run.key, command)


def paused(*points: str, **params: Any) -> RunHandle:
    """A run of the steps a and b, b after a, with breakpoints."""
    engine = pushed(step("a", "b", **params), step("b"))
    for point in points:
        set_(engine, point)
    return engine.start("flow")


def test_an_attempt_pauses_before_it_starts_with_its_parameters_and_without_a_worker() -> None:
    run = paused("a", x=7)

    assert run.steps == {"a": S.PAUSED}
    assert passed(run, "a") == [S.CREATED, S.INITIALIZED, S.WAITING_FOR_SIGNALS, S.EVALUATING_PARAMS, S.PAUSED]
    assert run.engine.tasks(run) == []
    assert json.loads(run.changes("a")[-1].params or "")["x"] == 7
    assert run.status is I.IN_PROGRESS


def test_the_reason_says_who_set_the_breakpoint_and_when() -> None:
    engine = pushed(step("a"))
    set_(engine, "a", author="alice")
    run = engine.start("flow")

    assert reason(run, "a").startswith("Paused at the breakpoint that alice set at 20")
    assert any(entry.body.status is S.PAUSED and "alice" in entry.body.text for entry in run.timeline())


def test_a_resumed_attempt_starts_and_does_not_meet_the_breakpoint_again() -> None:
    run = paused("a", x=7)

    resume(run, "a")

    assert run.steps == {"a": S.STARTING}
    assert passed(run, "a")[-3:] == [S.PAUSED, S.WAITING_FOR_PERMITS, S.STARTING]
    assert task(run, "a").params["x"] == 7
    succeed(run, "a")
    assert run.steps["b"] is S.STARTING


def test_the_parameters_of_a_paused_attempt_may_be_changed_and_its_retries_keep_them() -> None:
    run = paused("a", x=7, y="=x + 1", retry_policy={"error_retry_limit": 1})

    resume(run, "a", step_run_params=json.dumps({"x": {"type": "LONG", "value": 20}}))

    assert [task(run, "a").params[name] for name in "xy"] == [20, 21]
    assert passed(run, "a")[-4:] == [S.PAUSED, S.EVALUATING_PARAMS, S.WAITING_FOR_PERMITS, S.STARTING]
    task(run, "a").fail("no")
    run.engine.advance(10 * MINUTE_MS)
    assert run.steps["a"] is S.PAUSED
    resume(run, "a")
    assert task(run, "a").params["x"] == 20


@pytest.mark.parametrize("given", ["no json", "[]", '{"x": {"type": "MAP", "value": 3}}'])
def test_bad_parameters_are_refused_and_the_attempt_stays_paused(given: str) -> None:
    run = paused("a", x=7)

    resume(run, "a", step_run_params=given)

    assert run.engine.refusals()[-1].refusal is Refusal.INVALID
    assert run.steps == {"a": S.PAUSED}


def test_only_a_resume_takes_parameters() -> None:
    run = paused("a", x=7)

    command = c.ActOnStep(run.engine.request_id(), AUTHOR, "a", Action.SKIP, "", step_run_params='{"x": 1}')
    run.engine.send(RUN_COMMANDS, run.key, command)

    assert refused(run) == "Expected step_run_params only for RESUME, but found them for SKIP"


@pytest.mark.parametrize(
    ("action", "status"), [(Action.STOP, S.STOPPED), (Action.KILL, S.FATALLY_FAILED), (Action.SKIP, S.SKIPPED)]
)
def test_a_paused_step_may_be_stopped_killed_or_skipped(action: Action, status: S) -> None:
    run = paused("a")

    run.act("a", action)

    assert run.steps["a"] is status


def test_a_resume_of_another_attempt_or_run_is_refused() -> None:
    run = paused("a")

    resume(run, "a", attempt=2)
    assert refused(run) == "Expected attempt 1 of step 'a', which is the present one, but found 2"
    resume(run, "a", run_id=2)
    assert refused(run) == "Expected run 1, which is the present one, but found 2"
    resume(run, "a", attempt=1, run_id=1)

    assert run.steps["a"] is S.STARTING


def test_a_step_that_is_not_paused_cannot_be_resumed() -> None:
    run = started(step("a"))

    resume(run, "a")

    assert refused(run) == "Expected KILL, SKIP, STOP for a step that is STARTING, but found RESUME"


def test_deleting_a_breakpoint_resumes_all_that_it_holds() -> None:
    engine = pushed(step("a"))
    set_(engine, "a")
    runs = [engine.start("flow") for _ in range(3)]
    assert [run.steps["a"] for run in runs] == [S.PAUSED] * 3

    delete(engine, "a")

    assert [run.steps["a"] for run in runs] == [S.STARTING] * 3
    assert engine.start("flow").steps["a"] is S.STARTING


def test_a_breakpoint_deleted_without_a_resume_leaves_attempts_paused_until_each_is_resumed() -> None:
    run = paused("a")

    delete(run.engine, "a", resume=False)

    assert run.steps == {"a": S.PAUSED}
    resume(run, "a")
    assert run.steps == {"a": S.STARTING}


def test_an_attempt_that_another_breakpoint_matches_stays_paused() -> None:
    run = paused("a")
    set_(run.engine, "a", instance_id=1)

    delete(run.engine, "a")
    assert run.steps == {"a": S.PAUSED}

    delete(run.engine, "a", instance_id=1)
    assert run.steps == {"a": S.STARTING}


def test_a_breakpoint_set_while_a_run_goes_on_pauses_what_starts_later_and_nothing_that_has_started() -> None:
    run = started(step("a", "b"), step("b"))

    set_(run.engine, "a")
    set_(run.engine, "b")

    assert run.steps["a"] is S.STARTING
    succeed(run, "a")
    assert run.steps["b"] is S.PAUSED
    order = [type(event).__name__ for event in run.events() if getattr(event, "step_id", "a") in ("a", "b")]
    assert order.index("BreakpointsChanged") > order.index("StepChanged")


@pytest.mark.parametrize(
    ("precise", "pauses_at"),
    [
        ({"version": 1}, {"1/1", "2/1", "1/2"}),
        ({"version": 2}, set()),
        ({"instance_id": 2}, {"2/1"}),
        ({"instance_id": 1, "run_id": 2}, {"1/2"}),
        ({"instance_id": 1, "run_id": 1}, {"1/1"}),
        ({"attempt": 1}, {"1/1", "2/1", "1/2"}),
        ({"attempt": 2}, set()),
    ],
)
def test_a_breakpoint_may_be_for_one_version_instance_run_or_attempt(
    precise: dict[str, Any], pauses_at: set[str]
) -> None:
    engine = pushed(step("a", retry_policy=ONCE))
    if precise.get("version") == 2:
        engine.push(
            {
                "properties": {"owner": "ann", "run_strategy": "PARALLEL"},
                "workflow": {"id": "flow", "steps": [noop("a")]},
            },
        )
        engine.send(WORKFLOW_COMMANDS, "flow", c.ActivateVersion(engine.request_id(), AUTHOR, "1"))
    set_(engine, "a", **precise)
    first, second = engine.start("flow"), engine.start("flow")

    found = {f"{run.instance_id}/1" for run in (first, second) if run.steps["a"] is S.PAUSED}
    if first.steps["a"] is S.PAUSED:
        resume(first, "a")
    fail(first, "a")
    first.restart(RestartPolicy.RESTART_FROM_BEGINNING)
    if first.steps["a"] is S.PAUSED:
        found.add("1/2")

    assert found == pauses_at


def test_a_retried_and_a_restarted_attempt_meet_the_breakpoint_again() -> None:
    run = paused("a", retry_policy={"error_retry_limit": 1, "platform_retry_limit": 0})
    resume(run, "a")
    task(run, "a").fail("no")
    run.engine.advance(10 * MINUTE_MS)
    assert (run.steps["a"], run.changes("a")[-1].attempt) == (S.PAUSED, 2)

    resume(run, "a")
    fail(run, "a")
    run.restart(SPECIFIC, step_id="a")

    assert run.steps["a"] is S.PAUSED


def test_the_time_out_of_the_run_goes_on_while_an_attempt_is_paused_and_that_of_the_step_does_not() -> None:
    engine = pushed(step("a", timeout="1min"), timeout="10min")
    set_(engine, "a")
    run = engine.start("flow")

    engine.advance(9 * MINUTE_MS)
    assert run.steps == {"a": S.PAUSED}
    engine.advance(2 * MINUTE_MS)

    assert (run.status, run.steps["a"]) == (I.TIMED_OUT, S.TIMED_OUT)


def test_a_paused_attempt_holds_no_permit() -> None:
    engine = pushed(step("a", tags=["gpu"]), step("b", tags=["gpu"]))
    limit(engine, "gpu", 1)
    set_(engine, "a")
    run = engine.start("flow")

    assert run.steps == {"a": S.PAUSED, "b": S.STARTING}
    resume(run, "a")
    assert run.steps == {"a": S.WAITING_FOR_PERMITS, "b": S.STARTING}
    assert holders(engine, "tag/gpu") == {"flow/1/b/1"}


def test_a_step_pauses_after_its_signals_are_there() -> None:
    engine = Engine()
    waiting = {"step": {"id": "a", "type": "shell", "signal_dependencies": [{"name": "go"}]}}
    engine.push(tree(waiting, workflow_id="flow"))
    set_(engine, "a")
    run = engine.start("flow")
    assert run.steps == {"a": S.WAITING_FOR_SIGNALS}

    engine.announce("go")

    assert run.steps == {"a": S.PAUSED}


def looped(count: int, *, kind: Any = foreach) -> RunHandle:
    engine = Engine()
    engine.push(tree(kind("loop", count), workflow_id="flow"))
    set_(engine, "loop-inner")
    return engine.start("flow")


def test_a_breakpoint_on_a_step_of_a_loop_pauses_every_iteration_and_its_deletion_resumes_all() -> None:
    run = looped(3)
    iterations = run.iterations("loop")
    assert [each.steps for each in iterations] == [{"loop-inner": S.PAUSED}] * 3

    resume(iterations[1], "loop-inner")
    assert iterations[1].status is I.SUCCEEDED
    delete(run.engine, "loop-inner")

    assert run.status is I.SUCCEEDED


def test_a_breakpoint_on_a_step_of_a_round_pauses_every_round() -> None:
    run = looped(2, kind=rounds)

    for number in range(2):
        assert run.iterations("loop")[number].steps == {"loop-inner": S.PAUSED}
        resume(run.iterations("loop")[number], "loop-inner")

    assert run.status is I.SUCCEEDED


def test_more_running_iterations_than_one_decision_tells_all_learn_of_a_change() -> None:
    count = 2 * SENT_MAX + 50
    run = looped(count)
    assert sum(each.steps["loop-inner"] is S.PAUSED for each in run.iterations("loop")) == count

    delete(run.engine, "loop-inner")

    assert run.status is I.SUCCEEDED
    told = [value for _, value in run.engine.history(RUN_INTERNAL, 0) if isinstance(value, c.PassOnBreakpoints)]
    assert all(value.after_number < count for value in told)


def test_a_loop_in_a_loop_learns_of_breakpoints_that_are_set_later() -> None:
    engine = Engine()
    values = {"j": {"type": "LONG_ARRAY", "value": [1, 2]}}
    inner = foreach("inner", 2, step("first", "last"), step("last"))
    inner["foreach"]["params"] = {"loop_params": {"type": "MAP", "value": values}}
    engine.push(tree(foreach("outer", 2, inner), workflow_id="flow"))
    run = engine.start("flow")
    leaves = [leaf for each in run.iterations("outer") for leaf in each.iterations("inner")]

    set_(engine, "last")
    for leaf in leaves:
        succeed(leaf, "first")

    assert [leaf.steps["last"] for leaf in leaves] == [S.PAUSED] * 4
    delete(engine, "last")
    assert [leaf.steps["last"] for leaf in leaves] == [S.STARTING] * 4


def test_a_breakpoint_on_a_composite_step_pauses_it_before_it_has_children() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 2), workflow_id="flow"))
    set_(engine, "loop")
    run = engine.start("flow")
    assert run.steps == {"loop": S.PAUSED}

    resume(run, "loop")

    assert run.status is I.SUCCEEDED


def test_a_breakpoint_on_a_step_of_a_subworkflow_pauses_every_instance_of_it() -> None:
    engine = Engine()
    engine.push(tree(step("work"), workflow_id="below"))
    engine.push(tree(subworkflow("call", "below"), workflow_id="flow"))
    set_(engine, "work", "below")
    run = engine.start("flow")

    assert run.child("call").steps == {"work": S.PAUSED}
    delete(engine, "work", "below")
    assert run.child("call").steps == {"work": S.STARTING}


def test_a_run_that_has_no_breakpoint_of_its_own_is_told_nothing() -> None:
    engine = pushed(step("a"))
    run = engine.start("flow")

    set_(engine, "a", instance_id=2)

    assert not any(isinstance(event, c.BreakpointsChanged) for event in run.events())


def test_a_restart_of_one_child_is_refused_while_a_breakpoint_would_pause_its_step() -> None:
    engine = Engine()
    fails = {"step": {"id": "work", "type": "shell", "retry_policy": ONCE}}
    engine.push(tree(foreach("loop", 2, fails), step("beside"), workflow_id="flow"))
    run = engine.start("flow")
    for each in run.iterations("loop"):
        fail(each, "work")
    assert run.steps["loop"] is S.FATALLY_FAILED
    set_(engine, "loop")

    run.iterations("loop")[0].restart()

    assert "Expected no breakpoint on step 'loop' of flow/1" in refused(run)


def test_a_repeated_resume_acts_once() -> None:
    run = paused("a")
    command = c.ActOnStep("the-same", AUTHOR, "a", Action.RESUME, "")
    for _ in range(2):
        run.engine.send(RUN_COMMANDS, run.key, command)

    assert sum(isinstance(event, c.ActionTaken) for event in run.events()) == 1
    assert run.engine.refusals() == []
