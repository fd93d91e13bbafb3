"""What takes too long or grows too large fails with its reason, and the engine goes on."""

import json
from typing import Any

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR, Engine, Refused
from tests.unit.params.test_budgets import LONG, exploding
from tests.unit.runs.flows import (
    BEGINNING,
    WORKFLOW,
    I,
    S,
    noop,
    param,
    pushed,
    reason,
    refused,
    started,
    step,
    succeed,
)
from tests.unit.signals.announcing import FLOW, armed, say, starts, told, trigger

TOO_LARGE = "within 750,000 characters"
TOO_LONG = "to take at most 250,000 visits"


def heavy(number: int) -> str:
    """An expression that takes about 90,000 visits, another one for each number."""
    return "=" + LONG.replace("6000", str(6_000 + number))


def goes_on(engine: Engine) -> bool:
    """Whether the engine still starts what is asked of it."""
    return engine.start(WORKFLOW).status is I.SUCCEEDED


def test_a_start_whose_run_params_grow_tenfold_is_refused_with_the_parameter() -> None:
    engine = pushed(noop("a"))

    with pytest.raises(Refused, match=f"{TOO_LARGE}, but with 'p3'"):
        engine.start(WORKFLOW, run_params=exploding(7))

    assert goes_on(engine)


def test_a_start_that_is_kept_when_it_fails_tells_why() -> None:
    engine = pushed(noop("a"))

    engine.start(WORKFLOW, run_params=exploding(7), persist_failed_run=True)

    (created,) = told(engine, c.InstanceCreated)
    assert created.status is I.FAILED
    assert TOO_LARGE in created.reason
    assert goes_on(engine)


def test_a_push_whose_parameters_grow_tenfold_is_refused_with_the_parameter() -> None:
    with pytest.raises(Refused, match=r"workflow.params.p3"):
        pushed(noop("a"), params=exploding(7))


def test_a_restart_whose_parameters_grow_tenfold_is_refused_with_the_parameter() -> None:
    run = started(noop("a"))

    run.restart(BEGINNING, run_params=exploding(7))

    assert f"{TOO_LARGE}, but with 'p3'" in refused(run)
    assert goes_on(run.engine)


def test_a_step_whose_parameters_grow_tenfold_fails_with_the_parameter() -> None:
    run = started(step("a", **exploding(7)))

    assert run.steps == {"a": S.INTERNALLY_FAILED}
    assert f"{TOO_LARGE}, but with 'p3'" in reason(run, "a")


def test_a_step_whose_parameters_take_too_long_together_fails_with_the_reason() -> None:
    run = started(step("a", **{f"p{number}": heavy(number) for number in range(5)}))

    assert run.steps == {"a": S.INTERNALLY_FAILED}
    assert f"{TOO_LONG}, but 'p2' needs more" in reason(run, "a")


def test_a_step_whose_conditions_take_too_long_together_fails_with_the_reason() -> None:
    conditions = {f"s{number}": f"x > 0 && x < 9 || x == {number}" for number in range(3)}
    conditions |= {
        name: heavy(number)[1:].replace("return n", "return n > x") for number, name in enumerate(conditions)
    }
    run = started(step("a", conditions, x=1), *(noop(name) for name in conditions))

    succeed(run, "a")

    assert run.steps == {"a": S.INTERNALLY_FAILED}
    assert f"{TOO_LONG}, but 'a -> s2' needs more" in reason(run, "a")


def test_no_step_fails_because_of_what_others_have_spent() -> None:
    run = started(*(noop(f"s{number}", x=heavy(number), y=heavy(100 + number)) for number in range(6)))

    assert set(run.steps.values()) == {S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_a_decision_that_has_spent_much_leaves_the_rest_of_the_steps_to_the_next() -> None:
    run = started(*(noop(f"s{number}", x=heavy(number)) for number in range(9)))

    decisions = [len(run.changes(f"s{number}")) for number in range(9)]

    # One that is left over is created first, and begun by a later decision.
    assert decisions == [1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert run.status is I.SUCCEEDED


def test_the_starts_of_one_command_share_a_budget() -> None:
    engine = pushed(noop("a"), params={"x": heavy(0)})
    batch = tuple(c.Start(f"start-{number}", persist_failed_run=True) for number in range(3))

    engine.send(WORKFLOW_COMMANDS, WORKFLOW, c.StartInstances(AUTHOR, batch))

    created = told(engine, c.InstanceCreated)
    assert [one.status for one in created[:2]] == [I.CREATED, I.CREATED]
    assert created[2].status is I.FAILED
    assert TOO_LONG in created[2].reason


def test_a_trigger_whose_parameters_grow_tenfold_starts_nothing_and_tells_why() -> None:
    engine = armed(trigger(a={}, options={"params": exploding(7)}))

    say(engine, "a")

    assert starts(engine) == []
    (skipped,) = told(engine, c.FiringSkipped)
    assert f"{TOO_LARGE}, but with 'p3'" in skipped.reason


@pytest.mark.parametrize("field", ["condition", "dedup_expr"])
def test_a_trigger_that_takes_too_long_starts_nothing_and_tells_why(field: str) -> None:
    params = {f"p{number}": param(heavy(number)) for number in range(2)}
    expression = heavy(7)[1:].replace("return n", "return n > 0" if field == "condition" else "return '' + n")
    engine = armed(trigger(a={}, options={"params": params, field: expression}))

    say(engine, "a")

    assert starts(engine) == []
    (skipped,) = told(engine, c.FiringSkipped)
    assert "within 250,000" in skipped.reason


def test_a_signal_whose_parameter_grows_too_large_fails_the_step_that_announces_it() -> None:
    output: dict[str, Any] = {"name": "loaded", "params": {"p": {"type": "STRING", "value": "${big}" * 1_000}}}
    only = {"id": "load", "type": "NoOp", "signal_outputs": [output]}
    engine = armed(steps=[{"step": only}], params={"big": {"type": "STRING", "value": "x" * 10_000}})

    run = engine.start(FLOW)

    assert run.steps == {"load": S.INTERNALLY_FAILED}
    assert TOO_LARGE in reason(run, "load")


def test_a_time_out_with_a_long_parameter_counts_as_not_written() -> None:
    big = {"type": "STRING", "value": "1s " * 3_000}
    engine = pushed(step("a", timeout="${big}" * 40), params={"big": "1h"})

    run = engine.start(WORKFLOW, run_params={"big": big})

    assert run.steps == {"a": S.STARTING}


def test_a_step_that_asks_for_large_outputs_of_another_reads_them_once_for_each_decision() -> None:
    asking = "n = 0; for (i = 0; i < 500; i += 1) { n = n + params.getFromStep('first', 'k'); } return n;"
    run = started(step("first", "a", big="", k=2), noop("a", total=f"={asking}"))

    run.engine.task(run, "first").succeed(big="x" * 700_000)

    assert run.steps == {"first": S.SUCCEEDED, "a": S.SUCCEEDED}
    assert run.params("a")["total"] == 1_000


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [101, 900])
@pytest.mark.parametrize(
    ("field", "around"),
    [
        ("run_params", lambda deep: {"x": {"type": "LONG", "value": 1, "note": deep}}),
        ("run_params", lambda deep: {"x": {"type": "LONG", "value": 1, "tags": [{"name": "t", "z": deep}]}}),
        ("step_run_params", lambda deep: {"a": {"x": {"type": "LONG", "value": 1, "note": deep}}}),
        ("initiator", lambda deep: {"type": "MANUAL", "z": deep}),
        ("artifacts", lambda deep: {"z": deep}),
    ],
)
def test_a_start_with_json_that_nests_too_deep_is_refused(field: str, around: Any, levels: int) -> None:
    engine = pushed(noop("a"))

    with pytest.raises(Refused, match="deep"):
        engine.start(WORKFLOW, **{field: around(nested(levels))})

    assert goes_on(engine)


def test_output_data_that_nests_too_deep_fails_the_step() -> None:
    run = started(step("a", x=1))
    word = json.dumps({"x": {"type": "LONG", "value": 1, "note": nested(300)}})

    task = run.engine.task(run, "a").task
    run.engine.send(RUN_COMMANDS, run.key, c.ReportTask(task.token, "a", "w", c.Report.SUCCEEDED, outputs=word))

    assert run.steps == {"a": S.INTERNALLY_FAILED}
    assert "nests at most 100 deep" in reason(run, "a")
