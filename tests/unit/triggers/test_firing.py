"""What a trigger says of its start: parameters, a condition and an id, evaluated with the signals at hand."""

import json
from typing import Any

import pytest

from kapelle.processors.params.stored import typed
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from tests.unit.signals.announcing import FLOW, armed, joins, say, starts, told, trigger

JOINED = {"a": joins("day"), "b": joins("day")}


def created(engine: Engine) -> c.InstanceCreated:
    return next(one for one in engine.events(WORKFLOW_EVENTS, FLOW) if isinstance(one, c.InstanceCreated))


def params_of(engine: Engine) -> dict[str, Any]:
    return {name: typed(one) for name, one in json.loads(created(engine).params).items()}


def skipped(engine: Engine) -> str:
    [event] = told(engine, c.FiringSkipped)
    return event.reason


@pytest.mark.parametrize(
    ("condition", "is_started"),
    [
        ("n > 1", True),
        ("n > 2", False),
        ("params.getFromSignal('a', 'n') == 2", True),
        ("params.getFromSignal('b', 'n') > 5", True),
        ("a__n + b__n == 11", True),
        ("params.getFromSignalOrDefault('b', 'none', 3) == 3", True),
        ("day == 'x'", True),
    ],
)
def test_a_condition_sees_the_signals_and_the_parameters_of_the_trigger(condition: str, is_started: bool) -> None:
    own = {"n": {"type": "LONG", "expression": "a__n"}, "day": {"type": "STRING", "value": "${a__day}"}}
    engine = armed(trigger(JOINED, options={"condition": condition, "params": own}))

    say(engine, "a", day="x", n=2)
    say(engine, "b", day="x", n=9)

    assert starts(engine) == ([{"a": 1, "b": 1}] if is_started else [])


def test_a_condition_that_is_false_is_told_and_the_signals_are_used_up() -> None:
    engine = armed(trigger(a={}, b={}, options={"condition": "a__n > b__n"}))

    say(engine, "a", n=1)
    say(engine, "b", n=2)
    say(engine, "a", n=3)

    assert skipped(engine) == "The condition 'a__n > b__n' is not true"
    assert starts(engine) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"condition": "a__none > 1"}, "Expected a parameter of the trigger or of its signals, but found 'a__none'"),
        ({"condition": "a__n"}, "Expected the condition 'a__n' to be true or false, but it is 1"),
        ({"condition": "1 / (a__n - 1) > 0"}, "Expected '1 / (a__n - 1) > 0' to have a value, but"),
        ({"dedup_expr": "a__none"}, "Expected a parameter of the trigger or of its signals, but found 'a__none'"),
        ({"dedup_expr": "params.getFromSignalOrDefault('none', null)"}, 'Expected "params.getFromSignalOrDefault'),
        ({"params": {"x": {"type": "LONG", "expression": "a__n / 0"}}}, "Expected"),
        ({"params": {"x": {"type": "LONG", "expression": "params.getFromSignal('none')"}}}, "Expected"),
    ],
)
def test_what_cannot_be_evaluated_starts_nothing_and_that_is_told(options: dict[str, Any], reason: str) -> None:
    engine = armed(trigger(a={}, options=options))

    say(engine, "a", n=1)

    assert skipped(engine).startswith(reason)
    assert starts(engine) == []


def test_a_failure_does_not_stop_the_next_start() -> None:
    engine = armed(trigger(a={}, options={"condition": "10 / a__n > 1"}))

    say(engine, "a", n=0)
    say(engine, "a", n=1)

    assert starts(engine) == [{"a": 2}]


def test_starts_of_the_same_dedup_expr_are_one() -> None:
    engine = armed(trigger(a={}, options={"dedup_expr": "a__day"}))

    for day in ("mon", "tue", "mon"):
        say(engine, "a", day=day)

    assert starts(engine) == [{"a": 1}, {"a": 2}]
    assert len(told(engine, c.StartDuplicated)) == 1


def test_the_same_signals_always_have_the_same_request_id() -> None:
    first, second = armed(trigger(a={})), armed(trigger(a={}))

    say(first, "a", n=1)
    say(second, "a", n=1)

    assert created(first).request_id == created(second).request_id


def test_the_parameters_of_the_trigger_reach_the_workflow() -> None:
    own = {"total": {"type": "LONG", "expression": "a__n + b__n"}}
    reads = {"sum": {"type": "LONG", "expression": "params.getFromSignal('total')"}}
    engine = armed(trigger(JOINED, options={"params": own}), params=reads)

    say(engine, "a", day=1, n=2)
    say(engine, "b", day=1, n=3)

    assert params_of(engine)["sum"] == 5


@pytest.mark.parametrize("text", ["params.getFromSignal('b', 'n')", "b__n", "params.getFromSignalOrDefault('b','n',1)"])
def test_the_parameters_of_the_signals_reach_the_workflow(text: str) -> None:
    engine = armed(trigger(JOINED), params={"n": {"type": "LONG", "expression": text}})

    say(engine, "a", day=1, n=2)
    say(engine, "b", day=1, n=3)

    assert params_of(engine)["n"] == 3


@pytest.mark.parametrize("text", ["params.getFromSignal('b', 'n')", "b__n", "params.getFromSignalOrDefault('b','n',1)"])
def test_the_parameters_of_the_signals_reach_the_steps(text: str) -> None:
    step = {"step": {"id": "load", "type": "shell", "params": {"n": {"type": "LONG", "expression": text}}}}
    engine = armed(trigger(JOINED), steps=[step])

    say(engine, "a", day=1, n=2)
    say(engine, "b", day=1, n=3)

    [task] = engine.tasks()
    assert typed(task.params["n"]) == 3


def test_a_start_says_by_which_signals_it_came_about() -> None:
    engine = armed(trigger(JOINED))

    say(engine, "a", "first", day=1)
    say(engine, "b", "second", day=1)

    [fired] = told(engine, c.TriggerFired)
    assert [(one.name, one.signal_id, one.sequence) for one in fired.signals] == [("a", "first", 1), ("b", "second", 1)]
    initiator = json.loads(created(engine).initiator)
    assert (initiator["type"], initiator["signal_id_map"]) == ("SIGNAL", {"a": 1, "b": 1})
    assert fired.request_id == created(engine).request_id
