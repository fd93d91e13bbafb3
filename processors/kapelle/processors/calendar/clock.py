"""The times that a cron text names on a clock that nobody adjusts, in milliseconds of that clock since 1970."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date
from itertools import product
from typing import Final

from kapelle.processors.calendar.cron import Cron
from kapelle.processors.calendar.days import Month, days_in, month_of
from kapelle.processors.calendar.limits import DAY_MS

EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
MONTHS_OF_YEAR: Final = 12


class Clock:
    """The times of one cron text."""

    def __init__(self, cron: Cron) -> None:
        times = product(cron.hours, cron.minutes, cron.seconds)
        # As an array, because thousands of schedules are kept, and some have hundreds of times in a day.
        self._times = array("i", (((hour * 60 + minute) * 60 + second) * 1000 for hour, minute, second in times))
        self._rules, self._months, self._years = cron.days, cron.months, cron.years
        self._known_years = frozenset(cron.years)
        self._days: dict[Month, tuple[int, ...]] = {}  # there are 28 kinds of months

    def after(self, at_ms: int) -> int | None:
        """The first time after that one."""
        day, rest = divmod(at_ms, DAY_MS)
        if rest < self._times[-1] and self._has(day):
            return day * DAY_MS + self._times[bisect_right(self._times, rest)]
        following = next(self._days_from(day + 1), None)
        return None if following is None else following * DAY_MS + self._times[0]

    def upto(self, at_ms: int) -> int | None:
        """The last time that is not after that one."""
        day, rest = divmod(at_ms, DAY_MS)
        if rest >= self._times[0] and self._has(day):
            return day * DAY_MS + self._times[bisect_right(self._times, rest) - 1]
        previous = next(self._days_back(day - 1), None)
        return None if previous is None else previous * DAY_MS + self._times[-1]

    def count(self, after_ms: int, upto_ms: int) -> int:
        """How many times are after the first and not after the second."""
        if upto_ms <= after_ms:
            return 0
        (first, from_rest), (last, upto_rest) = divmod(after_ms, DAY_MS), divmod(upto_ms, DAY_MS)
        whole = self._count_days(first, last - 1) * len(self._times)  # of the first day up to the day before the last
        skipped = bisect_right(self._times, from_rest) if self._has(first) else 0
        rest = bisect_right(self._times, upto_rest) if self._has(last) else 0
        return whole - skipped + rest

    def _has(self, day: int) -> bool:
        year, month, number = _civil(day)
        return number in self._days_of(year, month)

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        """The days of a month."""
        if month not in self._months or year not in self._known_years:
            return ()
        kind = month_of(year, month)
        days = self._days.get(kind)
        if days is None:
            days = self._days[kind] = days_in(kind, self._rules)
        return days

    def _days_from(self, day: int) -> Iterator[int]:
        """Its days from that one on."""
        year, month, number = _civil(max(day, _first_day(self._years[0], 1)))
        while year <= self._years[-1]:
            days = self._days_of(year, month)
            base = _first_day(year, month) - 1
            for found in days[bisect_left(days, number) :]:
                yield base + found
            year, month, number = (year, month + 1, 1) if month < MONTHS_OF_YEAR else (year + 1, 1, 1)

    def _days_back(self, day: int) -> Iterator[int]:
        """Its days from that one backwards."""
        year, month, number = _civil(min(day, _first_day(self._years[-1] + 1, 1) - 1))
        while year >= self._years[0]:
            days = self._days_of(year, month)
            base = _first_day(year, month) - 1
            for found in reversed(days[: bisect_right(days, number)]):
                yield base + found
            year, month, number = (year, month - 1, 31) if month > 1 else (year - 1, MONTHS_OF_YEAR, 31)

    def _count_days(self, first: int, last: int) -> int:
        """How many of its days are from the first to the last."""
        first, last = max(first, _first_day(self._years[0], 1)), min(last, _first_day(self._years[-1] + 1, 1) - 1)
        if last < first:
            return 0
        (year, month, number), end = _civil(first), _civil(last)
        count = -bisect_left(self._days_of(year, month), number)
        while (year, month) < end[:2]:
            count += len(self._days_of(year, month))
            year, month = (year, month + 1) if month < MONTHS_OF_YEAR else (year + 1, 1)
        return count + bisect_right(self._days_of(year, month), end[2])


def _civil(day: int) -> tuple[int, int, int]:
    found = date.fromordinal(day + EPOCH_DAY)
    return found.year, found.month, found.day


def _first_day(year: int, month: int) -> int:
    return date(year, month, 1).toordinal() - EPOCH_DAY
