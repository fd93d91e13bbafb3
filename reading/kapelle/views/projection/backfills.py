"""The changes that events of backfills make to the view. All events of a workflow are on one partition."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillStatus
from kapelle.views.projection.at import At
from kapelle.views.rows import Cells, Rows

ENGINE: Final = "kapelle"
OVER: Final = frozenset({BackfillStatus.CANCELLED, BackfillStatus.COMPLETED})
VERBS: Final = {
    BackfillStatus.RUNNING: "Resumed",
    BackfillStatus.PAUSED: "Paused",
    BackfillStatus.CANCELLED: "Cancelled",
    BackfillStatus.COMPLETED: "Completed",
}


def _note(rows: Rows, at: At, at_ms: int, author: str, log: str) -> None:
    rows.put("notes", (at.workflow_id, at.offset), {"author": author or ENGINE, "log": log, "at_ms": at_ms})


def _backfill_started(rows: Rows, at: At, event: c.BackfillStarted) -> None:
    """One that is started again goes over all of its slots once more."""
    key = (at.workflow_id, event.backfill_id)
    for table in ("backfill_progress", "backfill_refusals"):
        rows.erase(table, {"workflow_id": at.workflow_id, "backfill_id": event.backfill_id})
    cells: Cells = {
        "schedule": event.schedule,
        "trigger_id": event.trigger_id,
        "from_ms": event.from_ms,
        "to_ms": event.to_ms,
        "is_newest_first": int(event.is_newest_first),
        "is_rerun": int(event.is_rerun),
        "concurrency": event.concurrency,
        "run_params": event.run_params,
        "total": event.total,
        "status": BackfillStatus.RUNNING.value,
        "reason": None,
        "author": event.author,
        "started_at_ms": event.at_ms,
        "ended_at_ms": None,
        "changed_by": event.author,
        "changed_at_ms": event.at_ms,
        "position_ms": None,
    }
    rows.put("backfills", key, cells, {"created_at_ms": event.at_ms})
    _note(rows, at, event.at_ms, event.author, f"Started backfill {event.backfill_id} of {event.total:,} instances")


def _backfill_progressed(rows: Rows, at: At, event: c.BackfillProgressed) -> None:
    key = (at.workflow_id, event.backfill_id)
    rows.put("backfills", key, {"position_ms": event.position_ms})
    refusals = [slot for slot in event.slots if slot.instance_id is None]
    cells: Cells = {
        "started": sum(slot.instance_id is not None and slot.is_new for slot in event.slots),
        "existing": event.existing,
        "refused": len(refusals),
    }
    rows.put("backfill_progress", (*key, at.offset), cells)
    for slot in refusals:
        rows.put("backfill_refusals", (*key, at.offset, slot.scheduled_at_ms), {"reason": slot.reason})


def _backfill_changed(rows: Rows, at: At, event: c.BackfillChanged) -> None:
    cells: Cells = {
        "status": event.status.value,
        "reason": event.reason or None,
        "changed_by": event.author or None,
        "changed_at_ms": event.at_ms,
        "ended_at_ms": event.at_ms if event.status in OVER else None,
    }
    rows.put("backfills", (at.workflow_id, event.backfill_id), cells)
    verb = VERBS.get(event.status, "Changed")
    why = f": {event.reason}" if event.reason else ""
    _note(rows, at, event.at_ms, event.author, f"{verb} backfill {event.backfill_id}{why}")


OF_BACKFILLS: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
    c.BackfillStarted: _backfill_started,
    c.BackfillProgressed: _backfill_progressed,
    c.BackfillChanged: _backfill_changed,
}
