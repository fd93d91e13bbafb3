"""Parameters in YAML: `[!]name[<type>][(mode)]: value` becomes a definition.

| value | type, if none is written |
|---|---|
| text, an integer, a number with a point, true or false | STRING, LONG, DOUBLE, BOOLEAN |
| a list | the array of its elements' type; STRING_ARRAY if it is empty |
| an object whose values are all text | STRING_MAP |
| any other object | MAP; its entries are parameters again |
| with `!` before the name: an expression | STRING |
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from kapelle.processors.definitions.problems import Report, at, shown
from kapelle.processors.params import ParamType

Raw = dict[str, Any]
_KEY = re.compile(r"(!)?([^<>()!\s]+)(?:<\s*([^()]+?)\s*>)?(?:\(\s*(\w+)\s*\))?")
SCALARS: Final = {str: ParamType.STRING, int: ParamType.LONG, Decimal: ParamType.DOUBLE, bool: ParamType.BOOLEAN}
ARRAYS: Final = {
    ParamType.STRING: ParamType.STRING_ARRAY,
    ParamType.LONG: ParamType.LONG_ARRAY,
    ParamType.DOUBLE: ParamType.DOUBLE_ARRAY,
    ParamType.BOOLEAN: ParamType.BOOLEAN_ARRAY,
}
TYPES: Final = {
    **{kind.value.lower(): kind for kind in ARRAYS},
    **{f"array<{kind.value.lower()}>": array for kind, array in ARRAYS.items()},
    "map": ParamType.STRING_MAP,
    "pmap": ParamType.MAP,
}
# A whole number is a number with a point too, and an empty list or object can be of any such type.
WIDER: Final = {
    (ParamType.LONG, ParamType.DOUBLE),
    (ParamType.LONG_ARRAY, ParamType.DOUBLE_ARRAY),
    (ParamType.STRING_MAP, ParamType.MAP),
}


def params_of(raw: Raw, path: str, report: Report) -> Raw:
    """The definitions of all parameters of an object."""
    made: Raw = {}
    for key, value in raw.items():
        match = _KEY.fullmatch(key)
        if match is None:
            report.add(at(path, key), key, "a parameter such as 'rows', '!rows<long>' or 'rows<array<long>>(constant)'")
            continue
        name = match[2]
        if name in made:
            report.add(at(path, key), name, "each parameter once")
        made[name] = _definition(match, value, at(path, key), report)
    return made


def _definition(match: re.Match[str], value: object, path: str, report: Report) -> Raw:
    is_expression, _, written, mode = match.groups()
    declared = TYPES.get(written.lower().replace(" ", "")) if written else None
    if written and declared is None:
        report.add(path, written, f"one of the types {', '.join(TYPES)}")
    extra = {"mode": mode.upper()} if mode else {}
    if is_expression:
        if not isinstance(value, str):
            report.add(path, value, "an expression, because the name begins with '!'")
        return {"type": (declared or ParamType.STRING).value, "expression": str(value), **extra}
    kind = _kind(value, declared, path, report)
    literal = params_of(value, path, report) if kind is ParamType.MAP and isinstance(value, dict) else value
    return {"type": kind.value, "value": literal, **extra}


def _kind(value: object, declared: ParamType | None, path: str, report: Report) -> ParamType:
    inferred = _inferred(value)
    if inferred is None:
        report.add(path, value, "a value with a clear type: no null, and lists of one type")
        return declared or ParamType.STRING
    is_empty = value in ([], {}) and declared is not None and ("ARRAY" in declared) == isinstance(value, list)
    if declared in (None, inferred) or (inferred, declared) in WIDER or is_empty:
        return declared or inferred
    report.note(path, f"{shown(value)}, which is {inferred}", f"a value of type {declared}")
    return inferred


def _inferred(value: object) -> ParamType | None:
    if isinstance(value, list):
        if not value:
            return ParamType.STRING_ARRAY
        kinds = {SCALARS.get(type(item)) for item in value}
        if kinds == {ParamType.LONG, ParamType.DOUBLE}:
            return ParamType.DOUBLE_ARRAY
        return ARRAYS.get(kinds.pop() or ParamType.MAP) if len(kinds) == 1 else None
    if isinstance(value, dict):
        is_text = bool(value) and all(isinstance(item, str) for item in value.values())
        is_plain = not any(key.startswith("!") or "<" in key or "(" in key for key in value)
        return ParamType.STRING_MAP if is_text and is_plain else ParamType.MAP
    return SCALARS.get(type(value))
