"""Ends of children that are easily forgotten: all kept by a restart, in the queue, and after the end of their step."""

from typing import Any

from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.unit.runs.flows import INCOMPLETE, I, S, started, step

Json = dict[str, Any]


def loop(*steps: Json) -> Json:
    values = {"i": {"type": "LONG_ARRAY", "value": [1, 2]}}
    params = {"loop_params": {"type": "MAP", "value": values}}
    return {"foreach": {"id": "loop", "params": params, "steps": list(steps)}}


def calling(engine: Engine, *, sync: bool = True) -> Engine:
    """An engine with a workflow that starts another one, of which one instance runs at a time."""
    call = {"id": "call", "sync": sync, "params": {"subworkflow_id": {"type": "STRING", "value": "child"}}}
    child = {"id": "child", "params": {"x": {"type": "LONG", "value": 1}}, "steps": [step("work")]}
    engine.push({"properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"}, "workflow": child})
    parent = {"id": "parent", "steps": [{"subworkflow": call}]}
    engine.push({"properties": {"owner": "ann", "run_strategy": "PARALLEL"}, "workflow": parent})
    return engine


def test_a_restart_of_a_stopped_loop_ends_it_at_once_if_all_its_iterations_have_succeeded() -> None:
    run = started(loop(step("work")))
    engine, tasks = run.engine, run.engine.tasks()
    engine.runtime.publish(RUN_COMMANDS, run.key, c.ActOnStep("stop", AUTHOR, "loop", Action.STOP, ""))
    for one in tasks:  # they are done before they are told to stop
        report = c.ReportTask(one.task.token, "work", "worker-1", Report.SUCCEEDED)
        engine.runtime.publish(RUN_COMMANDS, one.key, report)
    engine.runtime.step_until_idle()
    ended = [one.status for one in run.events() if isinstance(one, c.ChildEnded)]
    assert (run.steps["loop"], ended) == (S.STOPPED, [I.SUCCEEDED] * 2)

    run.restart(INCOMPLETE)

    assert (run.status, run.steps["loop"]) == (I.SUCCEEDED, S.SUCCEEDED)
    assert len(engine.tasks()) == len(tasks)


def test_a_child_that_ended_in_the_queue_is_restarted_by_way_of_its_parent() -> None:
    engine = calling(Engine())
    first, run = engine.start("child"), engine.start("parent")
    queued = RunHandle(engine, "child", 2)
    queued.stop()
    assert (queued.status, run.status) == (I.STOPPED, I.STOPPED)

    queued.restart(INCOMPLETE, run_params={"x": {"type": "LONG", "value": 7}})
    engine.task(first, "work").succeed()
    engine.task(queued, "work").succeed()

    assert (queued.status, run.status) == (I.SUCCEEDED, I.SUCCEEDED)
    assert queued.row is not None
    assert '"x":7' in queued.row.params


def test_the_start_of_a_child_is_noted_although_the_step_that_does_not_wait_for_it_was_stopped() -> None:
    engine = calling(Engine(same_cycle=False), sync=False)
    run = RunHandle(engine, "parent", 1)
    engine.runtime.publish(WORKFLOW_COMMANDS, "parent", c.StartInstances(AUTHOR, (c.Start("start"),)))
    while run.steps.get("call") is not S.RUNNING:
        engine.runtime.step()

    engine.runtime.publish(RUN_COMMANDS, run.key, c.ActOnStep("stop", AUTHOR, "call", Action.STOP, ""))
    engine.runtime.step_until_idle()

    assert (run.status, run.steps) == (I.STOPPED, {"call": S.STOPPED})
    assert [one.child for one in run.events() if isinstance(one, c.ChildStarted)] == ["child/1"]
    assert RunHandle(engine, "child", 1).status is I.IN_PROGRESS
