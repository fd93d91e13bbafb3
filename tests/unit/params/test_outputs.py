"""Output data of a step, and what a restart takes over."""

from typing import Any

import pytest

from kapelle.processors.params import (
    Context,
    Evaluated,
    MergeRefused,
    Validating,
    ValidatorFailed,
    WorkflowScope,
    definitions_of,
    evaluate,
    taken_over,
    with_outputs,
)
from kapelle.processors.sel import Extension, Sel

SEL = Sel()
NOW_MS = 1_000


def evaluated(raw: dict[str, Any]) -> dict[str, Evaluated]:
    context = Context(SEL, NOW_MS, "s", Extension())
    return evaluate(definitions_of(raw), WorkflowScope("w", context.extension), context)


def after(raw: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Evaluated]:
    return with_outputs(evaluated(raw), definitions_of(outputs), means=Validating(SEL), now_ms=2_000)


def test_output_data_replaces_values_of_mutable_parameters() -> None:
    made = after({"rows": {"type": "LONG", "value": 0}}, {"rows": {"type": "LONG", "value": 9}})["rows"]

    assert (made.value, made.evaluated_at_ms, made.layer, made.source) == (9, 2_000, "output data", "OUTPUT_PARAMETER")


def test_output_data_replaces_what_an_expression_gave() -> None:
    assert (
        after({"rows": {"type": "LONG", "expression": "1"}}, {"rows": {"type": "LONG", "value": 9}})["rows"].value == 9
    )


def test_output_data_merges_into_maps() -> None:
    made = after(
        {
            "m": {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1}, "n": {"type": "MAP", "value": {}}}},
            "s": {"type": "STRING_MAP", "value": {"a": "1"}},
            "e": {"type": "MAP", "expression": "m = new Map(); m.put('x', 1); m.put('y', new long[]{1}); return m;"},
        },
        {
            "m": {
                "type": "MAP",
                "value": {
                    "b": {"type": "LONG", "value": 2},
                    "n": {"type": "MAP", "value": {"x": {"type": "LONG", "value": 3}}},
                },
            },
            "s": {"type": "STRING_MAP", "value": {"b": "2"}},
            "e": {"type": "MAP", "value": {"x": {"type": "LONG", "value": 5}}},
        },
    )

    assert made["m"].value == {"a": 1, "n": {"x": 3}, "b": 2}
    assert made["s"].value == {"a": "1", "b": "2"}
    assert made["e"].value == {"x": 5, "y": [1]}


def test_output_data_is_not_interpolated() -> None:
    assert (
        after({"t": {"type": "STRING", "value": ""}}, {"t": {"type": "STRING", "value": "$x $$"}})["t"].value == "$x $$"
    )


def test_the_type_of_the_parameter_stays() -> None:
    assert after({"t": {"type": "STRING", "value": ""}}, {"t": {"type": "LONG", "value": 5}})["t"].value == "5"


def test_output_data_for_a_parameter_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MergeRefused, match="not defined in params"):
        after({}, {"rows": {"type": "LONG", "value": 1}})


@pytest.mark.parametrize("mode", ["MUTABLE_ON_START_RESTART", "MUTABLE_ON_START", "IMMUTABLE", "CONSTANT"])
def test_output_data_cannot_change_what_is_not_mutable(mode: str) -> None:
    with pytest.raises(MergeRefused, match=mode):
        after({"rows": {"type": "LONG", "value": 0, "mode": mode}}, {"rows": {"type": "LONG", "value": 1}})


def test_output_data_must_be_literal() -> None:
    with pytest.raises(MergeRefused, match="literal"):
        after({"rows": {"type": "LONG", "value": 0}}, {"rows": {"type": "LONG", "expression": "1"}})


def test_output_data_must_satisfy_the_validator() -> None:
    with pytest.raises(ValidatorFailed):
        after({"rows": {"type": "LONG", "value": 1, "validator": "value > 0"}}, {"rows": {"type": "LONG", "value": 0}})


def test_saying_the_same_leaves_the_parameter_as_it_was() -> None:
    made = after({"rows": {"type": "LONG", "value": 1, "mode": "CONSTANT"}}, {"rows": {"type": "LONG", "value": 1}})

    assert made["rows"].evaluated_at_ms == NOW_MS


def test_a_restart_takes_values_over_but_evaluates_immutable_ones_again() -> None:
    previous = evaluated(
        {
            "a": {"type": "LONG", "expression": "1 + 1"},
            "b": {"type": "LONG", "expression": "2 + 2", "mode": "IMMUTABLE"},
            "params": {"type": "LONG", "value": 1},
        }
    )

    taken = taken_over(previous)

    assert (taken["a"].value, taken["a"].expression) == (2, None)
    assert (taken["b"].value, taken["b"].expression) == (None, "2 + 2")
    assert "params" not in taken


def test_what_a_restart_takes_over_keeps_its_dollar_signs() -> None:
    raw = {
        "a": {"type": "STRING", "value": "costs $$5 and $$name"},
        "b": {"type": "STRING_ARRAY", "value": ["$$x"]},
        "c": {"type": "STRING_MAP", "value": {"$$k": "$$v"}},
        "d": {"type": "MAP", "value": {"e": {"type": "STRING", "value": "$$y"}}},
    }
    previous = evaluated(raw)

    context = Context(SEL, NOW_MS, "s", Extension())
    again = evaluate(taken_over(previous), WorkflowScope("w", context.extension), context)

    assert {n: p.value for n, p in again.items()} == {n: p.value for n, p in previous.items()}
    assert again["a"].value == "costs $5 and $name"
