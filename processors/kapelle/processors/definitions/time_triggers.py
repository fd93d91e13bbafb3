"""Time triggers: what is written, the rules that it must keep, and the schedule that it means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from kapelle.processors.calendar import (
    APART_MS_MIN,
    YEAR_FIRST,
    YEAR_LAST,
    BadCron,
    Schedule,
    ScheduleType,
    check_cron,
    cron_of,
    normalised,
    shortest_gap_ms,
    times_of,
)
from kapelle.processors.definitions.forms import TimeTriggerForm
from kapelle.processors.definitions.limits import (
    FUZZY_DELAY_MS_MAX,
    FUZZY_DELAY_MS_MIN,
    INTERVAL_MS_MAX,
    TIME_TRIGGERS_MAX,
)
from kapelle.processors.definitions.models import PREDEFINED, Parsable, TimeTrigger, TimeTriggerType
from kapelle.processors.definitions.problems import Report, at
from kapelle.processors.definitions.zones import is_zone
from kapelle.processors.params.durations import UNITS_MS
from kapelle.processors.sel.joda.zone import zone_of

# The keys that only triggers of one type have.
KEYS: Final[Mapping[TimeTriggerType, tuple[str, ...]]] = {
    TimeTriggerType.CRON: ("cron",),
    TimeTriggerType.PREDEFINED: ("expression",),
    TimeTriggerType.INTERVAL: ("interval", "anchor"),
}
CRON: Final = "five, six or seven fields such as '0 5 * * *'"
INTERVAL: Final = "a duration from 2 minutes to 120 days such as '90m' or 5400, without parameters"
FUZZY_DELAY: Final = "a duration from 1 second to 24 hours such as '10 min' or 600, without parameters"
INSTANT: Final = (
    f"a time in the years from {YEAR_FIRST} to {YEAR_LAST} such as '2026-01-31T12:00', or milliseconds since 1970"
)
EPOCH: Final = datetime(YEAR_FIRST, 1, 1)
END_MS: Final = (datetime(YEAR_LAST + 1, 1, 1) - EPOCH) // timedelta(milliseconds=1)
# Other durations pass over words that they do not know, so '1h 30m' would be one hour: a schedule must not be guessed.
_UNITS: Final = {**UNITS_MS, "m": 60_000}
_PART: Final = rf"(\d{{1,12}})\s*({'|'.join(sorted(_UNITS, key=len, reverse=True))})"
_DURATION: Final = re.compile(rf"{_PART}(?:\s*{_PART})*", re.IGNORECASE | re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,12}", re.ASCII)

# What is there and must not be: its path, the value, and what would be right.
Stray = tuple[str, object, str]


def time_trigger_of(form: TimeTriggerForm, path: str, report: Report) -> TimeTrigger:
    """The trigger that a form describes."""
    return TimeTrigger(
        type=form.type,
        cron=_cron(form, path, report),
        timezone=form.timezone,
        fuzzy_max_delay=form.fuzzy_max_delay,
        catch_up=form.catch_up,
        interval=_interval(form, path, report),
        start=form.start,
        anchor=form.anchor if form.type is TimeTriggerType.INTERVAL else None,
    )


def _cron(form: TimeTriggerForm, path: str, report: Report) -> str:
    if form.type is TimeTriggerType.CRON and form.cron is None:
        report.missing(at(path, "cron"), CRON)
    if form.type is not TimeTriggerType.PREDEFINED:
        return (form.cron or "") if form.type is TimeTriggerType.CRON else ""
    cron = PREDEFINED.get("@" + (form.expression or "").lower().removeprefix("@"))
    if cron is None:
        report.add(at(path, "expression"), form.expression, f"one of {', '.join(PREDEFINED)}")
    return cron or ""


def _interval(form: TimeTriggerForm, path: str, report: Report) -> Parsable | None:
    if form.type is not TimeTriggerType.INTERVAL:
        return None
    if form.interval is None:
        report.missing(at(path, "interval"), INTERVAL)
    return form.interval


def strays_of(form: TimeTriggerForm, path: str) -> Iterator[Stray]:
    """The keys of a form that its type does not have."""
    for kind, keys in KEYS.items():
        for key in keys:
            value = getattr(form, key)
            if kind is not form.type and value is not None:
                yield at(path, key), value, f"no {key}, which only triggers of the type {kind} have"


def check_time_triggers(triggers: tuple[TimeTrigger, ...], path: str, report: Report) -> None:
    """Report what is wrong with the time triggers of a workflow."""
    if len(triggers) > TIME_TRIGGERS_MAX:
        report.note(path, str(len(triggers)), f"at most {TIME_TRIGGERS_MAX} time triggers")
    known: dict[Schedule, str] = {}
    for index, trigger in enumerate(triggers[:TIME_TRIGGERS_MAX]):
        here = at(path, index)
        _check(trigger, here, report)
        if any(problem.path.startswith(f"{here}.") for problem in report.problems):
            continue  # what is wrong with it names no times
        schedule = schedule_from(trigger)
        _check_delay(trigger, schedule, here, report)
        if trigger.start is not None and times_of(schedule).next_after(-1) is None:
            report.add(at(here, "start"), trigger.start, "a start that is not after the last time of the trigger")
        first = known.setdefault(schedule, here)
        if first != here:
            report.add(here, schedule.cron or trigger.interval, f"each schedule once, and {first} has this one")


def _check_delay(trigger: TimeTrigger, schedule: Schedule, path: str, report: Report) -> None:
    """With a longer delay, a tick could come after the next one, and the catch-up policy would pass it over."""
    gap_ms = schedule.interval_ms or shortest_gap_ms(cron_of(schedule.cron))
    if fuzzy_max_delay_ms(trigger) > gap_ms:
        expected = f"a duration up to {gap_ms // 1000} seconds, the shortest time between two ticks of the trigger"
        report.add(at(path, "fuzzy_max_delay"), trigger.fuzzy_max_delay, expected)


def _check(trigger: TimeTrigger, path: str, report: Report) -> None:
    has_zone = is_zone(trigger.timezone)
    if not has_zone:
        report.add(at(path, "timezone"), trigger.timezone, "a time zone such as 'Europe/Berlin'")
    if trigger.cron:
        try:
            check_cron(trigger.cron)
        except BadCron as error:
            report.add(at(path, "cron"), trigger.cron, str(error))
    elif trigger.type is TimeTriggerType.CRON and not report.has(at(path, "cron")):
        report.add(at(path, "cron"), trigger.cron, CRON)
    for key, most_ms, least_ms, expected in (
        ("interval", INTERVAL_MS_MAX, APART_MS_MIN, INTERVAL),
        ("fuzzy_max_delay", FUZZY_DELAY_MS_MAX, FUZZY_DELAY_MS_MIN, FUZZY_DELAY),
    ):
        written = getattr(trigger, key)
        if written is not None and not least_ms <= (_duration_ms(written) or 0) <= most_ms:
            report.add(at(path, key), written, expected)
    for key in ("start", "anchor"):
        written = getattr(trigger, key)
        if written is not None and has_zone and _instant_ms(written, trigger.timezone) is None:
            report.add(at(path, key), written, INSTANT)


def schedule_from(trigger: TimeTrigger) -> Schedule:
    """The times of a trigger that was checked. What a tick is worth, `catch_up` and the delay, is no part of it."""
    start_ms = None if trigger.start is None else _instant_ms(trigger.start, trigger.timezone)
    if trigger.type is not TimeTriggerType.INTERVAL:
        return Schedule(ScheduleType.CRON, normalised(trigger.cron), trigger.timezone, start_ms=start_ms)
    anchor = next((written for written in (trigger.anchor, trigger.start) if written is not None), EPOCH.isoformat())
    return Schedule(
        ScheduleType.INTERVAL,
        timezone=trigger.timezone,
        interval_ms=_duration_ms(trigger.interval or 0) or 0,
        anchor_ms=_instant_ms(anchor, trigger.timezone) or 0,
        start_ms=start_ms,
    )


def fuzzy_max_delay_ms(trigger: TimeTrigger) -> int:
    """The bound of the delay of its ticks, 0 if they have none."""
    return 0 if trigger.fuzzy_max_delay is None else _duration_ms(trigger.fuzzy_max_delay) or 0


def _duration_ms(written: Parsable) -> int | None:
    """Plain numbers are seconds; of a text every word counts."""
    text = str(written).strip()
    if _SECONDS.fullmatch(text):
        return int(text) * 1000
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(amount) * _UNITS[unit.lower()] for amount, unit in re.findall(_PART, text, re.IGNORECASE))


def _instant_ms(written: int | str, timezone: str) -> int | None:
    """A time without an offset is one of the clock of the zone; if the clock skips it, the end of the gap."""
    if isinstance(written, int):
        return written if 0 <= written < END_MS else None
    try:
        time = datetime.fromisoformat(written)
    except ValueError:
        return None
    clock_ms = (time.replace(tzinfo=None) - EPOCH) // timedelta(milliseconds=1)
    if not 0 <= clock_ms < END_MS:
        return None
    offset = time.utcoffset()
    return zone_of(timezone).after_gap(clock_ms) if offset is None else clock_ms - offset // timedelta(milliseconds=1)
