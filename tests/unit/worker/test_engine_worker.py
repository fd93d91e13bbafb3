"""Real step functions in the test kit: no threads, no time."""

import json
from itertools import pairwise

import pytest

from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas.contracts import InstanceCreated, InstanceStatus, ReportRefused, StepLogged, StepStatus
from kapelle.testing.engine import Engine
from kapelle.testing.workers import TooManyTasks, run_worker
from kapelle.worker import Context, NonRetryable, PlatformFailure, Retryable, Worker
from tests.unit.worker.samples import started, step, workflow


def chained(*steps: dict[str, dict[str, object]]) -> list[dict[str, dict[str, object]]]:
    for one, after in pairwise(steps):
        one["step"]["transition"] = {"successors": {str(after["step"]["id"]): "true"}}
    return list(steps)


def test_all_tasks_are_run_and_those_that_come_of_them() -> None:
    worker = Worker()
    worker.add("count", lambda n: {"n": n + 1})
    engine = Engine()
    second = step("b", "count", n={"type": "LONG", "expression": "a__n"})
    engine.push(workflow(*chained(step("a", "count", n=1), second)))
    run = engine.start("etl")

    assert engine.run_worker(worker) == 2
    assert (run.status, run.params("b")["n"]) == (InstanceStatus.SUCCEEDED, 3)


def test_a_retry_is_run_when_its_time_has_come() -> None:
    worker = Worker()

    @worker.step("load")
    def load(ctx: Context) -> None:
        if ctx.attempt < 3:
            raise Retryable("not yet")

    engine, (run,) = started(step())

    counts = []
    for _ in range(4):
        counts.append(engine.run_worker(worker))
        engine.advance(10 * 60_000)

    assert counts == [1, 1, 1, 0]
    assert run.status is InstanceStatus.SUCCEEDED


def test_what_the_worker_does_not_serve_stays_and_nothing_is_said_of_it() -> None:
    worker = Worker()
    worker.add("other", lambda: None)
    engine, (run,) = started(step())

    assert engine.run_worker(worker) == 0
    assert run.steps["load"] is StepStatus.STARTING
    assert not [event for event in run.events() if isinstance(event, ReportRefused)]


def test_a_heartbeat_reaches_the_engine_at_once() -> None:
    engine, (run,) = started(step())
    worker = Worker()

    @worker.step("load")
    def load(ctx: Context) -> None:
        engine.advance(20_000)  # most of the lease goes by
        ctx.heartbeat("half way")

    engine.run_worker(worker)

    assert [event.text for event in run.events() if isinstance(event, StepLogged)] == ["half way"]


@pytest.mark.parametrize("raised", [None, Retryable("no"), NonRetryable("no"), PlatformFailure("no"), ValueError("no")])
def test_what_a_step_logs_is_in_the_timeline_however_short_it_is_and_however_it_ends(raised: Exception | None) -> None:
    engine, (run,) = started(step())
    worker = Worker()

    @worker.step("load")
    def load(ctx: Context) -> None:
        ctx.log("reading")
        ctx.log("writing")
        if raised is not None:
            raise raised

    engine.run_worker(worker)

    assert "reading\nwriting" in [entry.body.message for entry in run.timeline() if entry.attempt == 1]


def test_what_a_step_announces_starts_the_workflow_that_waits_for_it() -> None:
    worker = Worker()
    engine, (run,) = started(step())
    flow = workflow(step("write", "NoOp"), workflow_id="report", signal_triggers=[{"definitions": {"loaded": {}}}])
    engine.push(flow)

    @worker.step("load")
    def load(context: Context) -> None:
        context.announce("loaded", {"day": 20260701})

    engine.run_worker(worker)

    (begun,) = [one for one in engine.events(WORKFLOW_EVENTS, "report") if isinstance(one, InstanceCreated)]
    assert json.loads(begun.initiator)["signals"] == {"loaded": {"day": 20260701}}
    assert run.status == "SUCCEEDED"


def test_a_step_that_is_stopped_while_it_runs_hears_of_it_at_its_next_heartbeat() -> None:
    engine, (run,) = started(step())
    worker = Worker()
    after: list[int] = []

    @worker.step("load")
    def load(ctx: Context) -> None:
        run.stop()
        ctx.heartbeat()
        after.append(1)

    engine.run_worker(worker)

    assert (run.status, after) == (InstanceStatus.STOPPED, [])


def test_a_loop_without_an_end_is_noticed() -> None:
    engine, _ = started(step(), instances=3)
    worker = Worker()
    worker.add("load", lambda: None)

    with pytest.raises(TooManyTasks, match="idle after 2 tasks"):
        run_worker(engine, worker, tasks_max=2)
