"""Members of the numbers, of Boolean and of Math."""

import math
import re

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import LONG, NUMBER, STRING, TEXT_OR_LONG, Table, member
from kapelle.processors.sel.values import LONG_MAX, LONG_MIN, double_text

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"\s*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?[fFdD]?)\s*")
NUMBER_CHARS_MAX = 1000


def parsed_long(text: str) -> int:
    """`Long.parseLong`."""
    if _INTEGER.fullmatch(text):
        value = int(text)
        if LONG_MIN <= value <= LONG_MAX:
            return value
    raise BadValue(f"Expected an integer of 64 bits, but found {text[:40]!r}")


def parsed_double(text: str) -> float:
    """`Double.parseDouble`."""
    if len(text) <= NUMBER_CHARS_MAX and _DECIMAL.fullmatch(text):
        return float(text.strip().rstrip("fFdD") if "Inf" not in text and "NaN" not in text else text.strip())
    raise BadValue(f"Expected a number, but found {text[:40]!r}")


def truncated(number: float) -> int:
    """A DOUBLE as LONG: towards zero, the nearest end for what is too large, 0 for NaN."""
    if math.isnan(number):
        return 0
    if number >= 2.0**63:
        return LONG_MAX
    return LONG_MIN if number <= -(2.0**63) else int(number)


def _long_value_of(_: Frame, __: Value, value: str | int) -> int:
    return parsed_long(value) if isinstance(value, str) else value


def _double_value_of(_: Frame, __: Value, value: str | float) -> float:
    return parsed_double(value) if isinstance(value, str) else float(value)


def _pow(_: Frame, __: Value, base: float, exponent: float) -> float:
    base, exponent = float(base), float(exponent)
    if abs(base) == 1.0 and math.isinf(exponent):
        return math.nan  # where Java and C differ
    if base == 1.0 and math.isnan(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            odd = exponent % 2 == 1
            return -math.inf if odd and math.copysign(1.0, base) < 0 else math.inf
        return math.nan


def _random(frame: Frame, _: Value) -> float:
    if frame.host.random is None:
        raise BadValue("Expected a source of random numbers, but none is configured")
    frame.work(5)
    return frame.host.random()


LONG_METHODS: Table = {
    "toString": member(lambda _, n: str(n), ()),
    "intValue": member(lambda _, n: n),
    "longValue": member(lambda _, n: n),
    "doubleValue": member(lambda _, n: float(n)),
}
LONG_STATIC: Table = {
    "toString": member(lambda _, __, n: str(n), (LONG,)),
    "valueOf": member(_long_value_of, (TEXT_OR_LONG,)),
    "parseLong": member(_long_value_of, (STRING,)),
    "parseInt": member(_long_value_of, (STRING,)),
}
DOUBLE_METHODS: Table = {
    "toString": member(lambda _, n: double_text(n), ()),
    "intValue": member(lambda _, n: truncated(n)),
    "longValue": member(lambda _, n: truncated(n)),
    "doubleValue": member(lambda _, n: n),
}
DOUBLE_STATIC: Table = {
    "toString": member(lambda _, __, n: double_text(float(n)), (NUMBER,)),
    "valueOf": member(_double_value_of, (frozenset({str, float, int}),)),
    "parseDouble": member(_double_value_of, (STRING,)),
}
BOOLEAN_METHODS: Table = {}
MATH: Table = {
    "min": member(lambda _, __, a, b: min(a, b), (LONG, LONG)),
    "max": member(lambda _, __, a, b: max(a, b), (LONG, LONG)),
    "pow": member(_pow, (NUMBER, NUMBER)),
    "random": member(_random),
}
NEW: Table = {
    **dict.fromkeys(("Integer", "Long"), member(lambda f, v: _long_value_of(f, None, v), (TEXT_OR_LONG,))),
    **dict.fromkeys(
        ("Float", "Double"), member(lambda f, v: _double_value_of(f, None, v), (frozenset({str, float, int}),))
    ),
    "Boolean": member(lambda _, v: v if v.__class__ is bool else v.lower() == "true", (frozenset({str, bool}),)),
}
