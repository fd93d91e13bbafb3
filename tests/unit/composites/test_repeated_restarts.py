"""A restart that climbs acts once, wherever it acts, and a repeated request is answered with what came of it."""

from typing import Any

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, CommandStatus, Refusal
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.composites.trees import call, child, foreach, push, runs_of, statuses
from tests.unit.runs.flows import BEGINNING, INCOMPLETE, SPECIFIC, I, S, fail, pushed, refused, started, step, succeed

AGAIN = c.RestartRun("r-1", "ann", INCOMPLETE)


def ask(one: RunHandle, command: Any = AGAIN) -> None:
    one.engine.send(RUN_COMMANDS, one.key, command)


def settled(run: RunHandle) -> list[tuple[CommandStatus, int | None, int]]:
    """How the requests were settled that came to a run: status, instance, run."""
    found = [one for one in run.events() if isinstance(one, c.CommandSettled)]
    return [(one.status, one.instance_id, one.run_id) for one in found]


def duplicated(engine: Engine, workflow_id: str = "flow") -> list[tuple[str, int, int]]:
    """Requests that were answered with a run that they had made before."""
    found = [one for one in engine.events(WORKFLOW_EVENTS, workflow_id) if isinstance(one, c.StartDuplicated)]
    return [(one.request_id, one.instance_id, one.run_id) for one in found]


def test_a_repeated_restart_in_place_is_settled_while_the_iteration_runs() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2]))
    fail(child(run, "loop"), "in")
    ask(child(run, "loop"))

    ask(child(run, "loop"))

    assert settled(run) == [(CommandStatus.DONE, 1, 1), (CommandStatus.UNCHANGED, 1, 1)]
    assert run.engine.refusals() == []
    assert runs_of(child(run, "loop")) == 2


@pytest.mark.parametrize("policy", [INCOMPLETE, BEGINNING])
def test_a_repeated_restart_is_answered_with_the_run_of_the_root(policy: Any) -> None:
    run = started(foreach("loop", step("in"), i=[1]))
    fail(child(run, "loop"), "in")
    command = c.RestartRun("r-1", "ann", policy)
    ask(child(run, "loop"), command)

    ask(child(run, "loop"), command)
    succeed(child(run, "loop"), "in")
    ask(child(run, "loop"), command)

    assert duplicated(run.engine) == [("r-1", 1, 2)] * 2
    assert run.engine.refusals() == []
    assert (runs_of(run), runs_of(child(run, "loop"))) == (2, 2)


def test_a_repeated_restart_of_a_subworkflow_is_answered_with_the_run_of_the_root() -> None:
    run = push(pushed(call("sub", "other")), "other", step("in")).start("flow")
    fail(run.child("sub"), "in")
    ask(run.child("sub"))

    ask(run.child("sub"))

    assert duplicated(run.engine) == [("r-1", 1, 2)]
    assert run.engine.refusals() == []
    assert runs_of(run.child("sub")) == 2


def nested() -> tuple[RunHandle, RunHandle]:
    """A run that has ended, with a loop in a loop; and the inner iteration that has failed."""
    run = started(foreach("outer", foreach("inner", step("in"), j=[1, 2]), i=[1]))
    middle = child(run, "outer")
    succeed(child(middle, "inner", 2), "in")
    fail(child(middle, "inner", 1), "in")
    assert run.status == "FAILED"
    return run, child(middle, "inner", 1)


def test_a_late_repetition_does_not_act_at_an_ancestor_that_runs_again() -> None:
    run, one = nested()
    middle = child(run, "outer")
    ask(one)
    ask(child(middle, "inner", 2), c.RestartRun("r-2", "ann", BEGINNING))
    fail(one, "in")
    assert (middle.status, one.status) == (I.IN_PROGRESS, I.FAILED)

    ask(one)

    assert duplicated(run.engine) == [("r-1", 1, 2)]
    assert runs_of(one) == 2


def test_another_request_acts_at_an_ancestor_that_runs_again() -> None:
    run, one = nested()
    ask(one)
    ask(child(child(run, "outer"), "inner", 2), c.RestartRun("r-2", "ann", BEGINNING))
    fail(one, "in")

    ask(one, c.RestartRun("r-3", "ann", INCOMPLETE))

    assert runs_of(one) == 3


def test_a_repeated_restart_of_a_step_of_a_child_makes_no_other_attempt_while_the_child_runs() -> None:
    run = started(foreach("loop", step("in"), step("side"), i=[1]))
    succeed(child(run, "loop"), "side")
    fail(child(run, "loop"), "in")
    command = c.RestartRun("r-1", "ann", SPECIFIC, "in")
    ask(child(run, "loop"), command)
    assert child(run, "loop").status is I.IN_PROGRESS

    ask(child(run, "loop"), command)

    assert duplicated(run.engine) == [("r-1", 1, 2)]
    assert child(run, "loop").step_rows()["in"].attempt == 1


def test_a_repeated_skip_of_a_step_of_a_child_is_answered_with_the_run_of_the_root() -> None:
    run = started(foreach("loop", step("in", "out"), step("out"), i=[1]))
    fail(child(run, "loop"), "in")
    command = c.ActOnStep("r-1", "ann", "in", Action.SKIP, "")
    ask(child(run, "loop"), command)

    ask(child(run, "loop"), command)

    assert duplicated(run.engine) == [("r-1", 1, 2)]
    assert run.engine.refusals() == []
    assert child(run, "loop").steps == {"in": S.SKIPPED, "out": S.STARTING}


def test_a_repeated_restart_of_the_nearest_pushed_ancestor_is_answered_with_its_run() -> None:
    run = started(foreach("loop", step("in"), i=[1]))
    fail(child(run, "loop"), "in")
    command = c.RestartRun("r-1", "ann", INCOMPLETE, from_inline_root=True)
    ask(child(run, "loop"), command)

    ask(child(run, "loop"), command)

    assert duplicated(run.engine) == [("r-1", 1, 2)]
    assert run.engine.refusals() == []


def test_a_restart_that_an_ancestor_refused_may_be_made_again() -> None:
    run = started(foreach("loop", step("in"), i=[1]), step("side"))
    succeed(child(run, "loop"), "in")
    command = c.RestartRun("r-1", "ann", BEGINNING)
    ask(child(run, "loop"), command)
    assert "but it is SUCCEEDED" in refused(run)
    succeed(run, "side")

    ask(child(run, "loop"), command)

    assert statuses(run, "loop") == [I.IN_PROGRESS]
    assert runs_of(run) == 2


def test_a_refused_restart_that_is_made_again_while_the_child_runs_is_refused() -> None:
    run = started(foreach("loop", step("in"), i=[1]), step("side"))
    succeed(child(run, "loop"), "in")
    command = c.RestartRun("r-1", "ann", BEGINNING)
    ask(child(run, "loop"), command)
    succeed(run, "side")
    ask(child(run, "loop"), c.RestartRun("r-2", "ann", BEGINNING))

    ask(child(run, "loop"), command)

    assert run.engine.refusals()[-1].refusal is Refusal.CONFLICT
    assert "to have ended, but it runs" in refused(run)
    assert runs_of(child(run, "loop")) == 2
