"""A naive reading of time triggers: every minute is looked at, on the clock of the zone. No code of the engine is used.

It knows numbers, lists, ranges and steps, `*` and `?`, the names of weekdays, and zones whose clocks are set by whole
minutes. That is enough for the schedules of the proof.
"""

import json
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

DAY_MS: Final = 86_400_000
MINUTE_MS: Final = 60_000
MINUTE: Final = timedelta(minutes=1)
MINUTES_OF_DAY: Final = 1_440
DAYS: Final = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
PREDEFINED: Final = {"@hourly": "0 * * * *", "@daily": "0 0 * * *"}
NEXT_DAYS_MAX: Final = 8  # in which each schedule of the proof has a time


class Written(NamedTuple):
    """The times of a trigger: a cron text on the clock of a zone, or an interval."""

    cron: str = ""
    zone: str = "UTC"
    interval_ms: int = 0
    anchor_ms: int = 0
    start_ms: int | None = None


class Terms(NamedTuple):
    """What a trigger says besides its times."""

    catch_up: str
    fuzzy_max_delay_ms: int


def of_definition(trigger: dict[str, Any]) -> tuple[Written, Terms]:
    """A time trigger of a definition. Durations are numbers of seconds here, and instants milliseconds."""
    terms = Terms(trigger.get("catch_up", "LATEST"), int(trigger.get("fuzzy_max_delay") or 0) * 1_000)
    zone, start = trigger.get("timezone", "UTC"), trigger.get("start")
    if trigger["type"] == "INTERVAL":
        anchor = trigger.get("anchor", start or 0)
        return Written("", zone, int(trigger["interval"]) * 1_000, anchor, start), terms
    cron = PREDEFINED[trigger["expression"]] if trigger["type"] == "PREDEFINED" else trigger["cron"]
    return Written(cron, zone, start_ms=start), terms


def of_schedule(text: str) -> Written:
    """The schedule of an event."""
    found = json.loads(text)
    return Written(
        found.get("cron", ""),
        found.get("timezone", "UTC"),
        found.get("interval_ms", 0),
        found.get("anchor_ms", 0),
        found.get("start_ms"),
    )


def ticks(written: Written, after_ms: int, upto_ms: int) -> list[int]:
    """The scheduled times after the first instant and not after the second."""
    found: list[int] = []
    for day in range(after_ms // DAY_MS, upto_ms // DAY_MS + 1):
        of_day = _of_day(written, day)
        if of_day and after_ms < of_day[-1] and of_day[0] <= upto_ms:
            found += of_day[bisect_right(of_day, after_ms) : bisect_right(of_day, upto_ms)]
    return found


def next_after(written: Written, after_ms: int) -> int | None:
    """The next scheduled time, if there is one soon."""
    for days in range(NEXT_DAYS_MAX):
        found = ticks(written, max(after_ms, after_ms + days * DAY_MS), after_ms + (days + 1) * DAY_MS)
        if found:
            return found[0]
    return None


@lru_cache(maxsize=100_000)
def _of_day(written: Written, day: int) -> tuple[int, ...]:
    """The scheduled times of a day of UTC."""
    start_ms = day * DAY_MS
    found = _intervals(written, start_ms) if written.interval_ms else _cron(written, start_ms)
    return tuple(tick for tick in found if tick >= (written.start_ms or 0))


def _intervals(written: Written, start_ms: int) -> list[int]:
    first = start_ms + (written.anchor_ms - start_ms) % written.interval_ms
    return list(range(first, start_ms + DAY_MS, written.interval_ms))


def _cron(written: Written, start_ms: int) -> list[int]:
    fields, clock = _fields(written.cron), _clock(written.zone, start_ms // DAY_MS)
    found: set[int] = set()
    for minute in range(MINUTES_OF_DAY):
        instant = start_ms + minute * MINUTE_MS
        before, (shown, is_again) = clock[minute][0], clock[minute + 1]
        if not fields.is_hourly:
            skipped = before + MINUTE
            while skipped < shown:
                if fields.names(skipped):
                    found.add(instant)  # the gap ends here
                skipped += MINUTE
        if fields.names(shown) and (fields.is_hourly or not is_again):
            found.add(instant + fields.second * 1_000)
    return sorted(found)


@lru_cache(maxsize=2_000)
def _clock(zone: str, day: int) -> list[tuple[datetime, bool]]:
    """What the clock shows at each minute of a day and the one before, and whether it has shown that before."""
    begin = datetime.fromtimestamp(day * DAY_MS // 1_000, UTC)
    shown = [(begin + minute * MINUTE).astimezone(ZoneInfo(zone)) for minute in range(-1, MINUTES_OF_DAY)]
    return [(at.replace(tzinfo=None, fold=0), at.fold == 1) for at in shown]


class Fields(NamedTuple):
    """A cron text, as sets."""

    second: int
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    @property
    def is_hourly(self) -> bool:
        return len(self.hours) == 24

    def names(self, at: datetime) -> bool:
        return (
            at.minute in self.minutes
            and at.hour in self.hours
            and at.day in self.days
            and at.month in self.months
            and at.weekday() in self.weekdays
        )


@lru_cache(maxsize=10_000)
def _fields(cron: str) -> Fields:
    parts = cron.upper().split()
    second = int(parts.pop(0)) if len(parts) == 6 else 0
    minute, hour, day, month, weekday = parts
    for number, name in enumerate(DAYS):
        weekday = weekday.replace(name, str(number))
    return Fields(
        second, _set(minute, 0, 59), _set(hour, 0, 23), _set(day, 1, 31), _set(month, 1, 12), _set(weekday, 0, 6)
    )


def _set(text: str, least: int, most: int) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = least if first in ("*", "?") else int(first)
        end = int(last) if last else most if first in ("*", "?") or step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)
