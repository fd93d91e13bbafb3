"""Iterations, rounds and subworkflows as OpenLineage tells them: each names the step that started it, and the top."""

from typing import Any

from openlineage.client.event_v2 import RunEvent, RunState
from openlineage.client.serde import Serde

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing import Engine
from kapelle.testing.engine import RunHandle
from tests.support.trees import ROOT, done, foreach, rounds, subworkflow, task, tree
from tests.unit.lineage.test_events import told


def parent(event: RunEvent) -> dict[str, Any]:
    found: dict[str, Any] = Serde.to_dict(event)["run"]["facets"].get("parent", {})
    return found


def begun(events: list[RunEvent], job: str) -> list[RunEvent]:
    return [event for event in events if event.job.name == job and event.eventType is RunState.START]


def test_a_child_names_the_attempt_that_has_started_it_and_the_run_at_the_top() -> None:
    engine = Engine()
    engine.push(tree(foreach("inner", 1), workflow_id="below"))
    engine.push(tree(foreach("loop", 2), rounds("again", 1), subworkflow("call", "below")))
    engine.start(ROOT)

    found = told(engine)

    [top] = begun(found, ROOT)
    assert parent(top) == {}
    for job, above, count in (
        (inline_id(ChildKind.FOREACH, f"{ROOT}/1", "loop"), f"{ROOT}.loop", 2),
        (inline_id(ChildKind.WHILE, f"{ROOT}/1", "again"), f"{ROOT}.again", 1),
        ("below", f"{ROOT}.call", 1),
        (inline_id(ChildKind.FOREACH, "below/1", "inner"), "below.inner", 1),
    ):
        children, [step] = begun(found, job), begun(found, above)
        facets = [parent(child) for child in children]
        assert [(one["run"]["runId"], one["job"]["name"]) for one in facets] == [(step.run.runId, above)] * count
        assert [(one["root"]["run"]["runId"], one["root"]["job"]["name"]) for one in facets] == [
            (top.run.runId, ROOT)
        ] * count


def test_a_step_of_an_iteration_names_the_iteration_and_no_wrong_root() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 1)))
    engine.start(ROOT)

    found = told(engine)

    job = inline_id(ChildKind.FOREACH, f"{ROOT}/1", "loop")
    [iteration], [step] = begun(found, job), begun(found, f"{job}.loop-inner")
    assert parent(step)["run"]["runId"] == iteration.run.runId
    assert parent(step).get("root") is None


def test_every_event_below_a_subworkflow_in_a_foreach_in_a_subworkflow_names_the_true_root_or_none() -> None:
    engine = Engine()
    engine.push(tree(done("leaf"), workflow_id="lowest"))
    engine.push(tree(foreach("loop", 2, subworkflow("again", "lowest")), workflow_id="below"))
    engine.push(tree(subworkflow("call", "below")))
    engine.start(ROOT)

    found = told(engine)

    [top] = begun(found, ROOT)
    iterations = inline_id(ChildKind.FOREACH, "below/1", "loop")
    roots = {
        job: [(parent(event).get("root") or {}).get("run", {}).get("runId") for event in begun(found, job)]
        for job in ("below", iterations, "lowest", "below.loop", f"{iterations}.again", "lowest.leaf")
    }
    assert roots == {
        "below": [top.run.runId],
        iterations: [top.run.runId] * 2,
        "lowest": [top.run.runId] * 2,
        "below.loop": [None],
        f"{iterations}.again": [None] * 2,
        "lowest.leaf": [None] * 2,
    }
    named = [root["run"]["runId"] for event in found if (root := parent(event).get("root"))]
    assert set(named) == {top.run.runId}


def test_a_child_that_is_run_again_names_the_new_runs() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 1, task("work")), workflow_id="below"))
    engine.push(tree(subworkflow("call", "below")))
    root = engine.start(ROOT)
    inner = RunHandle(engine, inline_id(ChildKind.FOREACH, "below/1", "loop"), 1)
    engine.task(inner, "work").fail("it broke", c.Report.FATAL_ERROR)

    root.restart()

    found = told(engine)
    tops = [event.run.runId for event in begun(found, ROOT)]
    assert len(tops) == 2
    assert [parent(event)["root"]["run"]["runId"] for event in begun(found, "below")] == tops
    assert [parent(event)["root"]["run"]["runId"] for event in begun(found, inner.workflow_id)] == tops
