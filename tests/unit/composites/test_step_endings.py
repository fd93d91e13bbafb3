"""Ending in two phases: whatever ends a composite step, its children end first, and all of them are STOPPED."""

from collections.abc import Callable
from typing import Any

import pytest

from kapelle.processors.runs import runs
from kapelle.processors.runs.composites.step_endings import TOLD_MAX
from kapelle.processors.wiring import RUN_COMMANDS, RUN_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.unit.composites.trees import (
    Child,
    call,
    child,
    fan,
    foreach,
    loop_while,
    orphans,
    push,
    settle,
    slow,
    statuses,
)
from tests.unit.runs.flows import BEGINNING, I, Json, S, noop, reason, refused, step, task

MINUTE_MS = 60_000
DECIDERS: dict[Any, Any] = runs.deciders
TREES: dict[str, Json] = {
    "foreach": foreach("top", step("leaf"), i=[1, 2, 3], concurrency=2),
    "while": loop_while("top", "true", step("leaf"), first={"n": 0}),
    "subworkflow": call("top", "other"),
    "loop in loop": foreach("top", loop_while("mid", "true", step("leaf"), first={"n": 0}), i=[1, 2]),
    "call in loop": foreach("top", call("mid", "other"), i=[1, 2]),
    "loop in call": call("top", "loops"),
}


def world(tree: str, *, strategy: str = "PARALLEL", **more: str) -> tuple[Engine, RunHandle]:
    """A run of a workflow with a composite step `top`, a step before `after`, and one beside it."""
    engine = slow()
    kind, body = next(iter(TREES[tree].items()))
    top = {kind: {**body, "transition": {"successors": {"after": "true"}}, **more}}
    push(engine, "other", step("leaf"))
    push(engine, "loops", foreach("mid", step("leaf"), i=[1, 2]))
    push(engine, "flow", top, noop("after"), step("side", failure_mode="FAIL_IMMEDIATELY"), strategy=strategy)
    run = engine.start("flow")
    assert run.steps == {"top": S.RUNNING, "side": S.STARTING}
    return engine, run


def below(engine: Engine) -> list[Child]:
    """All instances that have a parent."""
    table = engine.state("runs", "").runs
    found = [row for _, row in table.prefix(()) if row.parent is not None]
    return [Child(engine, row.workflow_id, row.instance_id) for row in found]


def stop_run(action: Action) -> Callable[[RunHandle], None]:
    def end(run: RunHandle) -> None:
        request = c.TerminateInstance(run.engine.request_id(), AUTHOR, 1, action, "enough")
        run.engine.runtime.publish(WORKFLOW_COMMANDS, "flow", request)

    return end


def stop_step(action: Action) -> Callable[[RunHandle], None]:
    def end(run: RunHandle) -> None:
        request = c.ActOnStep(run.engine.request_id(), AUTHOR, "top", action, "enough")
        run.engine.runtime.publish(RUN_COMMANDS, run.key, request)

    return end


def fail_sibling(run: RunHandle) -> None:
    token = task(run, "side").task.token
    report = c.ReportTask(token, "side", "worker-1", c.Report.FATAL_ERROR, "no space left", None)
    run.engine.runtime.publish(RUN_COMMANDS, run.key, report)


WAYS = {
    "run is stopped": (stop_run(Action.STOP), S.STOPPED, I.STOPPED),
    "run is killed": (stop_run(Action.KILL), S.FATALLY_FAILED, I.FAILED),
    "sibling fails": (fail_sibling, S.STOPPED, I.FAILED),
}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("way", WAYS)
def test_a_run_ends_after_everything_below_it(tree: str, way: str) -> None:
    engine, run = world(tree)
    end, of_step, of_run = WAYS[way]

    end(run)
    settle(engine)

    assert {one.status for one in below(engine)} == {I.STOPPED}
    assert run.steps["top"] is of_step
    assert run.status is of_run
    assert "after" not in run.steps


ACTIONS = {Action.STOP: S.STOPPED, Action.KILL: S.FATALLY_FAILED, Action.SKIP: S.SKIPPED}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_step_takes_the_status_of_the_action_and_everything_below_it_is_stopped_first(
    tree: str, action: Action
) -> None:
    engine, run = world(tree)

    stop_step(action)(run)
    settle(engine)

    assert {one.status for one in below(engine)} == {I.STOPPED}
    assert run.steps["top"] is ACTIONS[action]
    assert run.steps["side"] is S.STARTING
    assert run.steps.get("after") is (S.SUCCEEDED if action is Action.SKIP else None)


@pytest.mark.parametrize("tree", TREES)
def test_a_step_that_takes_too_long_is_timed_out_after_everything_below_it_is_stopped(tree: str) -> None:
    engine, run = world(tree, timeout="1 min")

    engine.clock.advance(MINUTE_MS)
    settle(engine)

    assert {one.status for one in below(engine)} == {I.STOPPED}
    assert run.steps["top"] is S.TIMED_OUT
    assert run.step_rows()["top"].attempt == 1


@pytest.mark.parametrize("tree", TREES)
def test_a_run_that_takes_too_long_is_timed_out_after_everything_below_it_is_stopped(tree: str) -> None:
    engine = slow()
    push(engine, "other", step("leaf"))
    push(engine, "loops", foreach("mid", step("leaf"), i=[1, 2]))
    push(engine, "flow", TREES[tree], timeout="1 min")
    run = engine.start("flow")

    engine.clock.advance(MINUTE_MS)
    settle(engine)

    assert {one.status for one in below(engine)} == {I.STOPPED}
    assert run.steps == {"top": S.TIMED_OUT}
    assert run.status is I.TIMED_OUT


@pytest.mark.parametrize("tree", TREES)
def test_the_next_instance_of_a_workflow_starts_after_everything_below_the_last_one_has_ended(tree: str) -> None:
    engine, run = world(tree, strategy="LAST_ONLY")
    before = {one.key for one in below(engine)}

    engine.runtime.publish(WORKFLOW_COMMANDS, "flow", c.StartInstances(AUTHOR, (c.Start("next"),)))
    for _ in range(1_000):
        if not engine.runtime.step():
            break
        second = engine.state("runs", "flow/2").runs.get(("flow/2",))
        left = [one.key for one in below(engine) if one.key in before and one.status is I.IN_PROGRESS]
        assert orphans(engine) == []
        assert second is None or left == []

    assert run.status is I.STOPPED
    assert second is not None
    assert {one.status for one in below(engine) if one.key in before} == {I.STOPPED}


@pytest.mark.parametrize("tree", TREES)
def test_a_run_whose_decision_is_given_up_fails_after_everything_below_it_is_stopped(
    tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, run = world(tree)

    def exhausted(*_: object) -> object:
        raise MemoryError

    monkeypatch.setitem(DECIDERS, c.ReportTask, exhausted)
    fail_sibling(run)
    settle(engine)

    assert {one.status for one in below(engine)} == {I.STOPPED}
    assert run.steps == {"top": S.STOPPED, "side": S.STOPPED}
    assert run.status is I.FAILED


@pytest.mark.parametrize("tree", TREES)
def test_an_end_of_a_child_whose_decision_is_given_up_counts_all_the_same(
    tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, run = world(tree)

    def exhausted(*_: object) -> object:
        raise MemoryError

    monkeypatch.setitem(DECIDERS, c.RecordChildEnd, exhausted)
    for one in below(engine):
        if "leaf" in one.steps:
            task(one, "leaf").say(c.Report.SUCCEEDED)
    settle(engine)

    assert run.status is I.FAILED
    assert {one.status for one in below(engine)} <= {I.STOPPED, I.SUCCEEDED, I.FAILED}


# What a stop leaves alone ---------------------------------------------------------------------------------------------


def test_an_asynchronous_child_is_left_alone() -> None:
    engine = slow()
    push(engine, "other", step("leaf"))
    push(engine, "flow", call("sub", "other", sync=False), step("side"))
    run = engine.start("flow")

    run.stop()

    assert run.status is I.STOPPED
    assert engine.runs("other")[0].status is I.IN_PROGRESS


def test_an_asynchronous_child_inside_a_loop_is_left_alone() -> None:
    engine = slow()
    push(engine, "other", step("leaf"))
    push(engine, "flow", foreach("loop", call("sub", "other", sync=False), step("side"), i=[1, 2]))
    run = engine.start("flow")

    run.stop()

    assert statuses(run, "loop") == [I.STOPPED, I.STOPPED]
    assert [one.status for one in engine.runs("other")] == [I.IN_PROGRESS, I.IN_PROGRESS]


def test_an_asynchronous_child_that_a_stop_meets_on_its_way_is_left_alone_and_the_run_ends() -> None:
    engine = slow()
    push(engine, "other", step("leaf"))
    push(engine, "flow", call("sub", "other", sync=False, to=["after"]), step("after"))
    engine.runtime.publish(WORKFLOW_COMMANDS, "flow", c.StartInstances(AUTHOR, (c.Start("first"),)))
    run = RunHandle(engine, "flow", 1)
    while not (run.row and run.steps.get("sub") is S.RUNNING):
        engine.runtime.step()

    run.act("sub", Action.STOP)

    assert run.steps == {"sub": S.STOPPED}
    assert run.status is I.STOPPED
    assert engine.runs("other")[0].status is I.IN_PROGRESS


def test_children_that_have_ended_keep_their_states() -> None:
    _, run = world("foreach")
    task(child(run, "top", 1), "leaf").succeed()

    run.stop()

    assert statuses(run, "top") == [I.SUCCEEDED, I.STOPPED, I.STOPPED]


def test_no_more_children_are_launched_by_a_step_that_ends() -> None:
    engine, run = world("foreach")

    run.act("top", Action.STOP)
    engine.advance(MINUTE_MS)

    assert len(statuses(run, "top")) == 2


# Many, and twice ------------------------------------------------------------------------------------------------------


def test_more_children_than_one_decision_tells_are_all_stopped() -> None:
    engine = Engine()
    count = 2 * TOLD_MAX + 30
    push(engine, "flow", foreach("top", step("leaf"), i=list(range(count))))
    run = engine.start("flow")

    run.stop()

    assert statuses(run, "top") == [I.STOPPED] * count
    assert run.status is I.STOPPED


def test_a_stop_tells_running_children_behind_many_that_have_ended() -> None:
    engine = Engine()
    leaf = [noop("first", {"leaf": "i >= 1200"}), step("leaf")]
    push(engine, "flow", foreach("top", *leaf, i=list(range(1205))))
    run = engine.start("flow")
    before = fan(run, "top").running

    run.stop()

    assert (before, fan(run, "top").running) == (5, 0)
    assert run.status is I.STOPPED


def test_a_stop_of_the_run_wins_over_an_earlier_skip_of_the_step() -> None:
    engine, run = world("loop in loop")

    stop_step(Action.SKIP)(run)
    while fan(run, "top").ending is None:
        engine.runtime.step()
    stop_run(Action.STOP)(run)
    settle(engine)

    assert run.status is I.STOPPED
    assert run.steps == {"top": S.STOPPED, "side": S.STOPPED}


def test_an_action_on_a_step_that_is_ending_is_refused() -> None:
    engine, run = world("loop in loop")

    stop_run(Action.STOP)(run)
    while fan(run, "top").ending is None:
        engine.runtime.step()
    run.act("top", Action.SKIP)
    settle(engine)

    assert "ending" in refused(run)
    assert run.status is I.STOPPED
    assert run.steps == {"top": S.STOPPED, "side": S.STOPPED}


@pytest.mark.parametrize("before", ["STARTING", "FAILED", "WAITING"])
def test_no_step_can_be_skipped_in_a_run_that_is_ending(before: str) -> None:
    engine = slow()
    waits = {"signal_dependencies": [{"name": "ready"}]} if before == "WAITING" else {}
    second = step("second", "third")
    second["step"].update(waits)
    push(engine, "flow", foreach("top", foreach("mid", step("leaf"), j=[1]), i=[1]), second, step("third"))
    run = engine.start("flow")
    if before == "FAILED":
        task(run, "second").fail("broken", c.Report.FATAL_ERROR)
    stop_run(Action.STOP)(run)
    while fan(run, "top").ending is None:
        engine.runtime.step()

    run.engine.runtime.publish(
        RUN_COMMANDS, run.key, c.ActOnStep(engine.request_id(), AUTHOR, "second", Action.SKIP, "go on")
    )
    settle(engine)

    assert "ending" in refused(run)
    assert "third" not in run.steps
    assert run.steps["top"] is S.STOPPED


def test_a_failed_step_cannot_be_restarted_in_a_run_that_is_ending() -> None:
    engine = slow()
    push(engine, "flow", foreach("top", foreach("mid", step("leaf"), j=[1]), i=[1]), step("a"))
    run = engine.start("flow")
    task(run, "a").fail("broken", c.Report.FATAL_ERROR)

    stop_run(Action.STOP)(run)
    while fan(run, "top").ending is None:
        engine.runtime.step()
    run.restart("RESTART_FROM_SPECIFIC", step_id="a")
    settle(engine)

    assert run.steps == {"top": S.STOPPED, "a": S.FATALLY_FAILED}
    assert run.status is I.FAILED


def test_a_child_whose_restart_is_overtaken_by_a_stop_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = slow()
    push(engine, "other", step("leaf"))
    push(engine, "flow", call("top", "other"))
    run = engine.start("flow")
    task(child(run, "top"), "leaf").fail("broken", c.Report.FATAL_ERROR)
    with monkeypatch.context() as patch:
        patch.setitem(DECIDERS, c.RestartChild, lambda *_: ())  # it is still on its way
        run.restart(BEGINNING)
        run.act("top", Action.STOP)
    before = run.steps
    key, again = next(one for one in engine.history(RUN_INTERNAL, 0) if isinstance(one[1], c.RestartChild))

    engine.send(RUN_INTERNAL, key, again)

    assert before == {"top": S.RUNNING}
    assert run.status is I.STOPPED
    assert child(run, "top").status is I.STOPPED


def test_an_asynchronous_child_that_is_refused_after_its_step_was_stopped_changes_nothing() -> None:
    engine = slow()
    push(engine, "flow", call("sub", "nobody", sync=False))
    engine.runtime.publish(WORKFLOW_COMMANDS, "flow", c.StartInstances(AUTHOR, (c.Start("first"),)))
    run = RunHandle(engine, "flow", 1)
    while not (run.row and run.steps.get("sub") is S.RUNNING):
        engine.runtime.step()

    run.act("sub", Action.STOP)

    assert run.steps == {"sub": S.STOPPED}
    assert run.status is I.STOPPED


def test_a_child_tells_who_stopped_it() -> None:
    _, run = world("foreach")

    run.stop(reason="the disk is full")

    assert "the disk is full" in reason(child(run, "top", 1), "leaf")


def ended(one: Child) -> c.RunEnded:
    """The last end of a child."""
    return [event for event in one.events() if isinstance(event, c.RunEnded)][-1]


@pytest.mark.parametrize("tree", TREES)
def test_the_end_of_a_child_that_is_ended_from_above_has_the_reason_and_the_name_of_the_ancestor(tree: str) -> None:
    engine, run = world(tree)

    run.stop(reason="the disk is full")

    found = [ended(one).reason for one in below(engine)]
    assert found
    assert all("the disk is full" in one and "step 'top' of flow/1" in one for one in found)


@pytest.mark.parametrize("tree", ["foreach", "while", "subworkflow"])
def test_a_long_reason_leaves_room_for_the_name_of_the_ancestor(tree: str) -> None:
    _, run = world(tree)

    run.stop(reason="x" * 5_000)

    assert ended(child(run, "top")).reason.endswith("(step 'top' of flow/1)")


@pytest.mark.parametrize("kind", ["foreach", "subworkflow", "loop in loop"])
@pytest.mark.parametrize("way", WAYS)
def test_a_child_with_a_failed_step_is_stopped_all_the_same_if_it_is_ended_from_above(kind: str, way: str) -> None:
    engine = slow()
    failing, slowly = step("bad"), foreach("slowly", step("leaf"), j=[1, 2])
    block = [failing, slowly if kind == "loop in loop" else step("leaf")]
    push(engine, "other", *block)
    top = call("top", "other") if kind == "subworkflow" else foreach("top", *block, i=[1])
    push(engine, "flow", top, step("side", failure_mode="FAIL_IMMEDIATELY"))
    run = engine.start("flow")
    task(child(run, "top"), "bad").fail("broken", c.Report.FATAL_ERROR)

    WAYS[way][0](run)
    settle(engine)

    assert child(run, "top").steps["bad"] is S.FATALLY_FAILED
    assert (child(run, "top").status, ended(child(run, "top")).run_status) == (I.STOPPED, I.STOPPED)
    assert run.status is WAYS[way][2]
