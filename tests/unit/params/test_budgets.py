"""A decision has one budget for all that it evaluates: work, and the characters of its texts."""

import json
import tracemalloc
from typing import Any

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push
from kapelle.processors.params import (
    SEL_LIMITS,
    BadNumber,
    BudgetExceeded,
    Context,
    Evaluated,
    EvaluationFailed,
    ParamError,
    ParamsTooLarge,
    TextTooLong,
    Validating,
    WorkflowScope,
    definitions_of,
    duration_ms,
    evaluate,
    interpolated,
    new_budget,
    number_of,
    with_outputs,
)
from kapelle.processors.params.language import VISITS_MAX
from kapelle.processors.sel import Budget, Extension, Sel

Json = dict[str, Any]
PEAK_BYTES_MAX = 16_000_000
# A loop that takes about 90,000 visits.
LONG = "n = 0; for (i = 0; i < 6000; i += 1) { n = n + 1; } return n;"


def exploding(levels: int, kind: str = "STRING") -> Json:
    """Each is ten times as long as the one before: the last of seven levels would have ten thousand million."""
    params: Json = {"p0": {"type": "STRING", "value": "x" * 1000}}
    for level in range(1, levels + 1):
        text = f"${{p{level - 1}}}" * 10
        value = {"STRING": text, "STRING_ARRAY": [text], "STRING_MAP": {"k": text}}[kind]
        params[f"p{level}"] = {"type": kind, "value": value}
    return params


def evaluated(raw: Json, budget: Budget | None = None) -> dict[str, Evaluated]:
    context = Context(Sel(SEL_LIMITS), 0, "s", Extension(), budget=budget or new_budget())
    return evaluate(definitions_of(raw), WorkflowScope("etl", context.extension), context)


def refused(raw: Json) -> ParamError:
    """The error of an evaluation that stays small."""
    tracemalloc.start()
    try:
        with pytest.raises(ParamError) as caught:
            evaluated(raw)
        assert tracemalloc.get_traced_memory()[1] < PEAK_BYTES_MAX
    finally:
        tracemalloc.stop()
    return caught.value


@pytest.mark.parametrize("kind", ["STRING", "STRING_ARRAY", "STRING_MAP"])
def test_texts_that_grow_tenfold_seven_times_are_refused_before_they_are_made(kind: str) -> None:
    error = refused(exploding(7, kind))

    assert isinstance(error, ParamsTooLarge)
    assert error.name == "p3"
    assert "'p3'" in str(error)


def test_texts_inside_a_map_are_counted_together() -> None:
    big = {"type": "STRING", "value": "x" * 100_000}
    inner = {f"k{n}": {"type": "STRING", "value": "$p $p"} for n in range(100)}

    error = refused({"p": big, "m": {"type": "MAP", "value": inner}})

    assert isinstance(error, ParamsTooLarge)
    assert error.name == "m"


def test_an_array_in_a_text_is_counted_as_its_json() -> None:
    error = refused(
        {
            "a": {"type": "STRING_ARRAY", "value": ["x" * 10_000] * 10},
            "b": {"type": "STRING", "value": "$a" * 1000},
        }
    )

    assert isinstance(error, ParamsTooLarge)


def test_an_array_that_holds_one_text_many_times_is_refused_before_its_json_is_made() -> None:
    expression = "a = new String[2000]; for (i = 0; i < 2000; i += 1) { a[i] = s; } return a;"
    text = {"type": "STRING", "value": "x" * 500_000}

    error = refused({"s": text, "a": {"type": "STRING_ARRAY", "expression": expression}})

    assert isinstance(error, ParamsTooLarge)
    assert error.name == "a"


def test_a_text_of_many_references_is_work_too() -> None:
    error = refused({"a": {"type": "STRING", "value": ""}, "b": {"type": "STRING", "value": "$a" * 300_000}})

    assert isinstance(error, BudgetExceeded)
    assert error.name == "b"


def test_expressions_share_the_visits_of_their_decision() -> None:
    params = {f"p{n}": {"type": "LONG", "expression": LONG.replace("6000", str(6_000 + n))} for n in range(5)}

    error = refused(params)

    assert isinstance(error, BudgetExceeded)
    assert error.name == "p2"
    assert str(error).startswith(
        "Expected the parameters that are evaluated together to take at most 250,000 visits, but 'p2' needs more"
    )


def test_evaluations_of_one_decision_share_its_budget() -> None:
    budget = new_budget()
    param = {"p": {"type": "LONG", "expression": LONG}}

    for _ in range(2):
        evaluated(param, budget)

    with pytest.raises(BudgetExceeded):
        evaluated(param, budget)
    assert budget.is_exhausted


def test_validators_share_the_budget_of_what_they_validate() -> None:
    validator = LONG.replace("return n", "return value == 1")
    params = {f"p{n}": {"type": "LONG", "value": 1, "validator": validator} for n in range(5)}

    assert isinstance(refused(params), BudgetExceeded)


def test_validators_of_output_data_share_one_budget() -> None:
    validator = LONG.replace("return n", "return value >= 1")
    raw = {f"p{n}": {"type": "LONG", "value": 1} for n in range(5)}
    outputs = {f"p{n}": {"type": "LONG", "value": 2, "validator": validator} for n in range(5)}

    with pytest.raises(BudgetExceeded):
        with_outputs(evaluated(raw), definitions_of(outputs), means=Validating(Sel(SEL_LIMITS), new_budget()), now_ms=0)


def test_a_text_costs_the_same_whether_or_not_it_was_compiled_before() -> None:
    sel = Sel(SEL_LIMITS)
    budgets = [new_budget() for _ in range(2)]
    params = definitions_of({"a": {"type": "LONG", "expression": "1 + b"}, "b": {"type": "LONG", "value": 1}})

    for budget in budgets:
        context = Context(sel, 0, "s", Extension(), budget=budget)
        evaluate(params, WorkflowScope("etl", context.extension), context)

    assert budgets[0].spent == budgets[1].spent > 0


def test_expressions_that_take_long_to_compile_are_counted_before_they_are_compiled() -> None:
    params = {f"p{n}": {"type": "LONG", "expression": f"{n}" + ";1" * 4_000} for n in range(3)}

    error = refused(params)

    assert isinstance(error, BudgetExceeded)
    assert error.name == "p1"


def test_a_duration_with_a_long_parameter_is_refused() -> None:
    values = {"big": "1h " * 100_000}

    with pytest.raises(BadNumber, match="at most 10,000 characters"):
        duration_ms("$big" * 100, values.__getitem__)
    with pytest.raises(BadNumber, match="at most 10,000 characters"):
        number_of("$big" * 100, values.__getitem__)


def test_a_text_that_nobody_counts_is_bounded_too() -> None:
    with pytest.raises(TextTooLong, match="750,000"):
        interpolated("$a$a", {"a": "x" * 400_000}.__getitem__)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 1500 + "1" + ")" * 1500,
        "!" * 3000 + "true",
        "a[" * 1500 + "0" + "]" * 1500,
        "{" * 1500 + "1;" + "}" * 1500,
        "m = new Map(); for (i = 0; i < 1500; i += 1) { n = new Map(); n.put('a', m); m = n; } return m;",
        "m = new Map(); for (i = 0; i < 1500; i += 1) { n = new Map(); n.put('a', m); m = n; } return '' + m;",
        "m = new Map(); for (i = 0; i < 1500; i += 1) { n = new Map(); n.put('a', m); m = n; } return Util.toJson(m);",
        "m = new Map(); m.put('a', m); return m;",
    ],
)
def test_deep_nesting_is_refused_with_a_reason(expression: str) -> None:
    with pytest.raises(ParamError):
        evaluated({"p": {"type": "MAP", "expression": expression}})


def test_deep_maps_of_definitions_are_refused_with_a_reason() -> None:
    nested: Json = {"type": "LONG", "value": 1}
    for _ in range(400):
        nested = {"type": "MAP", "value": {"a": nested}}

    with pytest.raises(ParamError, match="nests deeper"):
        definitions_of({"p": nested})


def push(**workflow: Any) -> str:
    body = {"id": "etl", "steps": [{"step": {"id": "only", "type": "NoOp"}}], **workflow}
    return json.dumps({"properties": {"owner": "ann"}, "workflow": body})


def problems_of(text: str) -> list[str]:
    tracemalloc.start()
    try:
        with pytest.raises(DefinitionRefused) as caught:
            parse_push(text, runnable=True)
        assert tracemalloc.get_traced_memory()[1] < 4 * PEAK_BYTES_MAX
    finally:
        tracemalloc.stop()
    return [str(problem) for problem in caught.value.problems]


def test_a_push_whose_texts_grow_tenfold_is_refused_with_the_parameter() -> None:
    (problem,) = problems_of(push(params=exploding(7)))

    assert problem.startswith("workflow.params.p3:")
    assert "within 750,000 characters" in problem


def test_a_push_whose_parameters_take_too_long_together_is_refused_once() -> None:
    params = {f"p{n}": {"type": "LONG", "expression": LONG.replace("6000", str(6_000 + n))} for n in range(20)}

    (problem,) = problems_of(push(params=params))

    assert problem.startswith("workflow.params.p2:")
    assert f"{VISITS_MAX:,}" in problem


def test_a_push_with_more_expressions_than_can_be_checked_is_refused_once() -> None:
    params = {f"p{n}": {"type": "LONG", "expression": f"{n} + 1 + 2 + 3 + 4"} for n in range(3_000)}
    steps = [{"step": {"id": "only", "type": "NoOp", "params": params}}]

    (problem,) = problems_of(push(steps=steps))

    assert "at most 400,000 visits to check" in problem


def test_conditions_that_take_too_long_to_check_are_refused() -> None:
    condition = LONG.replace("return n", "return n > 0")
    ids = [f"s{n}" for n in range(9)]
    first = {"id": "first", "type": "NoOp", "transition": {"successors": {}}}
    first["transition"] = {"successors": {one: condition.replace("6000", f"600{n}") for n, one in enumerate(ids)}}
    steps = [{"step": first}, *({"step": {"id": one, "type": "NoOp"}} for one in ids)]

    (problem,) = problems_of(push(steps=steps))

    assert "at most 400,000 visits to check" in problem


def test_the_reason_of_a_single_expression_tells_where_it_failed() -> None:
    error = refused({"p": {"type": "LONG", "expression": "while (true) { for (;;) { } } return 1;"}})

    assert isinstance(error, EvaluationFailed)
    assert "line 1, column" in str(error)
