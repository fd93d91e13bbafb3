"""What Maestro gets wrong about signals is done right here: one test for each known defect, by its number."""

import pytest

from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from tests.unit.signals.announcing import (
    activate,
    armed,
    deactivate,
    disable,
    joins,
    matches,
    push,
    say,
    starts,
    told,
    trigger,
)

JOINED = {"x": joins("day"), "y": joins("day")}


def test_1_each_name_of_a_join_has_a_beginning_of_its_own() -> None:
    engine = armed(trigger(other={}))
    for _ in range(10):
        say(engine, "x", day=9)
    for _ in range(3):
        say(engine, "y", day=9)

    push(engine, trigger(JOINED), workflow_id="late")
    say(engine, "y", day=1)
    say(engine, "x", day=1)

    assert starts(engine, "late") == [{"x": 11, "y": 4}]


def test_2_arming_again_before_anything_fired_is_no_conflict() -> None:
    engine = armed(trigger(x={}))

    activate(engine)
    disable(engine)
    disable(engine, is_disabled=False)
    deactivate(engine)
    activate(engine)
    push(engine, trigger(y={}))
    push(engine, trigger(x={}))
    say(engine, "x")

    assert engine.refusals() == []
    assert starts(engine) == [{"x": 1}]


def test_3_no_match_is_lost_because_another_join_value_moved_ahead() -> None:
    engine = armed(trigger(JOINED))

    say(engine, "x", day=1)
    say(engine, "y", day=2)
    say(engine, "x", day=2)
    say(engine, "y", day=1)

    assert starts(engine) == [{"x": 2, "y": 1}, {"x": 1, "y": 2}]


def test_4_a_signal_its_offers_and_its_starts_are_one_transaction() -> None:
    engine = armed(trigger(x={}))
    engine.runtime.publish("signals.internal", "x", c.AnnounceSignal("x", "x1", "{}"))
    assert told(engine, c.SignalAccepted) == []

    engine.runtime.step_until_idle()

    assert len(told(engine, c.SignalAccepted)) == len(told(engine, c.TriggerFired)) == len(starts(engine)) == 1


def test_5_condition_dedup_expr_and_params_see_the_signals() -> None:
    options = {
        "params": {"sum": {"type": "LONG", "expression": "x__n + y__n"}},
        "condition": "sum > 4 && params.getFromSignal('x', 'n') == 2",
        "dedup_expr": "x__day",
    }
    engine = armed(trigger(JOINED, options=options))

    for _ in range(2):
        say(engine, "x", day=1, n=2)
        say(engine, "y", day=1, n=3)

    assert starts(engine) == [{"x": 1, "y": 1}]
    assert len(told(engine, c.StartDuplicated)) == 1


@pytest.mark.parametrize("where", ["workflow", "step"])
def test_6_both_names_reach_a_parameter_of_a_signal_in_workflows_and_steps(where: str) -> None:
    params = {"n": {"type": "LONG", "expression": "params.getFromSignal('x', 'n') + y__n"}}
    step = {"id": "load", "type": "shell", **({"params": params} if where == "step" else {})}
    engine = armed(trigger(JOINED), steps=[{"step": step}], params=params if where == "workflow" else {})

    say(engine, "x", day=1, n=2)
    say(engine, "y", day=1, n=3)

    [task] = engine.tasks()
    row = engine.state("runs", task.key).runs.get((task.key,))
    assert '"n":5' in (task.task.params if where == "step" else row.params)


def test_7_every_signal_has_its_true_number() -> None:
    engine = Engine()

    for signal_id in ("a", "b", "b", "c"):
        say(engine, "x", signal_id)

    assert [one.sequence for one in told(engine, c.SignalAccepted)] == [1, 2, 3]
    assert [one.first_sequence for one in told(engine, c.SignalDuplicated)] == [2]


def test_8_a_signal_without_parameters_is_joined_like_any_other() -> None:
    engine = armed(trigger(x={}, y=matches(n=(">", 1))))

    say(engine, "x")
    say(engine, "y", n=2)

    assert starts(engine) == [{"x": 1, "y": 1}]
