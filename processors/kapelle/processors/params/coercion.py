"""How a value becomes a parameter of a type.

| type | takes |
|---|---|
| STRING | a string, number or boolean |
| LONG | an integer of 64 bits, or a string that is one |
| DOUBLE | a number, or a string that is one; a literal stays exact |
| BOOLEAN | a boolean, or "true" or "false" in any case |
| STRING_ARRAY | any array; its elements become strings |
| the other arrays | an array whose elements have, or can take, the element type |
| STRING_MAP | a map of strings, numbers and booleans |
| MAP | a map |

What changes the type leaves a note. Anything else is `NotConvertible`.
"""

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from kapelle.processors.params.errors import NotConvertible
from kapelle.processors.params.types import ParamType, ParamValue
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray
from kapelle.processors.sel.values import KIND_NAMES, LONG_MAX, LONG_MIN, double_text

NUMBER_CHARS_MAX: Final = 1000


class Coerced(msgspec.Struct, frozen=True):
    """A value of the right type, and what had to be done to it, if anything."""

    value: ParamValue
    note: str = ""


def coerced(name: str, kind: ParamType, value: object) -> Coerced:
    """The value as that type."""
    convert = CONVERT[kind]
    try:
        made = convert(value)
    except (TypeError, ValueError, InvalidOperation):
        raise NotConvertible(name, kind.value, found_in_words(value)) from None
    return Coerced(made, "" if _is_natural(kind, value) else f"{found_in_words(value)} was taken as {kind}")


def _is_natural(kind: ParamType, value: object) -> bool:
    if kind in ARRAYS:
        return isinstance(value, ARRAYS[kind]) or type(value) in (list, tuple)
    return type(value) in NATURAL[kind]


def found_in_words(value: object) -> str:
    """The type of a value and, if it is short, the value."""
    kind = KIND_NAMES.get(type(value), "DOUBLE" if isinstance(value, Decimal) else type(value).__name__)
    # A container is shown only if it is small and flat: what is deep or large would cost more than it tells.
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if len(items) > 8 or any(isinstance(item, list | tuple | dict) for item in items):
        return kind
    shown = repr(value[:80] if isinstance(value, str) else value)
    return f"{kind} {shown}" if len(shown) <= 60 else kind


def text_of_scalar(value: object) -> str:
    """A string, number or boolean as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, int | Decimal):
        return str(value)
    raise TypeError


def _long(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError
    if isinstance(value, str) and (len(value) > 40 or "_" in value or not value.isascii() or value != value.strip()):
        raise ValueError
    number = int(value)
    if not LONG_MIN <= number <= LONG_MAX:
        raise ValueError
    return number


def _double(value: object) -> Decimal | float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise TypeError
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise ValueError
        return value
    if isinstance(value, str) and (len(value) > NUMBER_CHARS_MAX or "_" in value or not value.isascii()):
        raise ValueError
    number = Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > NUMBER_CHARS_MAX:
        raise ValueError
    return number


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise TypeError


def _array(make: type[list[object]], element: Callable[[object], object]) -> Callable[[object], object]:
    def convert(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise TypeError
        return make(element(item) for item in value)

    return convert


def _string_map(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TypeError
    return {str(key): text_of_scalar(item) for key, item in value.items()}


def _map(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError
    return value


CONVERT: Final[dict[ParamType, Callable[[Any], Any]]] = {
    ParamType.STRING: text_of_scalar,
    ParamType.LONG: _long,
    ParamType.DOUBLE: _double,
    ParamType.BOOLEAN: _boolean,
    ParamType.STRING_ARRAY: _array(StringArray, text_of_scalar),
    ParamType.LONG_ARRAY: _array(LongArray, _long),
    ParamType.DOUBLE_ARRAY: _array(DoubleArray, lambda item: float(_double(item))),
    ParamType.BOOLEAN_ARRAY: _array(BooleanArray, _boolean),
    ParamType.STRING_MAP: _string_map,
    ParamType.MAP: _map,
}
# What needs no note.
NATURAL: Final[dict[ParamType, tuple[type, ...]]] = {
    ParamType.STRING: (str,),
    ParamType.LONG: (int,),
    ParamType.DOUBLE: (float, Decimal),
    ParamType.BOOLEAN: (bool,),
    ParamType.STRING_MAP: (dict,),
    ParamType.MAP: (dict,),
}
ARRAYS: Final[dict[ParamType, type]] = {
    ParamType.STRING_ARRAY: StringArray,
    ParamType.LONG_ARRAY: LongArray,
    ParamType.DOUBLE_ARRAY: DoubleArray,
    ParamType.BOOLEAN_ARRAY: BooleanArray,
}
