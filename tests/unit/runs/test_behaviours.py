"""What a kind of step does is one row of a table; what comes before its work is one list of gates."""

from typing import Any

import pytest

from kapelle.processors.params import ParamError
from kapelle.processors.runs import behaviours, deciding, flow, gates
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.flow import DONE, TASK, Behaviour, Flow
from kapelle.processors.runs.gates import GATES, GATES_AFTER, Launch
from tests.unit.runs.flows import I, S, passed, pause, reason, started, step


def test_a_new_kind_of_step_needs_nothing_but_its_row_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def begin(flow: Flow, launch: Launch) -> None:
        begun.append(launch.attempt.step_id)
        flow.finish(launch.step, launch.attempt, (*launch.passed, *DONE), launch.params)

    monkeypatch.setattr(deciding, "BEHAVIOURS", {**behaviours.BEHAVIOURS, "SHELL": Behaviour(begin=begin)})

    run = started(step("a", "b"), step("b"))

    assert (run.status, begun) == (I.SUCCEEDED, ["a", "b"])
    assert run.engine.tasks(run) == []


def test_a_kind_that_is_not_in_the_table_is_given_to_a_worker() -> None:
    run = started(step("a", type="Anything"))

    assert "ANYTHING" not in behaviours.BEHAVIOURS
    assert [task.task.type for task in run.engine.tasks(run)] == ["Anything"]


def test_every_behaviour_that_gives_out_work_or_has_children_can_take_it_back() -> None:
    at_once = {kind for kind, one in behaviours.BEHAVIOURS.items() if one.take_back is None}

    assert at_once == {"NOOP", "SLEEP"}
    assert {kind for kind, one in behaviours.BEHAVIOURS.items() if one.resume is not None} == {TASK}


def test_an_attempt_passes_signals_parameters_breakpoints_and_permits_in_this_order() -> None:
    assert [gate.__name__ for gate in GATES] == ["signals", "parameters", "breakpoints", "permits"]
    assert dict(GATES_AFTER) == {
        S.WAITING_FOR_SIGNALS: (gates.parameters, gates.breakpoints, gates.permits),
        S.PAUSED: (gates.permits,),
        S.WAITING_FOR_PERMITS: (),
    }


def test_a_gate_that_lets_nothing_pass_keeps_every_kind_of_step_from_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(context: RunContext, launch: Launch) -> bool:
        context.change(launch.attempt, launch.passed)
        return False

    monkeypatch.setattr(flow, "GATES", (gates.signals, shut, gates.parameters))

    run = started(step("a"), pause("b"), step("c", type="NoOp"))

    assert set(run.steps.values()) == {S.WAITING_FOR_SIGNALS}
    assert run.engine.tasks(run) == []


def test_a_gate_that_fails_an_attempt_fails_it_at_the_place_that_it_has_come_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> bool:
        raise ParamError("no way")

    monkeypatch.setattr(flow, "GATES", (gates.signals, broken))

    run = started(step("a"))

    assert passed(run, "a") == [S.CREATED, S.INITIALIZED, S.WAITING_FOR_SIGNALS, S.INTERNALLY_FAILED]
    assert (run.status, reason(run, "a")) == (I.FAILED, "no way")
