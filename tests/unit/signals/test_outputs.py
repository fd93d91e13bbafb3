"""A step that has succeeded announces signals: those of its definition, and those that its work asks for."""

import json
from typing import Any

import pytest

from kapelle.processors.runs.announcements import SIGNALS_MAX, signal_id
from kapelle.processors.wiring import RUN_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Report, RestartPolicy, StepStatus
from kapelle.testing.engine import RunHandle
from tests.unit.signals.announcing import FLOW, Json, armed, push, starts, told, trigger

OUTPUT = {
    "name": "loaded.${place}",
    "params": {"rows": {"type": "LONG", "expression": "rows"}, "place": {"type": "STRING", "value": "${place}"}},
    "payload": {"by": "us"},
}


def begun(*outputs: Json, step_type: str = "shell") -> RunHandle:
    step: Json = {"id": "load", "type": step_type, "signal_outputs": list(outputs)}
    step["params"] = {"rows": {"type": "LONG", "value": 7, "mode": "MUTABLE"}}
    engine = armed(steps=[{"step": step}], params={"place": {"type": "STRING", "value": "us"}})
    return engine.start(FLOW)


def done(run: RunHandle, *said: Any, text: str | None = None) -> None:
    """The worker is done, and asks for signals to be announced."""
    task = run.engine.task(run, "load").task
    signals = text if text is not None else json.dumps(list(said))
    word = c.ReportTask(task.token, "load", "worker-1", Report.SUCCEEDED, signals=signals)
    run.engine.send(RUN_COMMANDS, run.key, word)


def announced(run: RunHandle) -> list[tuple[str, dict[str, Any]]]:
    return [(one.name, json.loads(one.params)) for one in told(run.engine, c.SignalAccepted)]


def test_a_step_announces_what_its_definition_says() -> None:
    run = begun(OUTPUT)

    run.engine.task(run, "load").succeed()

    assert announced(run) == [("loaded.us", {"place": "us", "rows": 7})]
    [signal] = told(run.engine, c.SignalAccepted)
    assert json.loads(signal.payload) == {"by": "us"}


def test_outputs_of_the_work_reach_the_signal() -> None:
    run = begun(OUTPUT)

    run.engine.task(run, "load").succeed(rows=8)

    assert announced(run) == [("loaded.us", {"place": "us", "rows": 8})]


def test_a_signal_says_which_attempt_of_which_step_it_comes_from() -> None:
    run = begun(OUTPUT)

    run.engine.task(run, "load").succeed()

    [signal] = told(run.engine, c.SignalAccepted)
    assert json.loads(signal.source) == {
        "workflow_id": FLOW,
        "workflow_instance_id": 1,
        "workflow_run_id": 1,
        "step_id": "load",
        "step_attempt_id": 1,
        "iteration": 1,
        "cause": {},
    }


def test_a_step_that_fails_announces_nothing() -> None:
    run = begun(OUTPUT)

    run.engine.task(run, "load").fail("no", Report.FATAL_ERROR)

    assert announced(run) == []


def test_the_work_may_ask_for_signals_of_its_own_after_those_of_the_definition() -> None:
    run = begun(OUTPUT)

    done(run, {"name": "part", "params": {"n": 1, "s": "x", "big": 2**70, "f": 1.5, "l": [1]}, "payload": {"p": 2}})

    assert announced(run) == [("loaded.us", {"place": "us", "rows": 7}), ("part", {"n": 1, "s": "x"})]
    assert json.loads(told(run.engine, c.SignalAccepted)[-1].payload) == {"big": 2**70, "f": 1.5, "l": [1], "p": 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expected signals as a list of objects with a name"),
        ('{"name":"a"}', "Expected signals as a list of objects with a name"),
        ('[{"params":{}}]', "Expected signals as a list of objects with a name"),
        ('[{"name":""}]', "Expected the name of a signal"),
        (json.dumps([{"name": "x" * 300}]), "Expected the name of a signal"),
        (json.dumps([{"name": "a", "params": {"s": "x" * 20_000}}]), "Expected at most 16,384 bytes of parameters"),
        (json.dumps([{"name": "a", "payload": {"s": "x" * 300_000}}]), "Expected at most 262,144 bytes of payload"),
        (json.dumps([{"name": "a"}] * (SIGNALS_MAX + 1)), f"Expected at most {SIGNALS_MAX} signals of one step"),
    ],
)
def test_signals_that_cannot_be_announced_fail_the_step_with_a_reason(text: str, reason: str) -> None:
    run = begun()

    done(run, text=text)

    assert run.steps == {"load": StepStatus.INTERNALLY_FAILED}
    assert run.changes("load")[-1].reason.startswith(reason)


def test_a_step_that_is_done_again_does_not_announce_the_same_twice() -> None:
    run = begun(OUTPUT)
    run.engine.task(run, "load").succeed()

    run.restart(RestartPolicy.RESTART_FROM_BEGINNING)
    run.engine.task(run, "load").succeed()

    assert run.status is InstanceStatus.SUCCEEDED
    assert len(announced(run)) == 1
    assert len(told(run.engine, c.SignalDuplicated)) == 1


def test_a_step_that_is_done_again_with_another_outcome_announces_it() -> None:
    run = begun(OUTPUT)
    run.engine.task(run, "load").succeed(rows=1)

    run.restart(RestartPolicy.RESTART_FROM_BEGINNING)
    run.engine.task(run, "load").succeed(rows=2)

    assert [params["rows"] for _, params in announced(run)] == [1, 2]


def test_a_signal_of_a_step_starts_another_workflow() -> None:
    run = begun(OUTPUT)
    push(run.engine, trigger({"loaded.us": {}}), workflow_id="next")

    run.engine.task(run, "load").succeed()

    assert starts(run.engine, "next") == [{"loaded.us": 1}]


def test_the_id_of_a_signal_is_made_of_its_name_and_parameters_in_any_order() -> None:
    assert signal_id("a", {"x": 1, "y": "2"}) == signal_id("a", {"y": "2", "x": 1})
    assert len({signal_id("a", {"x": 1}), signal_id("b", {"x": 1}), signal_id("a", {"x": "1"})}) == 3
