"""Schedules and their ticks for people. Times are in the zone of the schedule."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import tables
from kapelle.cli.text.permits import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kapelle.client import PastTick, ScheduleRecord

SEVERAL: Final = 2
WALL: Final = "%a %Y-%m-%d %H:%M:%S"


def show_list(schedules: "Sequence[ScheduleRecord]") -> None:
    """Time triggers, one a line, with the next tick and the last one."""
    tables.show(
        ("time trigger", "times", "zone", "state", "next", "last"),
        [(one.trigger_id, one.times, one.timezone, one.state, _first_of(one), _last_of(one)) for one in schedules],
    )


def show_schedule(schedule: "ScheduleRecord") -> None:
    """A time trigger on a page, with its next and its last ticks."""
    zone = schedule.timezone
    counts = (("started", schedule.started), ("passed over", schedule.passed_over), ("refused", schedule.refused))
    tables.pairs(
        [
            ("time trigger", schedule.trigger_id),
            ("times", f"{schedule.times} ({zone})"),
            ("state", schedule.state),
            ("paused", _pause(schedule)),
            ("catch-up", schedule.catch_up),
            (
                "fuzzy delay",
                f"at most {duration(schedule.fuzzy_max_delay_ms)}" if schedule.fuzzy_max_delay_ms else None,
            ),
            ("so far", ", ".join(f"{count:,} {name}" for name, count in counts if count) or None),
        ]
    )
    if schedule.next:
        tables.stdout().print()
        tables.show(
            ("next", "UTC", "starts"),
            [(zoned(one.scheduled_at, zone), utc(one.scheduled_at), utc(one.due_at)) for one in schedule.next],
        )
    if schedule.last:
        tables.stdout().print()
        tables.show(
            ("last", "outcome", "instance", "status", "late", "reason"),
            [
                (when(tick, zone), fate(tick), tick.workflow_instance_id, tick.status, _late(tick), tick.reason)
                for tick in schedule.last
            ],
        )


def when(tick: "PastTick", zone: str) -> str:
    """The time of a tick, or those of several."""
    if tick.scheduled_at is not None:
        return zoned(tick.scheduled_at, zone)
    if tick.from_ is None or tick.to is None:
        return ""
    if tick.from_ == tick.to:
        return zoned(tick.from_, zone)
    return f"{zoned(tick.from_, zone)} to {zoned(tick.to, zone)}"


def fate(tick: "PastTick") -> str:
    """The outcome of a tick in words."""
    word = tick.fate.lower().replace("_", " ")
    return f"{tick.count:,} {word}" if tick.count >= SEVERAL else word


def zoned(at_ms: int, zone_id: str) -> str:
    """A moment on the clock of a zone: `Sun 2026-03-29 03:00:00 +02:00`."""
    from kapelle.processors.sel.joda.zone import offset_text, zone_of  # noqa: PLC0415 - slow to load

    offset_ms = zone_of(zone_id).offset_ms(at_ms)
    return f"{_clock(at_ms + offset_ms, WALL)} {offset_text(offset_ms)}"


def local(text: str) -> str:
    """The same, of a moment that the server has written with its offset."""
    moment = datetime.fromisoformat(text)
    return f"{moment.strftime(WALL)} {moment.isoformat()[-len('+00:00') :]}"


def utc(at_ms: int) -> str:
    """A moment in UTC: `2026-03-29T01:00:00Z`."""
    return _clock(at_ms, "%Y-%m-%dT%H:%M:%SZ")


def _clock(wall_ms: int, form: str) -> str:

    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime(form)


def _first_of(schedule: "ScheduleRecord") -> str:
    return zoned(schedule.next[0].scheduled_at, schedule.timezone) if schedule.next else ""


def _last_of(schedule: "ScheduleRecord") -> str:
    if not schedule.last:
        return ""
    last = schedule.last[0]
    instance = "" if last.workflow_instance_id is None else f" {last.workflow_instance_id}"
    return f"{fate(last)}{instance} {last.status or ''}".rstrip()


def _pause(schedule: "ScheduleRecord") -> str | None:
    paused = schedule.paused
    if paused is None:
        return None
    scope = "all time triggers of the workflow" if paused.scope == "WORKFLOW" else "this time trigger"
    why = f": {paused.reason}" if paused.reason else ""
    return f"{scope}, by {paused.by} at {tables.at(paused.at)}{why}"


def _late(tick: "PastTick") -> str:
    return duration(tick.late_ms) if tick.late_ms else ""
