"""Parameters of steps: what they see, when they are evaluated, and what becomes of a step whose cannot be."""

import pytest

from tests.unit.runs.flows import (
    MINUTE_MS,
    I,
    S,
    noop,
    param,
    passed,
    pushed,
    reason,
    started,
    step,
    succeed,
    task,
)


def text(expression: str) -> dict[str, str]:
    return {"type": "STRING", "expression": expression}


def test_parameters_are_evaluated_in_their_order_and_see_the_workflow_first() -> None:
    run = started(step("a", i="=i + 1", j="=i * 10"), params={"i": 5})

    assert task(run, "a").params == {"i": 6, "j": 60}


def test_a_parameter_that_refers_to_a_later_one_of_the_workflow_name_sees_the_workflow() -> None:
    run = started(step("a", j="=i * 10", i="=i + 1"), params={"i": 5})

    assert task(run, "a").params == {"j": 50, "i": 6}


def test_text_is_filled_in() -> None:
    run = started(noop("first", "a", n=3), step("a", s="${x} of $first__n cost $$5"), params={"x": 2})

    assert task(run, "a").params == {"s": "2 of 3 cost $5"}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("params.getFromStep('step_id')", "a"),
        ("params.getFromStep('step_type_info')", "shell"),
        ("'' + params.getFromStep('step_attempt_id')", "1"),
        ("params.getFromInstance('owner')", "ann"),
        ("'' + params.getFromInstance('workflow_instance_id')", "1"),
        ("params.getFromInstance('INITIATOR_TYPE')", "MANUAL"),
        ("params.getFromStep('first', 'MAESTRO_STEP_STATUS')", "SUCCEEDED"),
        ("'' + params.getFromSignalOrDefault('day', 7)", "7"),
    ],
)
def test_expressions_can_ask_about_the_step_and_the_instance(expression: str, value: str) -> None:
    run = started(noop("first", "a"), step("a", x=text(expression)))

    assert task(run, "a").params["x"] == value


def test_ids_differ_from_attempt_to_attempt_and_are_the_same_when_replayed() -> None:
    def ids() -> list[object]:
        run = started(step("a", x=text("params.nextUniqueId()")))
        task(run, "a").fail()
        run.engine.advance(MINUTE_MS)
        return [one.params["x"] for one in run.engine.tasks(run)]

    first, second = ids(), ids()

    assert len(set(map(str, first))) == 2
    assert first == second


def test_parameters_given_at_the_start_replace_those_of_the_step() -> None:
    engine = pushed(step("a", x=1))

    run = engine.start("flow", step_run_params={"a": {"x": param(9)}})

    assert task(run, "a").params == {"x": 9}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / first__n", "expression failed"),
        ("params.getFromStep('later', 'x')", "to be complete"),
        ("params.getFromStep('nonsense')", "a field of the step"),
        ("Long i = 0; while (first__n == 0) { i = i + 1; } return i;", "expression failed"),
        ("throw 'no';", "expression failed"),
    ],
)
def test_parameters_that_cannot_be_evaluated_fail_the_step_with_the_reason(expression: str, expected: str) -> None:
    run = started(step("first", "a", n=1), step("a", "later", x=f"={expression}"), noop("later", x=1))

    task(run, "first").succeed(n=0)

    assert passed(run, "a")[-2:] == [S.EVALUATING_PARAMS, S.INTERNALLY_FAILED]
    assert expected in reason(run, "a")
    assert run.status is I.FAILED


def test_a_value_that_does_not_fit_its_type_fails_the_step() -> None:
    run = started(step("first", "a", s="5"), step("a", x="=first__s"))

    task(run, "first").succeed(s="many")

    assert run.steps["a"] is S.INTERNALLY_FAILED


def test_a_value_that_its_validator_refuses_fails_the_step() -> None:
    checked = {"type": "LONG", "expression": "first__n", "validator": "value > 0"}
    run = started(step("first", "a", n=1), step("a", x=checked))

    task(run, "first").succeed(n=0)

    assert run.steps["a"] is S.INTERNALLY_FAILED


@pytest.mark.parametrize("letter", ["x", "€"])
def test_values_that_no_record_can_hold_fail_the_step(letter: str) -> None:
    doubled = f"String s = '{letter * 8}'; for (int i = 0; i < first__n; i += 1) {{ s = s + s; }} return s;"
    run = started(step("first", "a", n=1), step("a", x=text(doubled)))

    task(run, "first").succeed(n=16)
    big = run.steps["a"]
    run = started(step("first", "a", n=1), step("a", x=text(doubled)))
    task(run, "first").succeed(n=17)

    assert big is (S.STARTING if letter == "x" else S.INTERNALLY_FAILED)
    assert run.steps["a"] is S.INTERNALLY_FAILED


def test_the_parameters_of_a_step_that_is_not_complete_are_not_seen() -> None:
    run = started(step("a", x=1), step("b", "c"), step("c", y="=a__x"))

    succeed(run, "b")

    assert run.steps["c"] is S.INTERNALLY_FAILED
