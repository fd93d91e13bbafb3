"""A schedule: what names times, and nothing else. It is known by its content, as a trigger is."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from hashlib import sha256

import msgspec

from kapelle.processors.calendar.limits import SCHEDULES_CACHED


class ScheduleType(StrEnum):
    """How the times of a schedule are written."""

    CRON = "CRON"
    INTERVAL = "INTERVAL"


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times, by a cron text read on the clock of a zone, or by an interval of elapsed time."""

    type: ScheduleType
    cron: str = ""  # as `normalised` has it
    timezone: str = "UTC"
    interval_ms: int = 0
    anchor_ms: int = 0  # an interval has its times at anchor + k * interval, for every integer k
    start_ms: int | None = None  # no time before it

    def json(self) -> str:
        """As text, always the same for the same schedule."""
        return msgspec.json.encode(self, order="sorted").decode()

    @property
    def id(self) -> str:
        """The name that it has by its content."""
        return sha256(self.json().encode()).hexdigest()[:16]


@lru_cache(maxsize=SCHEDULES_CACHED)
def schedule_of(text: str) -> Schedule:
    """Read a schedule."""
    return msgspec.json.decode(text, type=Schedule)


def normalised(cron: str) -> str:
    """A cron text in upper case, with single blanks."""
    return " ".join(cron.upper().split())
