"""Evaluated parameters between decisions: events and rows hold values as JSON, and definitions give them types.

text = values_json(evaluated)                  # {"day":"20260101","sizes":[1,2]}
restored(text, definitions)["sizes"].value     # LongArray([1, 2])
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.params.coercion import coerced
from kapelle.processors.params.definitions import Definition, Definitions
from kapelle.processors.params.evaluation import Evaluated
from kapelle.processors.params.outputs import type_of
from kapelle.processors.params.types import ParamType, ParamValue
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray
from kapelle.processors.sel.values import json_text

TEXTS_CACHED: Final = 4_096
TEXT_CACHED_CHARS_MAX: Final = 4_096

_decoder: Final = msgspec.json.Decoder(float_hook=Decimal)


class Value(msgspec.Struct, frozen=True, gc=False):
    """A value on its own, for scopes that ask for nothing else."""

    value: ParamValue


def values_json(params: Mapping[str, Evaluated]) -> str:
    """The values by name, as compact JSON."""
    return json_text({name: _exact(param.value) for name, param in params.items()}) if params else "{}"


def _exact(value: ParamValue) -> ParamValue:
    """Exact decimals are written with a point, so that they are not read back as integers."""
    if isinstance(value, Decimal):
        return value if "." in str(value) or "E" in str(value) else value + Decimal("0.0")
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return value


def plain_json(values: Mapping[str, ParamValue]) -> str:
    """Values that have no definition, as compact JSON."""
    return json_text({name: _exact(value) for name, value in values.items()}) if values else "{}"


def values_of(text: str) -> Mapping[str, Value]:
    """The values by name, their types taken from the JSON: for references from elsewhere."""
    if text == "{}":
        return {}
    return _cached(text) if len(text) <= TEXT_CACHED_CHARS_MAX else _values(text)


def _values(text: str) -> dict[str, Value]:
    return {name: Value(typed(value)) for name, value in _decoder.decode(text).items()}


_cached = lru_cache(maxsize=TEXTS_CACHED)(_values)


def restored(text: str, definitions: Definitions, *, evaluated_at_ms: int = 0) -> dict[str, Evaluated]:
    """The parameters as they were when they were evaluated. A value without a definition is taken as it looks."""
    values = {} if text == "{}" else _decoder.decode(text)
    params: dict[str, Evaluated] = {}
    for name, value in values.items():
        definition = definitions.get(name) or Definition(type=type_of(typed(value)))
        params[name] = Evaluated(name, definition, _as_defined(name, definition, value), evaluated_at_ms)
    return params


def _as_defined(name: str, definition: Definition, value: Any) -> ParamValue:
    if definition.type is ParamType.MAP:
        inner = definition.value if isinstance(definition.value, dict) else {}
        return {key: _as_defined(key, inner[key], item) if key in inner else typed(item) for key, item in value.items()}
    return coerced(name, definition.type, value).value


def typed(value: object) -> ParamValue:
    """A value of JSON as a value of the language: lists become arrays of what their first item is."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return ARRAYS[type(value[0])](value) if value else StringArray()
    return value


def _double_array(items: list[Any]) -> DoubleArray:
    return DoubleArray(float(item) for item in items)


ARRAYS: Final[Mapping[type, Any]] = {
    str: StringArray,
    bool: BooleanArray,
    int: LongArray,
    float: _double_array,
    Decimal: _double_array,
}
