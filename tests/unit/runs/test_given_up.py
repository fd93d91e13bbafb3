"""Decisions of the engine that run out of time or memory: what becomes of the run, the request and the trigger."""

from collections.abc import Iterable
from typing import Any

import pytest

from kapelle.processors.messages import TimerDue
from kapelle.processors.processor import Processor
from kapelle.processors.runs import runs
from kapelle.processors.triggers import triggers
from kapelle.processors.workflows import workflows
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Refusal
from kapelle.testing.engine import Engine, Refused, RunHandle
from tests.unit.runs.flows import BEGINNING, I, S, noop, passed, pause, pushed, started, step, succeed, task
from tests.unit.signals.announcing import armed, say, starts, told, trigger

DEFINITION = {
    "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
    "workflow": {"id": "flow", "steps": [step("a", "b"), step("b"), step("side")]},
}


def exhausted(*_: Any) -> Iterable[Any]:
    raise MemoryError


def give_up(patch: pytest.MonkeyPatch, processor: Processor[Any], contract: type[Any]) -> None:
    """From now on every decision on messages of this type runs out of memory."""
    patch.setitem(processor.deciders, contract, exhausted)


def reason(name: str, processor: str = "runs") -> str:
    return f"Expected the decision of {processor} on {name} to end within its limits, but it ran out of memory"


def ended(run: RunHandle) -> c.RunEnded:
    return next(one for one in reversed(run.events()) if isinstance(one, c.RunEnded))


def letters(engine: Engine) -> int:
    return engine.runtime.counters.dead_letters


def test_a_report_that_is_given_up_fails_the_run_and_the_next_one_of_a_sequence_starts() -> None:
    engine = Engine()
    engine.push(DEFINITION)
    first, second = engine.start("flow"), engine.start("flow")

    with pytest.MonkeyPatch.context() as patch:
        give_up(patch, runs, c.ReportTask)
        engine.task(first, "a").succeed()

    assert (first.status, ended(first).reason) == (I.FAILED, reason("ReportTask"))
    assert first.steps == {"a": S.STOPPED, "side": S.STOPPED}
    assert {one.step_id for one in engine.cancelled()} == {"a", "side"}
    assert [one.statuses[-1] for one in second.changes("a")] == [S.STARTING]
    assert letters(engine) == 1
    assert [row[0] for row in engine.state("runs", first.key).timers._queue.armed.prefix((first.key,))] == []


def test_a_start_that_is_given_up_in_runs_is_a_run_that_failed_and_can_be_restarted() -> None:
    engine = Engine()
    engine.push(DEFINITION)

    with pytest.MonkeyPatch.context() as patch:
        give_up(patch, runs, c.StartRun)
        run = engine.start("flow")
        other = engine.start("flow")

    assert (run.status, other.status) == (I.FAILED, I.FAILED)
    assert ended(run).reason == reason("StartRun")
    run.restart(BEGINNING)
    succeed(run, "a", "b", "side")
    assert run.status is I.SUCCEEDED


def test_a_timer_that_is_given_up_fails_the_run_and_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(pause("sleep", seconds=60), step("side"))
    give_up(monkeypatch, runs, TimerDue)

    run.engine.advance(61_000)

    assert (run.status, ended(run).reason) == (I.FAILED, reason("TimerDue"))
    assert run.engine.runtime.next_due_at_ms() is None
    assert run.engine.runtime.member.shards["runs", 0].parked == set()


def test_a_report_that_would_be_refused_fails_nothing_when_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(step("a"))
    give_up(monkeypatch, runs, c.ReportTask)

    task(run, "a").say(c.Report.SUCCEEDED, token="of another attempt")  # noqa: S106 - no secret

    assert run.status is I.IN_PROGRESS
    assert any(isinstance(one, c.ReportRefused) for one in run.events())


@pytest.mark.parametrize("contract", [c.ActOnStep, c.RestartRun])
def test_what_somebody_asks_of_a_run_is_refused_and_the_run_goes_on(
    contract: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started(step("a"))
    give_up(monkeypatch, runs, contract)

    if contract is c.ActOnStep:
        run.act("a", Action.SKIP)
    else:
        run.restart(BEGINNING)

    (refusal,) = run.engine.refusals()
    assert (refusal.refusal, refusal.message) == (Refusal.UNPROCESSABLE, reason(contract.__name__))
    assert run.steps == {"a": S.STARTING}
    succeed(run, "a")
    assert run.status is I.SUCCEEDED


def test_a_run_that_is_told_to_end_ends_even_if_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(step("a"))
    give_up(monkeypatch, runs, c.TerminateRun)

    run.stop()

    assert (run.status, passed(run, "a")[-1]) == (I.FAILED, S.STOPPED)


# Workflows ----------------------------------------------------------------------------------------------------------


def test_a_start_that_is_given_up_is_refused_by_its_request_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = pushed(noop("a"))
    give_up(monkeypatch, workflows, c.StartInstances)

    with pytest.raises(Refused, match="ran out of memory") as refused:
        engine.start("flow", request_id="mine")

    assert (refused.value.event.request_id, refused.value.event.refusal) == ("mine", Refusal.UNPROCESSABLE)
    assert letters(engine) == 1


def test_a_start_of_a_trigger_that_is_given_up_is_refused_by_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = armed(trigger(a={}))
    give_up(monkeypatch, workflows, c.StartTriggered)

    say(engine, "a", "a1")

    [fired], [refused] = told(engine, c.TriggerFired), engine.refusals()
    assert (refused.request_id, refused.message) == (fired.request_id, reason("StartTriggered", "workflows"))


def test_a_push_that_is_given_up_is_refused_and_the_workflow_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = pushed(noop("a"))
    give_up(monkeypatch, workflows, c.PushVersion)

    with pytest.raises(Refused, match="PushVersion: UNPROCESSABLE: Expected the decision of workflows on PushVersion"):
        engine.push(DEFINITION)

    assert engine.start("flow").status is I.SUCCEEDED


def test_the_end_of_a_run_counts_even_if_deciding_on_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.push(DEFINITION)
    first, second = engine.start("flow"), engine.start("flow")
    give_up(monkeypatch, workflows, c.RecordRunEnd)

    first.stop()

    assert (first.status, second.status) == (I.STOPPED, I.IN_PROGRESS)


# Triggers -----------------------------------------------------------------------------------------------------------


def test_a_firing_that_is_given_up_starts_nothing_and_uses_the_signals_up() -> None:
    engine = armed(trigger(a={}, b={}))

    with pytest.MonkeyPatch.context() as patch:
        give_up(patch, triggers, c.OfferSignal)
        say(engine, "a", n=1)
        say(engine, "b", n=1)
    say(engine, "b", n=2)

    (skipped,) = told(engine, c.FiringSkipped)
    assert skipped.reason == reason("OfferSignal", "triggers")
    assert starts(engine) == []
    assert [one.name for one in told(engine, c.SignalKept)] == ["a", "b"]
