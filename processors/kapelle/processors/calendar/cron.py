"""Cron texts: five fields as UNIX has them, or six and seven as Quartz has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, product
from typing import Final

import msgspec

from kapelle.processors.calendar.days import (
    EVERY_DAY,
    SATURDAY,
    Dates,
    FromEnd,
    LastWeekday,
    NearDate,
    NthWeekday,
    Rule,
    Weekdays,
    days_in,
    month_of,
)
from kapelle.processors.calendar.limits import DAY_MS, SCHEDULES_CACHED, YEAR_FIRST, YEAR_LAST

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
HOURS_OF_DAY: Final = 24
EXPECTED: Final = "five, six or seven fields such as '0 5 * * *'"
_ITEM = re.compile(r"(?:(\*|(?=/))|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?")  # `/5` is `*/5`

# What an item of a day field that only Quartz knows means, from the match of its pattern.
Special = Mapping[re.Pattern[str], Callable[[re.Match[str]], Rule]]


class Field(msgspec.Struct, frozen=True):
    """The values that one field can take."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    wraps: bool = False  # whether a range may go on from the greatest value to the least


class Cron(msgspec.Struct, frozen=True):
    """What a cron text says. A day is named if any of its rules names it."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[Rule, ...]
    months: tuple[int, ...]
    years: tuple[int, ...]

    @property
    def is_hourly(self) -> bool:
        """Whether it names a time in every hour of the day."""
        return len(self.hours) == HOURS_OF_DAY


class BadCron(ValueError):
    """A text that names no times; the message says what would be right."""


UNIX: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, MONTHS),
    Field("day of week", 0, 7, DAYS),
)
QUARTZ: Final = (
    Field("second", 0, 59, wraps=True),
    Field("minute", 0, 59, wraps=True),
    Field("hour", 0, 23, wraps=True),
    Field("day of month", 1, 31, wraps=True),
    Field("month", 1, 12, MONTHS, wraps=True),
    Field("day of week", 1, 7, DAYS, wraps=True),
    Field("year", YEAR_FIRST, YEAR_LAST),
)


def check_cron(text: str) -> None:
    """Refuse a text that is no cron, that names no time, or whose times are less than two minutes apart."""
    cron = cron_of(text)
    if len(cron.seconds) > 1 or _are_close(cron.minutes, cron.hours):
        raise BadCron("times that are at least two minutes apart")
    months = {month_of(year, month) for year in cron.years for month in cron.months}
    if not any(days_in(month, cron.days) for month in months):
        raise BadCron(f"a day that exists in at least one of the years from {YEAR_FIRST} to {YEAR_LAST}")


def shortest_gap_ms(cron: Cron) -> int:
    """The shortest distance between two times of a cron text, if it named every day."""
    times = [((hour * 60 + minute) * 60 + second) * 1000 for hour, minute, second in _times_of_day(cron)]
    return min(after - before for before, after in pairwise([*times, times[0] + DAY_MS]))


def _times_of_day(cron: Cron) -> Iterator[tuple[int, int, int]]:
    return product(cron.hours, cron.minutes, cron.seconds)


def _are_close(minutes: tuple[int, ...], hours: tuple[int, ...]) -> bool:
    if any(minute + 1 in minutes for minute in minutes):
        return True
    return {0, 59} <= set(minutes) and any((hour + 1) % HOURS_OF_DAY in hours for hour in hours)


@lru_cache(maxsize=SCHEDULES_CACHED)
def cron_of(text: str) -> Cron:
    """Read a cron text."""
    parts = text.upper().split()
    if len(parts) == len(UNIX):
        return _unix(parts)
    if len(parts) in (len(QUARTZ) - 1, len(QUARTZ)):
        return _quartz(parts)
    raise BadCron(EXPECTED)


def _unix(parts: list[str]) -> Cron:
    minutes, hours, dates, months, weekdays = (_values(f, p) for f, p in zip(UNIX, parts, strict=True))
    by_date = Dates(frozenset(dates))
    by_weekday = Weekdays(frozenset(day % len(DAYS) for day in weekdays))
    rules: list[Rule] = [rule for rule, part in ((by_date, parts[2]), (by_weekday, parts[4])) if part != "*"]
    return Cron((0,), minutes, hours, tuple(rules) or (EVERY_DAY,), months, _values(QUARTZ[6], "*"))


def _quartz(parts: list[str]) -> Cron:
    second, minute, hour, date, month, weekday, year = QUARTZ
    dates, weekdays = _rules(date, parts[3], OF_MONTH), _rules(weekday, parts[5], OF_WEEK)
    made = Cron(
        _values(second, parts[0]),
        _values(minute, parts[1]),
        _values(hour, parts[2]),
        (*dates, *weekdays),
        _values(month, parts[4]),
        _values(year, parts[6] if len(parts) == len(QUARTZ) else "*"),
    )
    if (parts[3] == "?") == (parts[5] == "?"):
        raise BadCron("'?' as the day of month or as the day of week, and not as both")
    return made


def _rules(field: Field, part: str, special: Special) -> Iterator[Rule]:
    """The rules of a day field of Quartz. Plain values are one rule together."""
    if part == "?":
        return
    plain: set[int] = set()
    for item in part.split(","):
        found = [(match, make) for pattern, make in special.items() if (match := pattern.fullmatch(item))]
        for match, make in found:
            yield make(match)
        if not found:
            plain.update(_range(field, item))
    if plain:
        yield Dates(frozenset(plain)) if special is OF_MONTH else Weekdays(frozenset(day - 1 for day in plain))


def _weekday(text: str) -> int:
    return DAYS.index(text) if text in DAYS else int(text) - 1


OF_MONTH: Final[Special] = {
    re.compile(r"L(?:-([1-9]|[12]\d|30))?(W?)"): lambda m: FromEnd(int(m[1] or 0), m[2] == "W"),
    re.compile(r"([1-9]|[12]\d|3[01])W"): lambda m: NearDate(int(m[1])),
}
_DAY: Final = f"([1-7]|{'|'.join(DAYS)})"
OF_WEEK: Final[Special] = {
    re.compile("L"): lambda _: Weekdays(frozenset({SATURDAY})),
    re.compile(f"{_DAY}L"): lambda m: LastWeekday(_weekday(m[1])),
    re.compile(f"{_DAY}#([1-5])"): lambda m: NthWeekday(_weekday(m[1]), int(m[2])),
}


def _values(field: Field, part: str) -> tuple[int, ...]:
    return tuple(sorted({value for item in part.split(",") for value in _range(field, item)}))


def _range(field: Field, item: str) -> Iterator[int]:
    expected = f"the {field.name} from {field.least} to {field.most}, a range or a step of it, instead of {item[:20]!r}"
    match = _ITEM.fullmatch(item)
    if match is None:
        raise BadCron(expected)
    star, first, last, step = match.groups()
    least = _number(field, first, expected) if star is None else field.least
    open_end = least if star is None and not step else field.most
    most = open_end if last is None else _number(field, last, expected)
    if last == DAYS[0] and least and field.most == len(DAYS) and not field.wraps:
        most = field.most  # of UNIX: Sunday ends a week as 7
    if step and not 1 <= int(step) <= field.most:
        raise BadCron(expected)
    size = field.most - field.least + 1
    if most < least:
        if not field.wraps:
            raise BadCron(expected)
        most += size
    return ((value - field.least) % size + field.least for value in range(least, most + 1, int(step or 1)))


def _number(field: Field, text: str, expected: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.least
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not field.least <= int(text) <= field.most:
        raise BadCron(expected)
    return int(text)
