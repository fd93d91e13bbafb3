"""Converts the result of a step to output parameters, each with its type.

| Python | parameter |
|---|---|
| `str`, `bool`, `int`, `float` | STRING, BOOLEAN, LONG, DOUBLE |
| a list or tuple of one of them | STRING_ARRAY, … (integers among floats become floats) |
| a dictionary of strings | STRING_MAP |
| any other dictionary | MAP |
| `Output("MAP", …)` | the given type |

A pydantic model or a dataclass is the dictionary of its fields, as pydantic writes them to JSON. A field that is `None`
is left out: its annotation allows that. A `None` in a dictionary is refused, because a parameter has no null, and the
next step would read the value from before.
"""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from kapelle.worker.errors import BadOutput

OUTPUT_BYTES_MAX: Final = 750_000  # the engine's limit for all parameters of a step; a record has at most 1 MB
DEPTH_MAX: Final = 20
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
SHOWN_CHARS_MAX: Final = 80

SCALARS: Final[Mapping[type, str]] = {str: "STRING", bool: "BOOLEAN", int: "LONG", float: "DOUBLE"}
ALLOWED: Final = "a string, number, boolean, list or dictionary"
NOT_NULL: Final = f"{ALLOWED} (leave the name out to keep the value of the parameter)"

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


class Output(msgspec.Struct, frozen=True):
    """A value with its type, where the value alone does not tell: `Output("MAP", {"a": "b"})`."""

    type: ParamType
    value: object


class Definition(msgspec.Struct, frozen=True):
    """An output parameter as the engine reads it."""

    type: str
    value: object


def outputs_json(returned: object, *, beside_bytes: int = 0) -> str | None:
    """The output parameters as JSON; None if there are none. `beside_bytes` of their record are already used."""
    outputs = {name: _definition(name, value, 0) for name, value in _fields(returned).items()}
    try:
        text = msgspec.json.encode(outputs) if outputs else b""
    except UnicodeEncodeError as error:
        raise BadOutput("", "text of Unicode characters", f"a lone surrogate: {error}") from error
    size = len(text) + beside_bytes
    if size > OUTPUT_BYTES_MAX:
        raise BadOutput("", f"at most {OUTPUT_BYTES_MAX:,} bytes as JSON, with its signals", f"{size:,}")
    return text.decode() or None


def signal_json(name: str, params: Mapping[str, str | int], payload: Mapping[str, object]) -> bytes:
    """A signal that a step announces, as the engine reads it."""
    path = f"signals.{name}"
    for param, value in params.items():
        _check_name(path, param)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise BadOutput(f"{path}.{param}", "a string or an integer: all else is payload", _shown(value))
        _scalar(f"{path}.{param}", value)
    try:
        document = {"name": name, "params": dict(params), "payload": dict(payload)}
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOutput(path, "something that can be written as JSON", str(error)) from error


def _fields(returned: object) -> Mapping[str, object]:
    if returned is None:
        return {}
    plain = _plain("", returned)
    if not isinstance(plain, Mapping):
        raise BadOutput("", "a dictionary, a pydantic model, a dataclass or None", _shown(returned))
    for name in plain:
        _check_name("", name)
    # A model says with its annotations which of its fields may be absent; a dictionary does not.
    return plain if plain is returned else {name: value for name, value in plain.items() if value is not None}


def _plain(path: str, value: object) -> object:
    """Models and dataclasses as dictionaries; all else as it is."""
    try:
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return TypeAdapter[object](type(value)).dump_python(value, mode="json")
    except PydanticSerializationError as error:
        raise BadOutput(path, "something that can be written as JSON", str(error)) from error
    return value


def _definition(path: str, given: object, depth: int) -> Definition:
    if depth > DEPTH_MAX:
        raise BadOutput(path, f"at most {DEPTH_MAX} levels deep", "more")
    if isinstance(given, Output):
        return Definition(given.type, _typed(path, given, depth))
    value = _plain(path, given)
    if isinstance(value, str | int | float):  # a boolean is an integer
        return _one(path, value)
    if isinstance(value, list | tuple):
        return _list(path, value)
    if isinstance(value, Mapping):
        return _any_map(path, value, depth)
    raise BadOutput(path, NOT_NULL if value is None else ALLOWED, _shown(value))


def _typed(path: str, output: Output, depth: int) -> object:
    """The value of an output whose type is given. Whether they fit is for the engine, which converts."""
    value = _plain(path, output.value)
    if output.type == "MAP":
        if not isinstance(value, Mapping):
            raise BadOutput(path, "a dictionary", _shown(value))
        return _map(path, value, depth).value
    if isinstance(value, Mapping):
        return {key: _scalar(f"{path}.{key}", item) for key, item in value.items()}
    return _definition(path, value, depth).value


def _one(path: str, value: object) -> Definition:
    checked = _scalar(path, value)
    return Definition(SCALARS[type(checked)], checked)


def _scalar(path: str, value: object) -> str | bool | int | float:
    if isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value  # a member of a StrEnum becomes its text
    if isinstance(value, int):
        if not LONG_MIN <= value <= LONG_MAX:
            raise BadOutput(path, "an integer of 64 bits", f"one of {value.bit_length()} bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadOutput(path, "a finite number", repr(value))
        return float(value)
    raise BadOutput(path, "a string, number or boolean", _shown(value))


def _list(path: str, value: Sequence[object]) -> Definition:
    items = [_scalar(f"{path}[{index}]", item) for index, item in enumerate(value)]
    kinds = {type(item) for item in items}
    if kinds == {int, float}:
        items, kinds = [float(item) for item in items], {float}
    if len(kinds) > 1:
        raise BadOutput(path, "a list of one type", f"one of {', '.join(sorted(kind.__name__ for kind in kinds))}")
    kind = kinds.pop() if kinds else str
    return Definition(f"{SCALARS[kind]}_ARRAY", items)


def _map(path: str, value: Mapping[str, object], depth: int) -> Definition:
    for name in value:
        _check_name(path, name)
    return Definition("MAP", {name: _definition(f"{path}.{name}", item, depth + 1) for name, item in value.items()})


def _any_map(path: str, value: Mapping[str, object], depth: int) -> Definition:
    if value and all(isinstance(name, str) and isinstance(item, str) for name, item in value.items()):
        return Definition("STRING_MAP", dict(value))
    return _map(path, value, depth)


def _check_name(path: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise BadOutput(path, "a dictionary with names as keys", f"the key {_shown(name)}")


def _shown(value: object) -> str:
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the object is the user's, and so is what its repr raises
        return f"{kind} (whose repr raises {type(error).__name__})"
    return f"{kind} {text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + '…'}"
