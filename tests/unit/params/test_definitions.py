"""Reading definitions from JSON, and writing them back."""

from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.params import (
    BadDefinition,
    InternalMode,
    Mode,
    ParamType,
    Source,
    check_run_params,
    definition_json,
    definition_of,
    definitions_of,
)
from kapelle.processors.params.defaults import WORKFLOW
from kapelle.processors.params.names import RESERVED_NAMES
from kapelle.processors.params.type_defaults import BY_TYPE


def test_a_literal_is_read_with_all_its_parts() -> None:
    read = definition_of(
        "p",
        {
            "type": "LONG",
            "value": 3,
            "mode": "IMMUTABLE",
            "validator": "value > 0",
            "tags": ["a", {"name": "b"}],
            "unit": "s",
        },
    )

    assert (read.type, read.value, read.expression) == (ParamType.LONG, 3, None)
    assert (read.mode, read.validator, read.meta) == (Mode.IMMUTABLE, "value > 0", {"unit": "s"})
    assert [tag["name"] for tag in read.tags] == ["a", "b"]


def test_an_expression_is_read_and_words_are_taken_in_any_case() -> None:
    read = definition_of("p", {"type": "string", "expression": "1 + 1", "mode": "mutable_on_start"})

    assert (read.type, read.expression, read.mode) == (ParamType.STRING, "1 + 1", Mode.MUTABLE_ON_START)


def test_a_map_is_read_with_the_definitions_inside() -> None:
    read = definition_of(
        "m", {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1}, "b": {"type": "STRING", "expression": "x"}}}
    )

    assert read.value["a"].value == 1
    assert read.value["b"].expression == "x"


def test_a_decimal_stays_exact() -> None:
    assert str(definition_of("d", {"type": "DOUBLE", "value": Decimal("1.10")}).value) == "1.10"


BAD: list[tuple[Any, str]] = [
    ("text", "object"),
    ({}, "type"),
    ({"type": "LONG"}, "exactly one"),
    ({"type": "LONG", "value": None}, "exactly one"),
    ({"type": "LONG", "value": 1, "expression": "1"}, "exactly one"),
    ({"type": "NUMBER", "value": 1}, "not a valid type"),
    ({"type": None, "value": 1}, "not a valid type"),
    ({"type": "LONG", "value": "x"}, "not a LONG"),
    ({"type": "LONG", "value": 1.5}, "not a LONG"),
    ({"type": "MAP", "value": [1]}, "object of definitions"),
    ({"type": "MAP", "value": {"a": 1}}, "object"),
    ({"type": "MAP", "value": {"": {"type": "LONG", "value": 1}}}, "empty"),
    ({"type": "LONG", "value": 1, "mode": "FROZEN"}, "not a valid mode"),
    ({"type": "LONG", "value": 1, "tags": "a"}, "list"),
    ({"type": "LONG", "value": 1, "tags": [1]}, "tag"),
    ({"type": "LONG", "value": 1, "tags": [{"namespace": "x"}]}, "tag"),
    ({"type": "LONG", "expression": 1}, "not a string"),
    ({"type": "LONG", "value": 1, "validator": 1}, "not a string"),
    ({"type": "LONG", "value": 1, "source": "SYSTEM"}, "set by the system"),
    ({"type": "LONG", "value": 1, "internal_mode": "RESERVED"}, "set by the system"),
    ({"type": "MAP", "value": {"a": {"type": "LONG", "value": 1, "source": "SYSTEM"}}}, "set by the system"),
]


@pytest.mark.parametrize(("raw", "reason"), BAD)
def test_a_definition_that_cannot_mean_anything_is_refused(raw: Any, reason: str) -> None:
    with pytest.raises(BadDefinition, match=reason):
        definition_of("p", raw)


def test_maps_nest_only_so_deep() -> None:
    raw: dict[str, Any] = {"type": "LONG", "value": 1}
    for _ in range(5000):
        raw = {"type": "MAP", "value": {"a": raw}}

    with pytest.raises(BadDefinition, match="deeper than 16"):
        definition_of("m", raw)


def test_the_system_may_say_what_users_may_not() -> None:
    read = definition_of("p", {"type": "LONG", "internal_mode": "OPTIONAL", "source": "SYSTEM_DEFAULT"}, trusted=True)

    assert (read.internal_mode, read.source, read.is_empty) == (InternalMode.OPTIONAL, Source.SYSTEM_DEFAULT, True)


@pytest.mark.parametrize("raw", [*WORKFLOW.values(), *(p for params in BY_TYPE.values() for p in params.values())])
def test_reading_what_was_written_gives_the_same(raw: Any) -> None:
    read = definition_of("p", raw, trusted=True)

    assert definition_of("p", definition_json(read), trusted=True) == read


def test_reserved_names_and_too_many_names_are_refused_in_a_request() -> None:
    check_run_params(["a", "b"])
    for name in RESERVED_NAMES:
        with pytest.raises(BadDefinition, match="reserved"):
            check_run_params(["a", name])
    with pytest.raises(BadDefinition, match="128"):
        check_run_params(f"p{n}" for n in range(129))


def test_the_reserved_names_are_seventeen_and_nothing_else_is() -> None:
    assert {"maestro", "Maestro", "MAESTRO", "scheduler", "util", "UTIL", "params", "Params"} <= RESERVED_NAMES
    assert {"AUTH_BLOB", "AUTHORIZED_MANAGERS"} <= RESERVED_NAMES
    assert len(RESERVED_NAMES) == 17
    assert definitions_of({"parameters": {"type": "LONG", "value": 1}})
