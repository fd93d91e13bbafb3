"""A request that is delivered twice acts once, and is answered with what came of it."""

from typing import Any

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, CommandStatus, Refusal
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import INCOMPLETE, SPECIFIC, I, S, fail, noop, started, step, succeed, task


def ask(run: RunHandle, command: Any) -> None:
    run.engine.send(RUN_COMMANDS, run.key, command)


def settled(run: RunHandle) -> list[c.CommandSettled]:
    return [one for one in run.events() if isinstance(one, c.CommandSettled)]


def of_workflow(run: RunHandle, contract: type[Any]) -> list[Any]:
    found = run.engine.events(WORKFLOW_EVENTS, run.workflow_id)
    return [one for one in found if isinstance(one, contract)]


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL, Action.SKIP])
def test_an_action_on_a_step_that_is_asked_for_again_is_settled(action: Action) -> None:
    run = started(step("a"), step("b"))
    command = c.ActOnStep("r-1", "ann", "a", action, "enough")
    ask(run, command)
    before = len(run.changes("a"))

    ask(run, command)

    assert len(run.changes("a")) == before
    assert run.engine.refusals() == []
    first, answer = settled(run)
    assert (first.status, answer.status) == (CommandStatus.DONE, CommandStatus.UNCHANGED)
    assert (answer.request_id, answer.command, answer.run_id) == ("r-1", "ActOnStep", 1)
    assert answer.reason == "The request was already carried out"


def test_a_skip_that_is_asked_for_again_after_the_run_has_ended_makes_no_new_run() -> None:
    run = started(step("a", "b"), noop("b"))
    command = c.ActOnStep("r-1", "ann", "a", Action.SKIP, "")
    ask(run, command)
    assert run.status is I.SUCCEEDED

    ask(run, command)

    assert [one.status for one in settled(run)] == [CommandStatus.DONE, CommandStatus.UNCHANGED]
    assert len(of_workflow(run, c.InstanceCreated)) == 1


def test_a_restart_of_a_step_that_is_asked_for_again_makes_one_attempt() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")
    command = c.RestartRun("r-1", "ann", SPECIFIC, "a")
    ask(run, command)
    fail(run, "a")

    ask(run, command)

    assert run.changes("a")[-1].attempt == 2
    assert [(one.run_id, one.status) for one in settled(run)] == [(1, CommandStatus.DONE), (1, CommandStatus.UNCHANGED)]


def test_another_request_for_the_same_restart_makes_another_attempt() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")
    ask(run, c.RestartRun("r-1", "ann", SPECIFIC, "a"))
    fail(run, "a")

    ask(run, c.RestartRun("r-2", "ann", SPECIFIC, "a"))

    assert run.changes("a")[-1].attempt == 3


@pytest.mark.parametrize("is_over", [False, True])
def test_a_restart_of_an_instance_is_answered_with_its_run_however_far_that_is(is_over: bool) -> None:
    run = started(step("a"))
    fail(run, "a")
    command = c.RestartRun("r-1", "ann", INCOMPLETE)
    ask(run, command)
    if is_over:
        succeed(run, "a")

    ask(run, command)

    (answer,) = of_workflow(run, c.StartDuplicated)
    assert (answer.request_id, answer.instance_id, answer.run_id) == ("r-1", run.instance_id, 2)
    assert run.engine.refusals() == []
    assert sum(isinstance(one, c.RestartRequested) for one in run.events()) == 1


def test_a_skip_of_a_step_of_an_ended_instance_is_answered_with_the_run_that_it_made() -> None:
    run = started(step("a", "b"), step("b"))
    fail(run, "a")
    command = c.ActOnStep("r-1", "ann", "a", Action.SKIP, "")
    ask(run, command)

    ask(run, command)

    (answer,) = of_workflow(run, c.StartDuplicated)
    assert answer.run_id == 2
    assert run.steps == {"a": S.SKIPPED, "b": S.STARTING}


def test_a_restart_that_waits_in_the_queue_is_not_asked_for_twice() -> None:
    engine = started(step("a")).engine
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
            "workflow": {"id": "one", "steps": [step("a")]},
        }
    )
    run = engine.start("one")
    fail(run, "a")
    engine.start("one")
    command = c.RestartRun("r-1", "ann", INCOMPLETE)
    ask(run, command)

    ask(run, command)

    assert [one.run_id for one in of_workflow(run, c.StartDuplicated)] == [2]
    assert sum(isinstance(one, c.RestartRequested) for one in run.events()) == 1


def test_a_request_that_was_refused_may_be_made_again() -> None:
    run = started(step("a", "b"), step("b"))
    command = c.ActOnStep("r-1", "ann", "b", Action.SKIP, "")
    ask(run, command)
    succeed(run, "a")

    ask(run, command)

    assert [one.refusal for one in run.engine.refusals()] == [Refusal.INVALID]
    assert run.steps["b"] is S.SKIPPED


def test_a_restart_that_the_queue_refused_may_be_made_again() -> None:
    engine = started(step("a")).engine
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
            "workflow": {"id": "one", "steps": [step("a")]},
        }
    )
    run = engine.start("one")
    fail(run, "a")
    other = engine.start("one")
    ask(run, c.RestartRun("r-1", "ann", INCOMPLETE))  # it waits for the other one
    ask(run, c.RestartRun("r-2", "ann", INCOMPLETE))
    assert engine.refusals()[-1].refusal is Refusal.CONFLICT
    task(other, "a").succeed()
    fail(run, "a")

    ask(run, c.RestartRun("r-2", "ann", INCOMPLETE))

    assert run.row is not None
    assert run.row.run_id == 3


def test_the_request_of_one_instance_is_not_that_of_another() -> None:
    run = started(step("a"), step("b"))
    other = run.engine.start("flow")
    ask(run, c.ActOnStep("r-1", "ann", "a", Action.SKIP, ""))

    ask(other, c.ActOnStep("r-1", "ann", "a", Action.SKIP, ""))

    assert other.steps["a"] is S.SKIPPED
