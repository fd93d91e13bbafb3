"""Time triggers of a workflow: their times, their state, what comes next, and the outcome of the last ticks."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kapelle.processors.calendar import Schedule, ScheduleType, Times, fuzz_ms, schedule_of, times_of
from kapelle.processors.workflows.schedules import Wanted, time_triggers_of
from kapelle.views.queries import schedule_records as r
from kapelle.views.queries import workflows
from kapelle.views.queries.records import Record
from kapelle.views.schema_schedules import STARTED

SHOWN: Final = 5  # ticks to come, and of the last ones
DISARMED_MAX: Final = 100
UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
NO_TRIGGERS: Final[Mapping[str, Wanted]] = {}
ALL: Final = ""

ROW: Final = "SELECT * FROM schedules WHERE workflow_id = ? AND trigger_id = ? AND schedule IS NOT NULL"
DISARMED: Final = """SELECT trigger_id FROM schedules INDEXED BY schedules_by_disarming
    WHERE workflow_id = ? AND is_armed = 0 ORDER BY disarmed_at_ms DESC, trigger_id DESC LIMIT ?"""
PAUSE: Final = (
    "SELECT * FROM schedule_pauses WHERE workflow_id = ? AND trigger_id IN (?, ?) ORDER BY trigger_id LIMIT 1"
)
TICKS: Final = """SELECT t.*, i.status FROM ticks t
    LEFT JOIN instances i
        ON i.workflow_id = t.workflow_id AND i.instance_id = t.instance_id AND i.created_at_ms IS NOT NULL
    WHERE t.workflow_id = ? AND t.trigger_id = ? ORDER BY t.position DESC, t.number DESC LIMIT ?"""


class Shown(msgspec.Struct, frozen=True):
    """How many ticks are shown: of those that come next, and of the last ones."""

    next: int = SHOWN
    last: int = SHOWN


class _Whole(msgspec.Struct, frozen=True):
    """What a time trigger's state depends on besides its own rows."""

    row: sqlite3.Row  # of the workflow
    wanted: Mapping[str, Wanted]  # the time triggers of the version that is active, or else the latest
    is_disabled: bool


class _Trigger(msgspec.Struct, frozen=True):
    """A time trigger as a definition has it, or as it was armed, with its row if it was ever armed."""

    id: str
    schedule: str
    catch_up: str
    fuzzy_max_delay_ms: int
    row: sqlite3.Row | None

    @property
    def times(self) -> Times:
        return times_of(schedule_of(self.schedule))


def listed(
    connection: sqlite3.Connection, workflow_id: str, shown: Shown, *, with_disarmed: bool = False
) -> r.ScheduleListRecord | None:
    """The time triggers of the version that is active, or else the latest, in the order of the definition.

    With those that earlier versions had, the ones that were disarmed last first. None if there is no such workflow.
    """
    whole = _whole(connection, workflow_id)
    if whole is None:
        return None
    ids = list(whole.wanted)
    if with_disarmed:
        rows = connection.execute(DISARMED, (workflow_id, DISARMED_MAX)).fetchall()
        ids += [row["trigger_id"] for row in rows if row["trigger_id"] not in whole.wanted]
    found = (_trigger(connection, whole, trigger_id) for trigger_id in ids)
    records = [_record(connection, whole, trigger, shown) for trigger in found if trigger is not None]
    return {"workflow_id": workflow_id, "schedules": records}


def schedule(
    connection: sqlite3.Connection, workflow_id: str, trigger_id: str, shown: Shown
) -> r.ScheduleRecord | None:
    """One time trigger, of this version or an earlier one."""
    whole = _whole(connection, workflow_id)
    trigger = None if whole is None else _trigger(connection, whole, trigger_id)
    return None if whole is None or trigger is None else _record(connection, whole, trigger, shown)


def triggers_of(connection: sqlite3.Connection, workflow_id: str) -> dict[str, str] | None:
    """The schedules of the time triggers of the active version, or else the latest, by their ids."""
    whole = _whole(connection, workflow_id)
    return None if whole is None else {trigger_id: wanted.schedule for trigger_id, wanted in whole.wanted.items()}


def next_times(connection: sqlite3.Connection, workflow_id: str, definition: str) -> list[int | None]:
    """For each time trigger of a version the time of its next tick; null for one that is not armed or has none."""
    rows = [
        connection.execute(ROW, (workflow_id, trigger_id)).fetchone() for trigger_id in time_triggers_of(definition)
    ]
    return [row["next_at_ms"] if row is not None and row["is_armed"] else None for row in rows]


def _whole(connection: sqlite3.Connection, workflow_id: str) -> _Whole | None:
    row = workflows.workflow(connection, workflow_id)
    if row is None:
        return None
    version = connection.execute(
        "SELECT definition FROM versions WHERE workflow_id = ? AND version = ?",
        (workflow_id, row["active_version"] or row["latest_version"]),
    ).fetchone()
    wanted = NO_TRIGGERS if version is None else time_triggers_of(version["definition"])
    properties = workflows.properties(connection, workflow_id) or {}
    return _Whole(row, wanted, properties.get("time_trigger_disabled") == msgspec.Raw(b"true"))


def _trigger(connection: sqlite3.Connection, whole: _Whole, trigger_id: str) -> _Trigger | None:
    row = connection.execute(ROW, (whole.row["workflow_id"], trigger_id)).fetchone()
    wanted = whole.wanted.get(trigger_id)
    if wanted is not None:
        return _Trigger(trigger_id, wanted.schedule, wanted.catch_up.value, wanted.fuzzy_max_delay_ms, row)
    if row is None:
        return None
    return _Trigger(trigger_id, row["schedule"], row["catch_up"], row["fuzzy_max_delay_ms"], row)


def _record(connection: sqlite3.Connection, whole: _Whole, trigger: _Trigger, shown: Shown) -> r.ScheduleRecord:
    workflow_id, row = whole.row["workflow_id"], trigger.row
    paused = _pause(connection, workflow_id, trigger.id)
    state = _state(whole, trigger, is_paused=paused is not None)
    times = schedule_fields(schedule_of(trigger.schedule))
    ticks = connection.execute(TICKS, (workflow_id, trigger.id, shown.last)).fetchall()
    return r.ScheduleRecord(
        workflow_id=workflow_id,
        trigger_id=trigger.id,
        workflow_version_id=whole.row["active_version"] or None if trigger.id in whole.wanted else None,
        **times,
        catch_up=trigger.catch_up,
        fuzzy_max_delay_ms=trigger.fuzzy_max_delay_ms,
        state=state,
        paused=paused,
        armed_at=None if row is None else row["armed_at_ms"],
        disarmed_at=None if row is None or row["is_armed"] else row["disarmed_at_ms"],
        next=list(_next(workflow_id, trigger, shown.next)) if state == r.ARMED else [],
        last=[_tick(trigger, tick) for tick in ticks],
        started=0 if row is None else row["started"],
        refused=0 if row is None else row["refused"],
        passed_over=0 if row is None else row["passed_over"],
        not_armed=0 if row is None else row["not_armed"],
    )


def _pause(connection: sqlite3.Connection, workflow_id: str, trigger_id: str) -> r.PauseRecord | None:
    """That of the whole workflow comes before that of the trigger."""
    row = connection.execute(PAUSE, (workflow_id, ALL, trigger_id)).fetchone()
    if row is None:
        return None
    scope = r.OF_TRIGGER if row["trigger_id"] else r.OF_WORKFLOW
    return {"by": row["author"], "at": row["at_ms"], "reason": row["reason"] or None, "scope": scope}


def _state(whole: _Whole, trigger: _Trigger, *, is_paused: bool) -> str:
    if not whole.row["active_version"] or trigger.id not in whole.wanted:
        return r.INACTIVE
    if whole.is_disabled:
        return r.DISABLED
    if is_paused:
        return r.PAUSED
    return r.ENDED if trigger.row is not None and trigger.row["next_at_ms"] is None else r.ARMED


def _next(workflow_id: str, trigger: _Trigger, count: int) -> Iterator[r.NextTickRecord]:
    """The engine has told the first; the times after it follow from the schedule."""
    row = trigger.row
    if row is None or row["next_at_ms"] is None:
        return
    at_ms: int | None = row["next_at_ms"]
    due_ms = row["next_due_ms"]
    for _ in range(count):
        if at_ms is None:
            return
        yield {"scheduled_at": at_ms, "due_at": due_ms or _due_ms(workflow_id, trigger, at_ms)}
        at_ms, due_ms = trigger.times.next_after(at_ms), None


def _due_ms(workflow_id: str, trigger: _Trigger, at_ms: int) -> int:
    return at_ms + fuzz_ms(workflow_id, trigger.id, at_ms, trigger.fuzzy_max_delay_ms)


def _tick(trigger: _Trigger, row: sqlite3.Row) -> r.PastTickRecord:
    at_ms, is_started = row["scheduled_at_ms"], row["fate"] == STARTED
    first_ms, last_ms = at_ms, at_ms
    if at_ms is None:
        first_ms, last_ms = trigger.times.next_after(row["after_ms"]), trigger.times.last_upto(row["upto_ms"])
    return {
        "fate": row["fate"],
        "scheduled_at": at_ms,
        "due_at": None if at_ms is None else max(at_ms, row["at_ms"] - row["late_ms"]),
        "workflow_instance_id": row["instance_id"],
        "status": row["status"],
        "started_at": row["at_ms"] if is_started else None,
        "late_ms": row["late_ms"] if is_started else None,
        "reason": row["reason"] or None,
        "decided_at": row["at_ms"],
        "count": row["count"],
        "from": first_ms,
        "to": last_ms,
    }


def schedule_fields(times: Schedule) -> r.TimesRecord:
    """A schedule, as people read it."""
    is_interval = times.type is ScheduleType.INTERVAL
    return {
        "type": times.type.value,
        "cron": None if is_interval else times.cron,
        "interval": interval_text(times.interval_ms) if is_interval else None,
        "interval_ms": times.interval_ms if is_interval else None,
        "anchor_at": times.anchor_ms if is_interval else None,
        "start_at": times.start_ms,
        "timezone": times.timezone,
    }


def interval_text(interval_ms: int) -> str:
    """An interval in the largest unit that it is a multiple of."""
    for unit, unit_ms in UNITS_MS.items():
        if interval_ms % unit_ms == 0:
            return f"{interval_ms // unit_ms}{unit}"
    return f"{interval_ms}ms"


def enriched(connection: sqlite3.Connection, workflow_id: str, version: int) -> Record:
    """What a version is enriched with: the times at which its time triggers start it next."""
    row = connection.execute(
        "SELECT definition FROM versions WHERE workflow_id = ? AND version = ?", (workflow_id, version)
    ).fetchone()
    whole = workflows.workflow(connection, workflow_id)
    is_active = whole is not None and whole["active_version"] == version
    definition = None if row is None else row["definition"]
    times = [] if definition is None else next_times(connection, workflow_id, definition)
    times = times if is_active else [None] * len(times)
    known = [at_ms for at_ms in times if at_ms is not None]
    return {"next_execution_time": min(known, default=None), "next_execution_times": times}
