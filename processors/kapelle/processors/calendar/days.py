"""The days of a month that a cron text names. They depend only on the length of the month and on its first weekday.

Weekdays are numbers from 0, Sunday, to 6, Saturday.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

SUNDAY: Final = 0
SATURDAY: Final = 6
WEEK_DAYS: Final = 7
MONTHS_CACHED: Final = 4_096  # of the years from 1970 to 2199 all


class Month(msgspec.Struct, frozen=True):
    """What is to know of a month."""

    first_weekday: int
    length: int

    def weekday(self, day: int) -> int:
        """The weekday of a day of it."""
        return (self.first_weekday + day - 1) % WEEK_DAYS

    def first(self, weekday: int) -> int:
        """The first day of it that is that weekday."""
        return (weekday - self.first_weekday) % WEEK_DAYS + 1

    def working_day(self, day: int) -> int:
        """The day from Monday to Friday that is nearest, within the month."""
        weekday = self.weekday(day)
        if weekday == SATURDAY:
            return day - 1 if day > 1 else day + 2
        if weekday == SUNDAY:
            return day + 1 if day < self.length else day - 2
        return day


@lru_cache(maxsize=MONTHS_CACHED)
def month_of(year: int, month: int) -> Month:
    """A month of the Gregorian calendar."""
    weekday, length = monthrange(year, month)
    return Month((weekday + 1) % WEEK_DAYS, length)


class Dates(msgspec.Struct, frozen=True, tag=True):
    """`1,15-20`: days by number."""

    days: frozenset[int]


class NearDate(msgspec.Struct, frozen=True, tag=True):
    """`15W`: the working day nearest to a day."""

    day: int


class FromEnd(msgspec.Struct, frozen=True, tag=True):
    """`L`, `L-3`, `LW`: a day counted from the end, or the working day nearest to it."""

    before: int
    is_working: bool


class Weekdays(msgspec.Struct, frozen=True, tag=True):
    """`MON-FRI`: days of every week."""

    weekdays: frozenset[int]


class LastWeekday(msgspec.Struct, frozen=True, tag=True):
    """`6L`: the last such weekday."""

    weekday: int


class NthWeekday(msgspec.Struct, frozen=True, tag=True):
    """`6#3`: such a weekday, counted from the first."""

    weekday: int
    nth: int


Rule = Dates | NearDate | FromEnd | Weekdays | LastWeekday | NthWeekday

EVERY_DAY = Dates(frozenset(range(1, 32)))


def days_in(month: Month, rules: tuple[Rule, ...]) -> tuple[int, ...]:
    """The days of the month that at least one rule names, in their order."""
    found = {day for rule in rules for day in _days(rule, month)}
    return tuple(sorted(day for day in found if 1 <= day <= month.length))


def _days(rule: Rule, month: Month) -> Iterator[int]:
    match rule:
        case Dates(days):
            yield from days
        case NearDate(day):
            if day <= month.length:
                yield month.working_day(day)
        case FromEnd(before, is_working):
            day = month.length - before
            if day >= 1:
                yield month.working_day(day) if is_working else day
        case Weekdays(weekdays):
            for weekday in weekdays:
                yield from range(month.first(weekday), month.length + 1, WEEK_DAYS)
        case LastWeekday(weekday):
            yield month.length - (month.weekday(month.length) - weekday) % WEEK_DAYS
        case NthWeekday(weekday, nth):
            yield month.first(weekday) + (nth - 1) * WEEK_DAYS
