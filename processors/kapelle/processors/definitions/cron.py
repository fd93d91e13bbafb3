"""Cron texts: five fields as UNIX has them, or six and seven as Quartz has them. Only their form is looked at here."""

from __future__ import annotations

import re
from typing import Final

import msgspec

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?")


class Field(msgspec.Struct, frozen=True):
    """The values that one field can take. `special` is what only Quartz knows, as a pattern."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    special: str = r"(?!)"


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
MONTH: Final = Field("month", 1, 12, MONTHS)

UNIX: Final = (MINUTE, HOUR, Field("day of month", 1, 31), MONTH, Field("day of week", 0, 7, DAYS))
QUARTZ: Final = (
    SECOND,
    MINUTE,
    HOUR,
    Field("day of month", 1, 31, special=r"\?|L|LW|L-([1-9]|[12]\d|30)|([1-9]|[12]\d|3[01])W"),
    MONTH,
    Field("day of week", 1, 7, DAYS, special=r"\?|L|([1-7]|[A-Z]{3})(L|#[1-5])"),
    Field("year", 1970, 2199),
)
SHAPES: Final = {5: UNIX, 6: QUARTZ[:6], 7: QUARTZ}


class BadCron(ValueError):
    """A text that names no times; the message says what would be right."""


def check_cron(text: str) -> None:
    """Refuse a text that is no cron, or whose times are less than two minutes apart."""
    parts = text.upper().split()
    shape = SHAPES.get(len(parts))
    if shape is None:
        raise BadCron("five, six or seven fields such as '0 5 * * *'")
    values = {field.name: _values(field, part) for field, part in zip(shape, parts, strict=True)}
    if len(values.get("second", {0})) > 1 or _are_close(values["minute"], values["hour"]):
        raise BadCron("times that are at least two minutes apart")


def _are_close(minutes: frozenset[int], hours: frozenset[int]) -> bool:
    if any(minute + 1 in minutes for minute in minutes):
        return True
    return {0, 59} <= minutes and any((hour + 1) % 24 in hours for hour in hours)


def _values(field: Field, part: str) -> frozenset[int]:
    """The values of a field; those that depend on the month are left out."""
    values: set[int] = set()
    for item in part.split(","):
        if not re.fullmatch(field.special, item):
            values.update(_range(field, item))
    return frozenset(values)


def _range(field: Field, item: str) -> range:
    expected = f"the {field.name} from {field.least} to {field.most}, a range or a step of it, instead of {item[:20]!r}"
    match = _ITEM.fullmatch(item)
    if match is None:
        raise BadCron(expected)
    star, first, last, step = match.groups()
    least = field.least if star else _number(field, first, expected)
    open_end = field.most if star or step else least
    most = open_end if last is None else _number(field, last, expected)
    if most < least or step == "0":
        raise BadCron(expected)
    return range(least, most + 1, int(step or 1))


def _number(field: Field, text: str, expected: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.least
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not field.least <= int(text) <= field.most:
        raise BadCron(expected)
    return int(text)
