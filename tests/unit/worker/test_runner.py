"""The whole runner, with its threads, on the engine in memory."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kapelle.schemas.contracts import InstanceStatus, Report, ReportRefused, StepStatus, Task
from kapelle.testing.engine import Engine
from kapelle.testing.workers import EngineTransport
from kapelle.worker import (
    Answer,
    BadStep,
    Context,
    TaskReport,
    TransportRefused,
    TransportUnavailable,
    Worker,
    WorkerSettings,
)
from tests.unit.worker.samples import started, step

ENOUGH_S = 10.0


class Gate:
    """Where steps say that they have begun, and wait until they may go on."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()

    def pass_through(self) -> None:
        self.begun.release()
        assert self.open.wait(ENOUGH_S)

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=ENOUGH_S)


class Flaky(EngineTransport):
    """A way to the engine that fails at times."""

    def __init__(self, engine: Engine, *, takes: int = 0, reports: int = 0) -> None:
        super().__init__(engine)
        self.takes, self.reports = takes, reports
        self.recovered = threading.Event()

    def take(self, room: int, wait_s: float) -> list[Task]:
        if self.takes:
            self.takes -= 1
            raise TransportUnavailable("the engine is away")
        return super().take(room, wait_s)

    def report(self, words: Sequence[TaskReport]) -> list[Answer]:
        if self.reports and words[0].report is not Report.STARTED:
            self.reports -= 1
            raise TransportUnavailable("the engine is away")
        answers = super().report(words)
        if words[0].report is not Report.STARTED:
            self.recovered.set()
        return answers


class Drained(EngineTransport):
    """Tells when the runner takes nothing more: what it has asked for before that may still come."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.is_drained = threading.Event()

    def drain(self) -> None:
        self.is_drained.set()


class Closed(EngineTransport):
    """An engine that does not let the worker in."""

    def take(self, room: int, wait_s: float) -> list[Task]:  # noqa: ARG002 - whatever is asked for
        raise TransportRefused("Expected a token of an operator, but found none")


def test_plain_and_async_steps_are_run_and_answered() -> None:
    engine, (run,) = started(step("a", "plain", rows=1), step("b", "async", rows=2))
    worker, gate = Worker(), Gate()
    gate.open.set()

    @worker.step("plain")
    def plain(rows: int) -> dict[str, int]:
        gate.pass_through()
        return {"rows": rows * 10}

    async def done() -> None: ...

    @worker.step("async")
    async def coroutine(rows: int) -> dict[str, int]:
        await asyncio.wait_for(done(), 1)
        gate.pass_through()
        return {"rows": rows * 10}

    runner = worker.start(EngineTransport(engine))
    gate.wait(2)
    runner.stop()

    assert run.status is InstanceStatus.SUCCEEDED
    assert (run.params("a")["rows"], run.params("b")["rows"]) == (10, 20)


def test_no_more_tasks_are_taken_than_can_run() -> None:
    engine, runs = started(step(), instances=5)
    worker, gate = Worker(), Gate()

    @worker.step("load")
    def load() -> None:
        gate.pass_through()

    transport = EngineTransport(engine)
    runner = worker.start(transport, WorkerSettings(concurrency=2))
    gate.wait(2)
    with transport.turn:
        statuses = [run.steps["load"] for run in runs]
    gate.open.set()
    gate.wait(3)
    runner.stop()

    assert statuses.count(StepStatus.RUNNING) == 2
    assert {run.status for run in runs} == {InstanceStatus.SUCCEEDED}


def test_a_hundred_async_steps_run_at_once() -> None:
    engine, runs = started(step(), instances=100)
    worker, gate, all_there = Worker(), Gate(), asyncio.Event()

    @worker.step("load")
    async def load(ctx: Context) -> None:
        gate.begun.release()
        if ctx.instance_id == 100:
            all_there.set()
        await all_there.wait()

    runner = worker.start(EngineTransport(engine), WorkerSettings(concurrency=100))
    gate.wait(100)
    runner.stop()

    assert {run.status for run in runs} == {InstanceStatus.SUCCEEDED}


def test_what_is_not_done_when_the_drain_ends_is_handed_back_at_once() -> None:
    engine, (run,) = started(step())
    worker, gate = Worker(), Gate()

    @worker.step("load")
    def stubborn() -> None:
        gate.pass_through()  # knows nothing of cancellations

    runner = worker.start(EngineTransport(engine))
    gate.wait()
    runner.stop(timeout_s=0.0)
    (failed,) = [change for change in run.changes("load") if StepStatus.PLATFORM_FAILED in change.statuses]
    gate.open.set()

    assert failed.reason == f"The worker {runner.name!r} was stopped before the step was done"


def test_a_drain_lets_steps_finish_and_takes_nothing_new() -> None:
    engine, (first,) = started(step())
    worker, gate = Worker(), Gate()

    @worker.step("load")
    def load() -> None:
        gate.pass_through()

    transport = Drained(engine)
    runner = worker.start(transport, WorkerSettings(concurrency=1))
    gate.wait()
    runner.drain()
    assert transport.is_drained.wait(ENOUGH_S)
    with transport.turn:
        second = engine.start("etl")
    gate.open.set()
    runner.stop()

    assert (first.status, second.steps["load"]) == (InstanceStatus.SUCCEEDED, StepStatus.STARTING)


def test_a_plain_step_that_is_cancelled_is_told_at_its_next_call() -> None:
    engine, (run,) = started(step())
    worker, gate = Worker(), Gate()
    told: list[BaseException] = []

    @worker.step("load")
    def load(ctx: Context) -> None:
        gate.begun.release()
        assert ctx.cancelled.wait(ENOUGH_S)
        try:
            ctx.heartbeat()
        except BaseException as error:
            told.append(error)
            raise

    transport = EngineTransport(engine)
    runner = worker.start(transport)
    gate.wait()
    with transport.turn:
        run.stop(reason="enough")
    runner.stop()

    assert (run.status, len(told)) == (InstanceStatus.STOPPED, 1)
    assert not [event for event in run.events() if isinstance(event, ReportRefused)]


def test_an_async_step_that_is_cancelled_is_interrupted_where_it_waits() -> None:
    engine, (run,) = started(step())
    worker, gate, cleaned = Worker(), Gate(), threading.Event()

    @worker.step("load")
    async def load() -> None:
        gate.begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    transport = EngineTransport(engine)
    runner = worker.start(transport)
    gate.wait()
    with transport.turn:
        run.stop()
    runner.stop()

    assert cleaned.is_set()


def test_a_refused_word_stops_the_step() -> None:
    engine, (run,) = started(step(lease_seconds=6))  # far more than a slow machine holds up a heartbeat
    worker, gate = Worker(), Gate()
    reasons: list[str] = []
    ended = threading.Event()

    @worker.step("load")
    def load(ctx: Context) -> None:
        gate.begun.release()
        assert ctx.cancelled.wait(ENOUGH_S)
        reasons.append(ctx.cancel_reason)
        ended.set()

    class Deaf(EngineTransport):
        def cancellations(self) -> list[tuple[str, str]]:
            return []

    transport = Deaf(engine)
    runner = worker.start(transport)
    gate.wait()
    with transport.turn:
        engine.task(run, "load").fail(worker=runner.name)  # another process under our name
    runner.stop()  # it does not wait for a step whose word was refused

    assert ended.wait(ENOUGH_S)
    assert reasons == ["Expected attempt 1 to be running, but it is USER_FAILED"]


def test_results_are_said_again_until_the_engine_hears_them() -> None:
    engine, (run,) = started(step())
    worker = Worker()
    worker.add("load", lambda: None)
    transport = Flaky(engine, takes=2, reports=2)

    runner = worker.start(transport)
    assert transport.recovered.wait(ENOUGH_S)
    runner.stop()

    assert run.status is InstanceStatus.SUCCEEDED


def test_an_engine_that_lets_nobody_in_ends_the_worker_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    engine, _ = started(step())
    worker = Worker()
    worker.add("load", lambda: None)

    runner = worker.start(Closed(engine))
    assert runner.wait(ENOUGH_S)

    with pytest.raises(TransportRefused, match="a token of an operator"):
        runner.close()
    ends = [record for record in caplog.records if record.levelname == "ERROR"]
    assert ends
    assert all("a token of an operator" in one.getMessage() and one.exc_info is None for one in ends)


def test_a_worker_without_steps_and_a_second_function_for_a_type_are_refused() -> None:
    worker = Worker()

    with pytest.raises(BadStep, match="has none"):
        worker.start(EngineTransport(Engine()))
    worker.add("load", lambda: None)
    with pytest.raises(BadStep, match="one function for step type 'load'"):
        worker.add("load", lambda: None)


def test_the_steps_of_another_worker_can_be_served_too() -> None:
    one, other = Worker(), Worker()
    one.add("a", lambda: None)
    other.add("b", lambda: None)

    one.include(other)

    assert sorted(one.steps) == ["a", "b"]


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"prefetch": -1}, {"drain_timeout_s": -1}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Expected concurrency of 1 or more"):
        WorkerSettings(**wrong)
