"""The values of the language as Python objects, their type names, and their text.

| SEL | Python |
|---|---|
| STRING, LONG, DOUBLE, BOOLEAN, NULL | str, int (64 bits), float, bool, None |
| the four arrays | a subclass of list for each |
| MAP | dict with str keys; an entry may be the `Cell` of a variable |
| VOID | the constant `VOID` |

All checks are `x.__class__ is int` and the like, never isinstance: True is an int to isinstance, and not to us.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import ClassVar

from kapelle.processors.sel.errors import BadValue, InvalidResult, LimitExceeded, TypeMismatch
from kapelle.processors.sel.limits import Frame, Value

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1
VALUE_DEPTH_MAX = 64


class Array(list[Value]):
    """An array of one element type."""

    __slots__ = ()
    kind: ClassVar[str]
    element: ClassVar[type]
    default: ClassVar[Value]


class StringArray(Array):
    """STRING_ARRAY. Its elements may be null until the result is taken."""

    __slots__ = ()
    kind, element, default = "STRING_ARRAY", str, None


class LongArray(Array):
    """LONG_ARRAY."""

    __slots__ = ()
    kind, element, default = "LONG_ARRAY", int, 0


class DoubleArray(Array):
    """DOUBLE_ARRAY."""

    __slots__ = ()
    kind, element, default = "DOUBLE_ARRAY", float, 0.0


class BooleanArray(Array):
    """BOOLEAN_ARRAY."""

    __slots__ = ()
    kind, element, default = "BOOLEAN_ARRAY", bool, False


ARRAYS: dict[type, type[Array]] = {a.element: a for a in (StringArray, LongArray, DoubleArray, BooleanArray)}


class Cell:
    """The place of a variable that a map refers to: assigning to the variable changes the map's entry."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Void:
    """The value of a statement that has none."""

    __slots__ = ()


VOID = Void()

KIND_NAMES: dict[type, str] = {
    str: "STRING",
    int: "LONG",
    float: "DOUBLE",
    bool: "BOOLEAN",
    dict: "MAP",
    type(None): "NULL",
    Void: "VOID",
    **{a: a.kind for a in ARRAYS.values()},
}
SCALARS = frozenset({str, int, float, bool})
# The kinds whose variables may be null, as in Java.
PRIMITIVES = frozenset({int, float, bool})


def kind_of(value: Value) -> str:
    """The type name of a value, for messages and results."""
    return KIND_NAMES.get(value.__class__) or str(value.__class__.__name__)


def wrap(number: int) -> int:
    """A LONG overflows as in Java: it wraps at 64 bits."""
    return ((number + 2**63) & (2**64 - 1)) - 2**63


def double_text(number: float) -> str:
    """A DOUBLE as Java prints it: 1.0, 1.0E10, NaN, Infinity."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    magnitude = abs(number)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        text = repr(number)
        return text if "e" not in text else f"{number:.10f}".rstrip("0")
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(magnitude).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1
    if whole == "0":
        power = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0"))) - 1
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def text_of(frame: Frame, value: Value, depth: int = 0) -> str:
    """The text that a value becomes when it is joined to a string."""
    scalar = _TEXTS.get(value.__class__)
    if scalar is not None:
        return scalar(value)
    if depth > VALUE_DEPTH_MAX:
        raise LimitExceeded("stack_depth", VALUE_DEPTH_MAX)
    if value.__class__ is Cell:
        return text_of(frame, value.value, depth)
    if value.__class__ is dict:
        frame.work(len(value))
        frame.text(sum(map(len, value)))
        parts = [f"{key}={_counted(frame, item, depth)}" for key, item in value.items()]
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, Array):
        return f"[{', '.join(_counted(frame, item, depth) for item in value)}]"
    made = getattr(value, "sel_text", None)
    if made is None:
        raise TypeMismatch(f"Expected a value that has a text, but found {kind_of(value)}")
    return str(made())


_TEXTS: dict[type, Callable[[Value], str]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: double_text,
    type(None): lambda _: "null",
}


def _counted(frame: Frame, item: Value, depth: int) -> str:
    text = text_of(frame, item, depth + 1)
    # Counted part by part: shared maps could make a text that is exponential in their number.
    frame.text(len(text) + 2)
    return text


def box(frame: Frame, value: Value, depth: int = 0) -> Value:
    """An input as a value of the language. Lists and maps are copied, so that no expression changes its inputs."""
    cls = value.__class__
    if cls in SCALARS:
        if cls is int and not LONG_MIN <= value <= LONG_MAX:
            raise BadValue("Expected an integer of 64 bits, but the parameter's value is larger")
        return value
    if value is None:
        return None
    if depth > VALUE_DEPTH_MAX:
        raise LimitExceeded("stack_depth", VALUE_DEPTH_MAX)
    if isinstance(value, dict):
        frame.spend(32 + 64 * len(value))
        frame.work(len(value))
        return {str(key): box(frame, item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return _box_list(frame, value)
    as_float = getattr(value, "__float__", None)  # Decimal: exact in the definition, DOUBLE in an expression
    if as_float is not None:
        return float(as_float())
    if value.__class__ in KIND_NAMES:
        return value
    raise TypeMismatch(f"Expected a parameter value, but found a Python {cls.__name__}")


def _box_list(frame: Frame, items: list[Value] | tuple[Value, ...]) -> Array:
    frame.spend(32 + 8 * len(items))
    frame.work(len(items) // 16)
    if isinstance(items, Array):
        return items.__class__(items)
    frame.work(len(items))
    boxed = [box(frame, item, VALUE_DEPTH_MAX) for item in items]
    kinds = {item.__class__ for item in boxed if item is not None}
    if kinds == {int, float}:
        return DoubleArray(float(item) for item in boxed)
    element = kinds.pop() if len(kinds) == 1 else str if not kinds else None
    if element not in ARRAYS or (None in boxed and element is not str):
        raise TypeMismatch("Expected an array of strings, integers, decimals or booleans, but its elements differ")
    return ARRAYS[element](boxed)


def result_of(frame: Frame, value: Value, depth: int = 0) -> Value:
    """The value as plain Python: no cells, no nulls, nothing that a parameter cannot hold."""
    cls = value.__class__
    if cls in SCALARS:
        return value
    if cls is Cell:
        return result_of(frame, value.value, depth)
    if depth > VALUE_DEPTH_MAX:
        raise LimitExceeded("stack_depth", VALUE_DEPTH_MAX)
    if cls is dict:
        frame.spend(32 + 64 * len(value))
        frame.work(len(value))
        return {key: result_of(frame, item, depth + 1) for key, item in value.items()}
    if isinstance(value, Array):
        frame.work(len(value) // 16)
        if None in value:
            raise InvalidResult(
                f"Expected every element to be set, but element {value.index(None)} is null", type_name=value.kind
            )
        frame.spend(32 + 8 * len(value))
        return value.__class__(value)
    name = kind_of(value)
    hint = RESULT_HINTS.get(name, "")
    raise InvalidResult(f"Expected a value that a parameter can hold, but found {name}", type_name=name, hint=hint)


RESULT_HINTS = {
    "NULL": "is a name misspelt, or a map's key missing?",
    "VOID": "end with an expression or a return",
    "DATETIME": "use getMillis() or toString(pattern)",
    "UUID": "use toString()",
    "DATETIME_DAYS": "use getDays()",
    "DATETIME_PROPERTY": "use get() or getAsText()",
}


def json_of(frame: Frame, value: Value) -> str:
    """The value as compact JSON, as `Util.toJson` and interpolation write it."""
    plain = result_of(frame, value)
    frame.text(json_size(plain))
    return json_text(plain)


def json_size(value: Value) -> int:
    """At least the length of the value's JSON, counted without making it."""
    if value.__class__ is str:
        return 6 * len(value) + 2
    if value.__class__ is dict:
        return 2 + sum(6 * len(key) + 4 + json_size(item) for key, item in value.items())
    if isinstance(value, list):
        return 2 + sum(json_size(item) + 1 for item in value)
    return 26


# Their elements need no form of their own, so the whole array is written at once.
WRITTEN_AS_THEY_ARE = frozenset({StringArray, LongArray, BooleanArray})
_encode: Callable[[Value], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_least(value: Value) -> int:
    """At most the length of the value's JSON, counted without making it: strings without their escapes."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return 1 + sum(len(str(key)) + 4 + json_least(item) for key, item in value.items())
    if isinstance(value, StringArray):
        return 1 + 3 * len(value) + sum(map(len, filter(None, value)))
    if isinstance(value, Array):
        return 1 + 2 * len(value)
    if isinstance(value, list | tuple):
        return 1 + sum(json_least(item) + 1 for item in value)
    return 1


def json_text(value: Value) -> str:
    """Compact JSON in which a DOUBLE is written as Java writes it."""
    cls = value.__class__
    if cls is int:
        return str(value)
    if cls is float:
        return double_text(value) if math.isfinite(value) else f'"{double_text(value)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{_encode(str(k))}:{json_text(v)}" for k, v in value.items()) + "}"
    if cls in WRITTEN_AS_THEY_ARE:
        return _encode(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    if cls in SCALARS or value is None:
        return _encode(value)
    return str(value)
