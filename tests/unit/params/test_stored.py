"""What is written of evaluated parameters is read back as it was."""

from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.params import Definition, Evaluated, ParamType, definitions_of
from kapelle.processors.params.stored import restored, values_json, values_of
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray

VALUES: dict[ParamType, Any] = {
    ParamType.STRING: 'a "b" é \U0001f600',
    ParamType.LONG: 2**63 - 1,
    ParamType.DOUBLE: Decimal("0.1"),
    ParamType.BOOLEAN: False,
    ParamType.STRING_ARRAY: StringArray(["a", ""]),
    ParamType.LONG_ARRAY: LongArray([1, -2]),
    ParamType.DOUBLE_ARRAY: DoubleArray([1.0, 2.5]),
    ParamType.BOOLEAN_ARRAY: BooleanArray([True]),
    ParamType.STRING_MAP: {"k": "v"},
    ParamType.MAP: {"a": 1, "b": StringArray(["x"])},
}


def evaluated(definition: Definition, value: Any) -> dict[str, Evaluated]:
    return {"p": Evaluated("p", definition, value, 7)}


@pytest.mark.parametrize("kind", ParamType)
def test_a_value_of_each_type_comes_back_with_its_definition(kind: ParamType) -> None:
    definition = Definition(type=kind, value=None)

    back = restored(values_json(evaluated(definition, VALUES[kind])), {"p": definition}, evaluated_at_ms=7)

    assert back["p"].value == VALUES[kind]
    assert back["p"].definition is definition
    assert back["p"].evaluated_at_ms == 7


@pytest.mark.parametrize("kind", ParamType)
def test_a_value_of_each_type_comes_back_without_its_definition(kind: ParamType) -> None:
    found = values_of(values_json(evaluated(Definition(type=kind), VALUES[kind])))["p"].value

    assert found == VALUES[kind]
    assert type(found) is type(VALUES[kind])


def test_an_exact_number_without_a_fraction_stays_a_double() -> None:
    text = values_json(evaluated(Definition(type=ParamType.DOUBLE), Decimal(3)))

    assert text == '{"p":3.0}'
    assert isinstance(values_of(text)["p"].value, Decimal)


def test_a_floating_number_comes_back_as_the_decimal_that_it_was_written_as() -> None:
    found = values_of(values_json(evaluated(Definition(type=ParamType.DOUBLE), 0.1)))["p"].value

    assert found == Decimal("0.1")
    assert float(found) == 0.1


def test_an_exact_number_stays_exact() -> None:
    number = Decimal("0.1000000000000000055511151231257827")

    text = values_json(evaluated(Definition(type=ParamType.DOUBLE), number))

    assert values_of(text)["p"].value == number


def test_the_types_inside_a_map_are_those_of_its_definition() -> None:
    inner = {"n": {"type": "DOUBLE_ARRAY", "value": []}, "s": {"type": "STRING", "value": "1"}}
    definition = definitions_of({"p": {"type": "MAP", "value": inner}})["p"]

    back = restored('{"p":{"n":[],"s":"1","more":[2]}}', {"p": definition})["p"].value

    assert type(back["n"]) is DoubleArray
    assert back == {"n": DoubleArray(), "s": "1", "more": LongArray([2])}


def test_nothing_is_written_as_an_empty_object() -> None:
    assert values_json({}) == "{}"
    assert values_of("{}") == {}
    assert restored("{}", {}) == {}
