"""How what a step returns becomes output parameters."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from kapelle.worker import BadOutput, Output
from kapelle.worker.outputs import OUTPUT_BYTES_MAX, outputs_json

ALLOWED = "a string, number, boolean, list or dictionary"
NOT_NULL = f"{ALLOWED} (leave the name out to keep the value of the parameter)"


class Colour(StrEnum):
    RED = "red"


class Loaded(BaseModel):
    rows: int
    at: datetime
    note: str | None = None


@dataclass
class Counted:
    rows: int
    names: tuple[str, ...]


class Shy:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def written(value: object) -> Any:
    text = outputs_json(value)
    return None if text is None else json.loads(text)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a", "STRING"),
        (Colour.RED, "STRING"),
        (1, "LONG"),
        (True, "BOOLEAN"),
        (1.5, "DOUBLE"),
        (["a"], "STRING_ARRAY"),
        ([], "STRING_ARRAY"),
        ([1, 2], "LONG_ARRAY"),
        ([True], "BOOLEAN_ARRAY"),
        ([1.5, 2], "DOUBLE_ARRAY"),
        ((1, 2), "LONG_ARRAY"),
        ({"a": "b"}, "STRING_MAP"),
        (-(1 << 63), "LONG"),
    ],
)
def test_each_value_has_the_type_that_python_shows(value: object, kind: str) -> None:
    found = written({"out": value})["out"]

    assert found["type"] == kind
    assert found["value"] == (list(value) if isinstance(value, tuple) else value)


def test_a_map_of_mixed_values_defines_each_entry() -> None:
    found = written({"out": {"a": 1, "b": {"c": "d"}, "e": [1.0]}})

    assert found == {
        "out": {
            "type": "MAP",
            "value": {
                "a": {"type": "LONG", "value": 1},
                "b": {"type": "STRING_MAP", "value": {"c": "d"}},
                "e": {"type": "DOUBLE_ARRAY", "value": [1.0]},
            },
        }
    }


def test_a_type_can_be_given_where_the_value_does_not_tell_it() -> None:
    found = written({"a": Output("MAP", {"x": "y"}), "b": Output("STRING_MAP", {}), "c": Output("LONG_ARRAY", [])})

    assert found == {
        "a": {"type": "MAP", "value": {"x": {"type": "STRING", "value": "y"}}},
        "b": {"type": "STRING_MAP", "value": {}},
        "c": {"type": "LONG_ARRAY", "value": []},
    }


def test_a_step_without_a_result_has_no_outputs() -> None:
    assert outputs_json(None) is None
    assert outputs_json({}) is None


def test_a_field_that_may_be_none_is_left_out() -> None:
    assert set(written(Loaded(rows=1, at=datetime(2026, 1, 2, tzinfo=UTC), note=None))) == {"rows", "at"}


def test_models_and_dataclasses_are_their_fields() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)

    assert written(Loaded(rows=1, at=at)) == {
        "rows": {"type": "LONG", "value": 1},
        "at": {"type": "STRING", "value": "2026-01-02T00:00:00Z"},
    }
    assert written(Counted(1, ("a", "b")))["names"] == {"type": "STRING_ARRAY", "value": ["a", "b"]}
    assert written({"all": Counted(1, ())})["all"]["type"] == "MAP"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "Expected the step's output to be a dictionary, a pydantic model, a dataclass or None, but found int 3"),
        ({1: 2}, "Expected the step's output to be a dictionary with names as keys, but found the key int 1"),
        (
            {"a": {"b": {1, 2}}},
            "Expected output 'a.b' to be a string, number, boolean, list or dictionary, but found set {1, 2}",
        ),
        ({"a": [1, b"x"]}, "Expected output 'a[1]' to be a string, number or boolean, but found bytes b'x'"),
        ({"a": [1, "x"]}, "Expected output 'a' to be a list of one type, but found one of int, str"),
        (
            {"a": {"b": None}},
            f"Expected output 'a.b' to be {NOT_NULL}, but found NoneType None",
        ),
        (
            {"count": None, "rows": 1},
            f"Expected output 'count' to be {NOT_NULL}, but found NoneType None",
        ),
        ({"a": float("nan")}, "Expected output 'a' to be a finite number, but found nan"),
        ({"a": 1 << 63}, "Expected output 'a' to be an integer of 64 bits, but found one of 64 bits"),
        ({"a": {"": 1}}, "Expected output 'a' to be a dictionary with names as keys, but found the key str ''"),
        ({"a": Output("MAP", 1)}, "Expected output 'a' to be a dictionary, but found int 1"),
    ],
)
def test_what_cannot_be_written_is_named_by_its_path(value: object, message: str) -> None:
    with pytest.raises(BadOutput) as caught:
        outputs_json(value)

    assert str(caught.value) == message


def test_an_object_that_cannot_even_be_shown_is_refused_all_the_same() -> None:
    with pytest.raises(BadOutput, match=r"Shy .whose repr raises RuntimeError"):
        outputs_json({"a": Shy()})


def test_what_refers_to_itself_is_refused() -> None:
    ring: dict[str, Any] = {}
    ring["again"] = ring

    with pytest.raises(BadOutput, match="levels deep"):
        outputs_json({"a": ring})


def test_more_than_a_record_can_hold_is_refused() -> None:
    with pytest.raises(BadOutput, match="at most 750,000 bytes as JSON"):
        outputs_json({"a": "ü" * (OUTPUT_BYTES_MAX // 2)})


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(BadOutput, match="lone surrogate"):
        outputs_json({"a": "\udcff"})
