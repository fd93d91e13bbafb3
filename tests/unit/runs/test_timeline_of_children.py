"""What timelines tell of children: how many there are, which did not succeed, and what becomes of their step."""

from typing import Any

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.runs.timeline import EntryType
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing.engine import Engine, RunHandle
from tests.support.trees import ROOT, Json, foreach, rounds, subworkflow, task, tree

MINUTE_MS = 60_000


def begun(*steps: Json, **more: Any) -> RunHandle:
    engine = Engine()
    engine.push(tree(task("work"), workflow_id="below"))
    engine.push(tree(*steps, **more))
    return engine.start(ROOT)


def texts(run: RunHandle, step_id: str | None, kind: EntryType = EntryType.LOG, run_id: int = 1) -> list[str]:
    return [
        one.body.text
        for one in run.timeline()
        if (one.step_id, one.type, one.run_id) == (step_id, kind, run_id) and one.body.message
    ]


def child(run: RunHandle, step_id: str, number: int, kind: ChildKind = ChildKind.FOREACH) -> RunHandle:
    return RunHandle(run.engine, inline_id(kind, run.key, step_id), number)


def fail(run: RunHandle) -> None:
    run.engine.task(run, "work").fail("it broke", c.Report.FATAL_ERROR)


def test_iterations_and_rounds_are_counted() -> None:
    run = begun(foreach("loop", 250), rounds("again", 1))

    found = texts(run, "loop")
    assert found[0] == "The step has 250 iterations"
    assert found[1:] == [
        "The step launched 100 children from 1 on",
        "The step launched 100 children from 101 on",
        "The step launched 50 children from 201 on",
    ]
    assert texts(run, "again") == ["The step has at most 25,000 rounds", "The step launched child 1"]


def test_a_limit_of_iterations_is_told() -> None:
    run = begun(foreach("loop", 3, concurrency=2))

    assert texts(run, "loop")[0] == "The step has 3 iterations, at most 2 at a time"


def test_a_subworkflow_is_named() -> None:
    run = begun(subworkflow("call", "below"))

    assert texts(run, "call") == ["The step requested an instance of 'below'", "below/1 run 1 was created"]


def test_only_children_that_did_not_succeed_are_told_with_their_reasons() -> None:
    run = begun(foreach("loop", 3, task("work")))
    run.engine.task(child(run, "loop", 1), "work").succeed()

    fail(child(run, "loop", 2))

    assert [one for one in texts(run, "loop") if one.startswith("Child")] == ["Child 2 FAILED"]


def test_what_waits_for_children_says_what_it_will_be() -> None:
    run = begun(foreach("loop", 2, task("work")))
    inner = child(run, "loop", 1)

    run.stop("STOP", "not wanted")

    assert "The step will be STOPPED when its children have ended: not wanted" in texts(run, "loop")
    assert inner.row is not None
    assert inner.row.status == "STOPPED"


def test_a_run_whose_time_is_over_says_what_it_will_be() -> None:
    run = begun(foreach("loop", 2, task("work")), timeout="1 minute")

    run.engine.advance(2 * MINUTE_MS)

    assert run.status == "TIMED_OUT"
    assert texts(run, None)[0].startswith("The run left the queue")
    assert texts(run, None)[1].startswith("The run will be TIMED_OUT when the children of its steps have ended: ")


def test_a_child_is_told_which_step_has_started_it() -> None:
    run = begun(foreach("loop", 1, task("work")), subworkflow("call", "below"))
    inner, below = child(run, "loop", 1), RunHandle(run.engine, "below", 1)
    fail(inner)
    fail(below)

    run.restart()

    for one, step_id in ((inner, "loop"), (below, "call")):
        told = [entry.body.message for entry in one.timeline() if (entry.body.message or "").startswith("Started by")]
        assert told == [f"Started by step {step_id!r} of {ROOT}/1"] * 2
    assert (
        texts(run, "loop", run_id=2)[0] == "The step has 1 iteration; those that succeeded in an earlier run are kept"
    )


def test_the_restart_of_one_child_is_told_by_its_step() -> None:
    run = begun(foreach("loop", 2, task("work")))
    fail(child(run, "loop", 1))

    child(run, "loop", 1).restart()

    assert texts(run, "loop", EntryType.ACTION) == ["RESTART by tester  Child 1 is restarted"]
