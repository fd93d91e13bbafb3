"""Times that people ask for: a schedule from a cron text or an interval, a period from dates, the times to expect.

A time without an offset is one of the clock of a zone. If the clock skips it, the end of the gap is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from kapelle.processors.calendar import YEAR_FIRST, YEAR_LAST, Schedule, ScheduleType, Times, times_of
from kapelle.processors.definitions.models import PREDEFINED, TimeTrigger, TimeTriggerType
from kapelle.processors.definitions.problems import Report
from kapelle.processors.definitions.time_triggers import check_time_triggers, schedule_from
from kapelle.processors.definitions.zones import is_zone
from kapelle.processors.moments import utc_text
from kapelle.processors.sel.joda.zone import Zone, zone_of

DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
WEEKDAYS: Final = ("THU", "FRI", "SAT", "SUN", "MON", "TUE", "WED")  # from 1 January 1970 on
ZONE_DEFAULT: Final = "UTC"
EPOCH: Final = datetime(YEAR_FIRST, 1, 1)
END_MS: Final = (datetime(YEAR_LAST + 1, 1, 1) - EPOCH) // timedelta(milliseconds=1)
MOMENT: Final = (
    f"an ISO date or date-time in the years from {YEAR_FIRST} to {YEAR_LAST}, such as 2026-01-31 or "
    "2026-01-31T12:00, or milliseconds since 1970"
)


class BadTimes(ValueError):
    """What was asked for names no times. `errors` are all problems, each with its field."""

    def __init__(self, *errors: str) -> None:
        self.errors = errors
        super().__init__("; ".join(errors))


class Previewed(msgspec.Struct, frozen=True):
    """A time of a schedule. `note` says what a change of the clock means for it."""

    scheduled_at: int
    utc: str
    local: str
    note: str | None = None


# Schedules ------------------------------------------------------------------------------------------------------------


def schedule_asked(
    cron: str | None, interval: str | int | None, timezone: str | None, *, anchor_ms: int | None = None
) -> Schedule:
    """The schedule of a cron text, a name such as `@daily`, or an interval. Expects one of them."""
    if (cron is None) == (interval is None):
        found = "none" if cron is None else "both"
        raise BadTimes(f"Expected a cron text or an interval, but found {found}")
    trigger = TimeTrigger(
        type=TimeTriggerType.INTERVAL if cron is None else TimeTriggerType.CRON,
        cron="" if cron is None else _spelled_out(cron),
        timezone=timezone or ZONE_DEFAULT,
        interval=interval,
        anchor=anchor_ms if cron is None else None,
    )
    report = Report()
    check_time_triggers((trigger,), "", report)
    if report.problems:
        said = [f"{each.path.rpartition('.')[2]}: Expected {each.expected}" for each in report.problems]
        raise BadTimes(*(f"{text}, but found {each.value}" for text, each in zip(said, report.problems, strict=True)))
    return schedule_from(trigger)


def _spelled_out(cron: str) -> str:
    if not cron.startswith("@"):
        return cron
    named = PREDEFINED.get(cron.lower())
    if named is None:
        raise BadTimes(f"cron: Expected a cron text or one of {', '.join(PREDEFINED)}, but found {cron[:80]!r}")
    return named


def on_the_clock(schedule: Schedule) -> Schedule:
    """Whole days and weeks are counted on the clock of the zone: a day in which it is put forward has 23 hours."""
    zone = zone_of(schedule.timezone)
    if schedule.interval_ms not in (DAY_MS, WEEK_MS) or zone.fixed_ms is not None:
        return schedule
    days, rest_ms = divmod(schedule.anchor_ms + zone.offset_ms(schedule.anchor_ms), DAY_MS)
    hours, minutes_ms = divmod(rest_ms, HOUR_MS)
    if minutes_ms % MINUTE_MS:
        return schedule  # a cron text of five fields has whole minutes
    weekday = "*" if schedule.interval_ms == DAY_MS else WEEKDAYS[days % len(WEEKDAYS)]
    return Schedule(ScheduleType.CRON, f"{minutes_ms // MINUTE_MS} {hours} * * {weekday}", schedule.timezone)


# Periods --------------------------------------------------------------------------------------------------------------


def checked_zone(timezone: str) -> str:
    """The id of a zone that there is."""
    if not is_zone(timezone):
        raise BadTimes(f"timezone: Expected a time zone such as 'Europe/Berlin', but found {timezone[:80]!r}")
    return timezone


def period_asked(since: int | str, until: int | str, timezone: str) -> tuple[int, int]:
    """The first and the last instant of a period. A date as its end means all of that day."""
    zone = zone_of(checked_zone(timezone))
    first_ms, last_ms = moment_ms(since, zone, "from"), moment_ms(until, zone, "to", is_end=True)
    if first_ms > last_ms:
        found = f"{utc_text(first_ms)} to {utc_text(last_ms)}"
        raise BadTimes(f"Expected a period that begins before it ends, but found {found}")
    return first_ms, last_ms


def moment_ms(written: int | str, zone: Zone, name: str, *, is_end: bool = False) -> int:
    """An instant: that of a date is its beginning or, at the end of a period, its end."""
    at_ms = _milliseconds(written) if _is_number(written) else _dated_ms(str(written), zone, is_end=is_end)
    if at_ms is None or not 0 <= at_ms < END_MS:
        raise BadTimes(f"{name}: Expected {MOMENT}, but found {str(written)[:80]!r}")
    return at_ms


def _is_number(written: int | str) -> bool:
    """A text of eight digits is a date without hyphens."""
    return isinstance(written, int) or (written.isascii() and written.isdigit() and len(written) > len("20260131"))


def _milliseconds(written: int | str) -> int | None:
    return int(written) if len(str(written)) <= len(str(END_MS)) else None


def _dated_ms(text: str, zone: Zone, *, is_end: bool) -> int | None:
    day = _date_of(text)
    try:
        if day is not None:
            begins = datetime(day.year, day.month, day.day) + timedelta(days=1 if is_end else 0)
            return zone.after_gap(_clock_ms(begins)) - is_end
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return _clock_ms(moment.astimezone(UTC).replace(tzinfo=None))
        return zone.after_gap(_clock_ms(moment))
    except (ValueError, OverflowError):
        return None


def _date_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _clock_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


# Previews -------------------------------------------------------------------------------------------------------------


def previewed(schedule: Schedule, from_ms: int, count: int) -> list[Previewed]:
    """The times of a schedule from an instant on."""
    zone, times = zone_of(schedule.timezone), times_of(schedule)
    return [
        Previewed(at_ms, utc_text(at_ms), local_text(at_ms, zone), _note(schedule, times, zone, at_ms))
        for at_ms in islice(_from(times, from_ms), count)
    ]


def _from(times: Times, from_ms: int) -> Iterator[int]:
    at_ms = times.next_after(from_ms - 1)
    while at_ms is not None:
        yield at_ms
        at_ms = times.next_after(at_ms)


def local_text(at_ms: int, zone: Zone) -> str:
    """An instant on the clock of a zone, such as `2026-03-29T03:00:00+02:00`."""
    offset_ms = zone.offset_ms(at_ms)
    clock = EPOCH + timedelta(milliseconds=at_ms + offset_ms)
    sign, minutes = "-" if offset_ms < 0 else "+", abs(offset_ms) // MINUTE_MS
    return f"{clock.isoformat(timespec='seconds')}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _note(schedule: Schedule, times: Times, zone: Zone, at_ms: int) -> str | None:
    if schedule.type is not ScheduleType.CRON or zone.fixed_ms is not None:
        return None
    clock_ms = at_ms + zone.offset_ms(at_ms)
    evenly = times_of(Schedule(ScheduleType.CRON, schedule.cron))
    if evenly.last_upto(clock_ms) != clock_ms:
        before_ms = at_ms + zone.offset_ms(at_ms - 1)
        return f"moved: the clock skips from {_wall(before_ms)} to {_wall(clock_ms)}"
    later_offset_ms = zone.offset_ms(at_ms + DAY_MS)
    again_ms = clock_ms - later_offset_ms
    if again_ms > at_ms and zone.offset_ms(again_ms) == later_offset_ms and times.last_upto(again_ms) != again_ms:
        return "the clock shows this time twice: only the first counts"
    return None


def _wall(clock_ms: int) -> str:
    return f"{clock_ms % DAY_MS // HOUR_MS:02d}:{clock_ms % HOUR_MS // MINUTE_MS:02d}"
