"""The arithmetic of time triggers: which instants a schedule names. It is pure, and described in decision 41."""

from kapelle.processors.calendar.cron import BadCron, check_cron, cron_of, shortest_gap_ms
from kapelle.processors.calendar.fuzz import fuzz_ms
from kapelle.processors.calendar.limits import APART_MS_MIN, YEAR_FIRST, YEAR_LAST
from kapelle.processors.calendar.schedule import Schedule, ScheduleType, normalised, schedule_of
from kapelle.processors.calendar.times import Times, times_of

__all__ = [
    "APART_MS_MIN",
    "YEAR_FIRST",
    "YEAR_LAST",
    "BadCron",
    "Schedule",
    "ScheduleType",
    "Times",
    "check_cron",
    "cron_of",
    "fuzz_ms",
    "normalised",
    "schedule_of",
    "shortest_gap_ms",
    "times_of",
]
