"""Why a value does not fit its schema. Only for values that failed to encode: encoding itself checks nothing twice."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from kapelle.schemas.model import Array, Enum, Map, Primitive, Record, Type, Union


class Misfit(msgspec.Struct, frozen=True):
    """The innermost place where a value does not fit."""

    path: str
    expected: str
    found: str


def _fits_utf8(value: object) -> bool:
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value


_SCALARS: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "null": ("None", lambda v: v is None),
    "boolean": ("a bool", lambda v: isinstance(v, bool)),
    "int": ("an int of 32 bits", lambda v: isinstance(v, int) and -(2**31) <= v < 2**31),
    "long": ("an int of 64 bits", lambda v: isinstance(v, int) and -(2**63) <= v < 2**63),
    "double": ("a float", lambda v: isinstance(v, float)),
    "bytes": ("bytes", lambda v: isinstance(v, bytes)),
    "string": ("a str that UTF-8 can hold", _fits_utf8),
}


def misfit(of: Type, value: object, path: str = "") -> Misfit | None:
    """The first place in a value that does not fit its type."""
    expected, fits = _shape(of)
    if not fits(value):
        return Misfit(path, expected, f"{type(value).__name__} {value!r:.60}")
    inner: Iterator[Misfit | None] = iter(())
    match of:
        case Array(items=items) if isinstance(value, tuple | list):
            inner = (misfit(items, item, f"{path}[{n}]") for n, item in enumerate(value))
        case Map(values=values) if isinstance(value, dict):
            inner = (misfit(values, item, f"{path}[{key!r}]") for key, item in value.items())
        case Record(fields=fields):
            dot = f"{path}." if path else ""
            inner = (misfit(f.type, getattr(value, f.name), dot + f.name) for f in fields)
        case Union(branches=branches) if value is not None:
            inner = (misfit(branch, value, path) for branch in branches if branch != Primitive("null"))
    return next((reason for reason in inner if reason is not None), None)


def _shape(of: Type) -> tuple[str, Callable[[object], bool]]:
    """What a value of a type looks like from outside, in words and as a test."""
    match of:
        case Primitive(name=name):
            return _SCALARS[name]
        case Enum(symbols=symbols):
            return f"one of {', '.join(symbols)}", lambda v: isinstance(v, str) and v in symbols
        case Array():
            return "a tuple", lambda v: type(v) in (tuple, list)
        case Map():
            return "a dict by str", lambda v: isinstance(v, dict) and all(map(_fits_utf8, v))
        case Record(name=name, fields=fields):
            return name, lambda v: isinstance(v, msgspec.Struct) and all(hasattr(v, field.name) for field in fields)
    return "anything", lambda _: True
