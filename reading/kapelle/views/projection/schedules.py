"""The changes that events of time triggers make to the view. All events of a workflow are on one partition."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kapelle.schemas import contracts as c
from kapelle.views.projection.at import At
from kapelle.views.rows import Cells, Rows
from kapelle.views.schema_schedules import PASSED_OVER, REFUSED, STARTED

ALL: Final = ""  # in place of a trigger: all of the workflow
ENGINE: Final = "kapelle"


def _note(rows: Rows, at: At, at_ms: int, author: str, log: str) -> None:
    rows.put("notes", (at.workflow_id, at.offset), {"author": author, "log": log, "at_ms": at_ms})


def _schedules_armed(rows: Rows, at: At, event: c.SchedulesArmed) -> None:
    for trigger in event.armed:
        cells: Cells = {
            "schedule": trigger.schedule,
            "catch_up": trigger.catch_up.value,
            "fuzzy_max_delay_ms": trigger.fuzzy_max_delay_ms,
            "is_armed": 1,
            "next_at_ms": trigger.next_at_ms,
            "next_due_ms": trigger.next_due_ms,
        }
        if trigger.after_ms == event.at_ms:  # one that was armed before goes on where it is
            cells["armed_at_ms"] = event.at_ms
        rows.put("schedules", (at.workflow_id, trigger.trigger_id), cells)
    for gone in event.disarmed:
        # The triggers of a deleted workflow are disarmed after their rows have gone.
        where: Cells = {"workflow_id": at.workflow_id, "trigger_id": gone.trigger_id}
        left: Cells = {
            "is_armed": 0,
            "next_at_ms": None,
            "next_due_ms": None,
            "disarmed_position": at.offset,
            "disarmed_at_ms": event.at_ms,
            "disarmed_reason": gone.reason,
            "missed": gone.missed,
            "missed_after_ms": gone.after_ms,
        }
        rows.amend("schedules", where, left)
    armed, disarmed = (", ".join(each.trigger_id for each in some) for some in (event.armed, event.disarmed))
    done = [f"{verb} {names}" for verb, names in (("Armed", armed), ("Disarmed", disarmed)) if names]
    _note(rows, at, event.at_ms, ENGINE, f"Time triggers: {'; '.join(done)}")


def _schedule_ticked(rows: Rows, at: At, event: c.ScheduleTicked) -> None:
    key = (at.workflow_id, event.trigger_id)
    rows.put("schedules", key, {"next_at_ms": event.next_at_ms, "next_due_ms": event.next_due_ms})
    if event.passed_over:
        passed: Cells = {
            "fate": PASSED_OVER,
            "reason": event.reason,
            "count": event.passed_over,
            "after_ms": event.passed_after_ms,
            "upto_ms": event.passed_upto_ms,
            "at_ms": event.at_ms,
        }
        rows.put("ticks", (*key, at.offset, 0), passed)
    for number, tick in enumerate(event.ticks, start=1):
        cells: Cells = {
            "fate": REFUSED if tick.instance_id is None else STARTED,
            "scheduled_at_ms": tick.scheduled_at_ms,
            "instance_id": tick.instance_id,
            "late_ms": tick.late_ms,
            "reason": tick.reason,
            "count": 1,
            "at_ms": event.at_ms,
        }
        rows.put("ticks", (*key, at.offset, number), cells)


def _schedules_paused(rows: Rows, at: At, event: c.SchedulesPaused) -> None:
    cells: Cells = {"author": event.author, "reason": event.reason, "at_ms": event.at_ms}
    rows.put("schedule_pauses", (at.workflow_id, event.trigger_id or ALL), cells)
    why = f": {event.reason}" if event.reason else ""
    _note(rows, at, event.at_ms, event.author, f"Paused {_named(event.trigger_id)}{why}")


def _schedules_resumed(rows: Rows, at: At, event: c.SchedulesResumed) -> None:
    """To resume a workflow resumes each of its triggers."""
    only: Cells = {} if event.trigger_id is None else {"trigger_id": event.trigger_id}
    rows.erase("schedule_pauses", {"workflow_id": at.workflow_id, **only})
    _note(rows, at, event.at_ms, event.author, f"Resumed {_named(event.trigger_id)}")


def _named(trigger_id: str | None) -> str:
    return "all time triggers" if trigger_id is None else f"time trigger {trigger_id}"


OF_SCHEDULES: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
    c.SchedulesArmed: _schedules_armed,
    c.ScheduleTicked: _schedule_ticked,
    c.SchedulesPaused: _schedules_paused,
    c.SchedulesResumed: _schedules_resumed,
}
