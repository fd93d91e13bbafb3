"""The ticks of a schedule."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from kapelle.processors.calendar.cron import cron_of
from kapelle.processors.calendar.cron_times import CronTimes
from kapelle.processors.calendar.interval_times import IntervalTimes
from kapelle.processors.calendar.limits import SCHEDULES_CACHED
from kapelle.processors.calendar.schedule import Schedule, ScheduleType


class Times(Protocol):
    """Ticks as instants, in milliseconds since 1970. They end with the year 2199."""

    def next_after(self, at_ms: int) -> int | None:
        """The first tick after that instant, or None if there is none."""

    def last_upto(self, at_ms: int) -> int | None:
        """The last tick that is not after that instant, or None if there is none."""

    def count(self, after_ms: int, upto_ms: int) -> int:
        """How many ticks are after the first instant and not after the second."""


class StartingTimes:
    """The ticks of others, from a start on."""

    def __init__(self, times: Times, start_ms: int) -> None:
        self._times, self._before_ms = times, start_ms - 1

    def next_after(self, at_ms: int) -> int | None:
        """The first tick after that instant, or None if there is none."""
        return self._times.next_after(max(at_ms, self._before_ms))

    def last_upto(self, at_ms: int) -> int | None:
        """The last tick that is not after that instant, or None if there is none."""
        tick_ms = self._times.last_upto(at_ms)
        return tick_ms if tick_ms is not None and tick_ms > self._before_ms else None

    def count(self, after_ms: int, upto_ms: int) -> int:
        """How many ticks are after the first instant and not after the second."""
        return self._times.count(max(after_ms, self._before_ms), upto_ms)


@lru_cache(maxsize=SCHEDULES_CACHED)
def times_of(schedule: Schedule) -> Times:
    """The ticks that a schedule names."""
    times = _all_times_of(schedule)
    return times if schedule.start_ms is None else StartingTimes(times, schedule.start_ms)


def _all_times_of(schedule: Schedule) -> Times:
    match schedule.type:
        case ScheduleType.CRON:
            return CronTimes(cron_of(schedule.cron), schedule.timezone)
        case ScheduleType.INTERVAL:
            return IntervalTimes(schedule.interval_ms, schedule.anchor_ms)
