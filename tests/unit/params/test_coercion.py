"""Which values each type takes."""

from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.params import NotConvertible, ParamType, coerced
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray

T = ParamType
TAKEN: list[tuple[ParamType, Any, Any]] = [
    (T.STRING, "a", "a"),
    (T.STRING, 1, "1"),
    (T.STRING, -5, "-5"),
    (T.STRING, 1.5, "1.5"),
    (T.STRING, 1e10, "1.0E10"),
    (T.STRING, Decimal("1.10"), "1.10"),
    (T.STRING, True, "true"),
    (T.STRING, False, "false"),
    (T.LONG, 1, 1),
    (T.LONG, "7", 7),
    (T.LONG, "-7", -7),
    (T.LONG, 2**63 - 1, 2**63 - 1),
    (T.DOUBLE, 1.5, 1.5),
    (T.DOUBLE, 1, Decimal(1)),
    (T.DOUBLE, "1.10", Decimal("1.10")),
    (T.DOUBLE, "1e3", Decimal("1e3")),
    (T.DOUBLE, Decimal("0.1"), Decimal("0.1")),
    (T.BOOLEAN, True, True),
    (T.BOOLEAN, "true", True),
    (T.BOOLEAN, "FALSE", False),
    (T.STRING_ARRAY, StringArray(["a"]), ["a"]),
    (T.STRING_ARRAY, LongArray([1, 2]), ["1", "2"]),
    (T.STRING_ARRAY, DoubleArray([1.5]), ["1.5"]),
    (T.STRING_ARRAY, BooleanArray([True]), ["true"]),
    (T.STRING_ARRAY, [], []),
    (T.LONG_ARRAY, LongArray([1]), [1]),
    (T.LONG_ARRAY, [1, 2], [1, 2]),
    (T.LONG_ARRAY, ["1", "2"], [1, 2]),
    (T.DOUBLE_ARRAY, DoubleArray([1.5]), [1.5]),
    (T.DOUBLE_ARRAY, [1, 2.5], [1.0, 2.5]),
    (T.DOUBLE_ARRAY, LongArray([1]), [1.0]),
    (T.BOOLEAN_ARRAY, BooleanArray([True]), [True]),
    (T.BOOLEAN_ARRAY, [True, "false"], [True, False]),
    (T.STRING_MAP, {"a": "b"}, {"a": "b"}),
    (T.STRING_MAP, {"a": 1, "b": True}, {"a": "1", "b": "true"}),
    (T.MAP, {"a": {"b": 1}}, {"a": {"b": 1}}),
]
REFUSED: list[tuple[ParamType, Any]] = [
    (T.STRING, ["a"]),
    (T.STRING, {"a": 1}),
    (T.STRING, None),
    (T.LONG, "seven"),
    (T.LONG, ""),
    (T.LONG, " 7"),
    (T.LONG, "1_000"),
    (T.LONG, "7.0"),
    (T.LONG, "9" * 50),
    (T.LONG, 2**63),
    (T.LONG, 1.5),
    (T.LONG, 2.0),
    (T.LONG, True),
    (T.LONG, [1]),
    (T.DOUBLE, "x"),
    (T.DOUBLE, "NaN"),
    (T.DOUBLE, "Infinity"),
    (T.DOUBLE, "1e999999999"),
    (T.DOUBLE, "9" * 2000),
    (T.DOUBLE, True),
    (T.DOUBLE, float("nan")),
    (T.DOUBLE, float("inf")),
    (T.DOUBLE, [1.5]),
    (T.BOOLEAN, "yes"),
    (T.BOOLEAN, 1),
    (T.BOOLEAN, "1"),
    (T.STRING_ARRAY, "a"),
    (T.STRING_ARRAY, {"a": 1}),
    (T.STRING_ARRAY, [["a"]]),
    (T.LONG_ARRAY, "1"),
    (T.LONG_ARRAY, [1.5]),
    (T.LONG_ARRAY, [True]),
    (T.LONG_ARRAY, StringArray(["x"])),
    (T.DOUBLE_ARRAY, ["x"]),
    (T.DOUBLE_ARRAY, [True]),
    (T.BOOLEAN_ARRAY, [1]),
    (T.STRING_MAP, {"a": {"b": "c"}}),
    (T.STRING_MAP, {"a": ["b"]}),
    (T.STRING_MAP, "a"),
    (T.MAP, "a"),
    (T.MAP, [1]),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN)
def test_a_value_is_taken_as_the_type(kind: ParamType, value: Any, expected: Any) -> None:
    made = coerced("p", kind, value).value

    assert made == expected
    assert isinstance(made, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(("kind", "value"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_by_name(kind: ParamType, value: Any) -> None:
    with pytest.raises(NotConvertible, match="parameter 'p'") as caught:
        coerced("p", kind, value)

    assert caught.value.type_name == kind.value


def test_a_change_of_type_leaves_a_note() -> None:
    assert coerced("p", T.STRING, 1).note == "LONG 1 was taken as STRING"
    assert coerced("p", T.LONG, "7").note == "STRING '7' was taken as LONG"
    assert coerced("p", T.STRING_ARRAY, LongArray([1])).note == "LONG_ARRAY [1] was taken as STRING_ARRAY"


def test_a_value_of_the_type_leaves_no_note() -> None:
    assert coerced("p", T.STRING, "a").note == ""
    assert coerced("p", T.DOUBLE, Decimal("1.5")).note == ""
    assert coerced("p", T.LONG_ARRAY, LongArray([1])).note == ""
