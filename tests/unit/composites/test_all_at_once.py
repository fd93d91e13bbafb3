"""Requests for all iterations of a step at once: those that run are ended in batches, and the loop continues."""

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, CommandStatus
from kapelle.testing.engine import AUTHOR, RunHandle
from tests.unit.composites.trees import call, child, children, foreach, loop_while, push, settle, slow, statuses
from tests.unit.runs.flows import I, S, fail, noop, pushed, refused, started, step, succeed


def end(run: RunHandle, action: Action = Action.STOP, *, step_id: str = "loop", request_id: str = "all") -> None:
    command = c.TerminateChildren(request_id, AUTHOR, step_id, action, "enough")
    run.engine.send(RUN_COMMANDS, run.key, command)


def settled(run: RunHandle) -> list[c.CommandSettled]:
    """The outcomes of requests."""
    return [one for one in run.events() if isinstance(one, c.CommandSettled)]


@pytest.mark.parametrize(("action", "status"), [(Action.STOP, I.STOPPED), (Action.KILL, I.FAILED)])
def test_the_iterations_that_run_are_ended(action: Action, status: I) -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3]))
    succeed(child(run, "loop", 2), "in")

    end(run, action)

    assert statuses(run, "loop") == [status, I.SUCCEEDED, status]
    assert [(one.status, one.count) for one in settled(run)] == [(CommandStatus.DONE, 2)]


def test_iterations_that_are_launched_later_are_not_ended() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3], concurrency=2))

    end(run)

    assert statuses(run, "loop") == [I.STOPPED, I.STOPPED, I.IN_PROGRESS]
    assert run.steps["loop"] is S.RUNNING


def test_more_iterations_than_one_decision_can_tell_are_ended_in_batches() -> None:
    run = started(foreach("loop", step("in"), i=list(range(250))))

    end(run)

    assert statuses(run, "loop") == [I.STOPPED] * 250
    assert [one.count for one in settled(run)] == [250]
    assert run.status is I.STOPPED


def test_a_later_batch_does_not_reach_what_was_launched_since_the_request() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3]))
    rest = c.TerminateChildren("all", AUTHOR, "loop", Action.STOP, "enough", after_number=1, upto_number=2, count=1)

    run.engine.send(RUN_INTERNAL, run.key, rest)

    assert statuses(run, "loop") == [I.IN_PROGRESS, I.STOPPED, I.IN_PROGRESS]
    assert [one.count for one in settled(run)] == [2]


def test_batches_that_take_their_topics_end_what_ran_and_leave_no_child_behind() -> None:
    engine = slow()
    run = push(engine, "flow", foreach("loop", step("in"), i=list(range(300)), concurrency=150)).start("flow")
    settle(engine)

    end(run)
    settle(engine)

    assert statuses(run, "loop") == [I.STOPPED] * 150 + [I.IN_PROGRESS] * 150


def test_iterations_that_have_ended_do_not_hide_one_far_behind_them() -> None:
    run = started(foreach("loop", step("in", "out"), noop("out"), i=list(range(1_050)), concurrency=500))
    while len(children(run, "loop")) < 1_050:
        for one in children(run, "loop"):
            if one.status is I.IN_PROGRESS:
                succeed(one, "in")
    for one in children(run, "loop")[:-1]:
        if one.status is I.IN_PROGRESS:
            succeed(one, "in")

    end(run)

    assert statuses(run, "loop") == [I.SUCCEEDED] * 1_049 + [I.STOPPED]


def test_the_round_that_runs_is_ended() -> None:
    run = started(loop_while("loop", "n < 5", step("in", n="=n + 1"), first={"n": 0}))
    succeed(child(run, "loop", 1), "in")

    end(run)

    assert statuses(run, "loop") == [I.SUCCEEDED, I.STOPPED]
    assert run.steps["loop"] is S.STOPPED


def test_a_request_that_is_repeated_ends_nothing_more() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2], concurrency=1))
    end(run)

    end(run)

    assert statuses(run, "loop") == [I.STOPPED, I.IN_PROGRESS]
    assert [one.status for one in settled(run)] == [CommandStatus.DONE, CommandStatus.UNCHANGED]


def test_nothing_is_ended_when_nothing_runs() -> None:
    run = started(foreach("loop", step("in"), i=[1]))
    fail(child(run, "loop"), "in")

    end(run)

    assert statuses(run, "loop") == [I.FAILED]
    assert [one.count for one in settled(run)] == [0]


def test_the_timeline_of_the_parent_says_who_has_ended_its_children() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2]))

    end(run)

    (taken,) = [one for one in run.events() if isinstance(one, c.ActionTaken)]
    assert (taken.step_id, taken.author, taken.reason) == ("loop", AUTHOR, "All children that run, 2 in number: enough")


@pytest.mark.parametrize("step_id", ["plain", "sub", "nowhere"])
def test_a_step_without_iterations_is_refused(step_id: str) -> None:
    run = push(pushed(step("plain"), call("sub", "other")), "other", step("in")).start("flow")

    end(run, step_id=step_id)

    assert "to have iterations" in refused(run)


def test_no_other_action_can_be_taken_on_all() -> None:
    run = started(foreach("loop", step("in"), i=[1]))

    end(run, Action.SKIP)

    assert "Expected STOP or KILL" in refused(run)


def test_unblocking_an_iteration_changes_nothing() -> None:
    run = started(foreach("loop", step("in"), i=[1]))
    one = child(run, "loop")

    run.engine.send(RUN_COMMANDS, one.key, c.UnblockInstances("free", AUTHOR, ""))

    (outcome,) = settled(one)
    assert outcome.status is CommandStatus.UNCHANGED
    assert "in no queue" in outcome.reason


def test_an_instance_that_was_pushed_is_not_unblocked_here() -> None:
    run = started(step("plain"))

    run.engine.send(RUN_COMMANDS, run.key, c.UnblockInstances("free", AUTHOR, ""))

    assert "Expected an iteration or a round" in refused(run)
