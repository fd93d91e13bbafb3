"""Parameters of workflows and steps, from plain Python values.

{"rows": 1000, "day": expression("RUN_DATE"), "limit": Param("DOUBLE", value=Decimal("0.1"), mode="CONSTANT")}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, Literal

import msgspec

ParamType = Literal[
    "STRING",
    "LONG",
    "DOUBLE",
    "BOOLEAN",
    "STRING_ARRAY",
    "LONG_ARRAY",
    "DOUBLE_ARRAY",
    "BOOLEAN_ARRAY",
    "STRING_MAP",
    "MAP",
]
Mode = Literal["MUTABLE", "MUTABLE_ON_START_RESTART", "MUTABLE_ON_START", "IMMUTABLE", "CONSTANT"]
Scalar = str | int | float | Decimal | bool
SCALARS: Final[dict[type, ParamType]] = {
    str: "STRING",
    bool: "BOOLEAN",
    int: "LONG",
    float: "DOUBLE",
    Decimal: "DOUBLE",
}
ARRAYS: Final[dict[ParamType | None, ParamType]] = {
    "STRING": "STRING_ARRAY",
    "LONG": "LONG_ARRAY",
    "DOUBLE": "DOUBLE_ARRAY",
    "BOOLEAN": "BOOLEAN_ARRAY",
}


class BadWorkflow(ValueError):
    """A workflow that cannot be pushed. It is raised while the workflow is built."""


class Param(msgspec.Struct, frozen=True):
    """A parameter with its attributes. Exactly one of `value` and `expression` is given."""

    type: ParamType
    value: object = None
    expression: str | None = None
    mode: Mode | None = None
    validator: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.value is None) == (self.expression is None):
            raise BadWorkflow(f"Expected a value or an expression of type {self.type}, but found both or neither")


Value = Param | Scalar | Sequence[Scalar] | Mapping[str, object]
Params = Mapping[str, Value]


def expression(text: str, param_type: ParamType = "STRING", *, mode: Mode | None = None) -> Param:
    """A parameter that a SEL expression computes."""
    return Param(param_type, expression=text, mode=mode)


def params_json(params: Mapping[str, object]) -> dict[str, object]:
    """The definitions of parameters as JSON."""
    return {name: param_json(name, value) for name, value in params.items()}


def param_json(name: str, value: object) -> dict[str, object]:
    """The definition of one parameter. The type of a plain value is derived from the value."""
    param = value if isinstance(value, Param) else Param(_type_of(name, value), value)
    made: dict[str, object] = {"type": param.type}
    if param.expression is not None:
        made["expression"] = param.expression
    elif param.type == "MAP":
        made["value"] = params_json(_members(name, param.value))
    else:
        made["value"] = _finite(name, list(param.value) if isinstance(param.value, tuple) else param.value)
    optional = {"mode": param.mode, "validator": param.validator, "tags": list(param.tags)}
    return {**made, **{key: given for key, given in optional.items() if given}}


def _members(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadWorkflow(f"Expected a mapping for parameter {name!r}, but found {type(value).__name__}")
    return value


def _finite(name: str, value: object) -> object:
    """A value. Numbers that JSON cannot represent are refused: they would be written as null."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, float | Decimal) and not math.isfinite(item):
            raise BadWorkflow(f"Expected a finite number for parameter {name!r}, but found {item}")
    return value


def _type_of(name: str, value: object) -> ParamType:
    if isinstance(value, Mapping):
        is_text = bool(value) and all(isinstance(item, str) for item in value.values())
        return "STRING_MAP" if is_text else "MAP"
    if isinstance(value, list | tuple):
        return _array_type(name, value)
    type_ = SCALARS.get(type(value))
    if type_ is None:
        raise BadWorkflow(f"Expected a value for parameter {name!r}, but found {type(value).__name__}")
    return type_


def _array_type(name: str, items: Sequence[object]) -> ParamType:
    kinds = {SCALARS.get(type(item)) for item in items} or {"STRING"}
    if kinds == {"LONG", "DOUBLE"}:
        return "DOUBLE_ARRAY"
    type_ = ARRAYS.get(kinds.pop()) if len(kinds) == 1 else None
    if type_ is None:
        raise BadWorkflow(f"Expected values of one type in parameter {name!r}, but found {list(items)[:5]}")
    return type_
