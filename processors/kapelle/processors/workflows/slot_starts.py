"""The slots of a backfill, started as its lane has room. The timer of the backfill asks for it (`timers`)."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from kapelle.processors.calendar import schedule_of, times_of
from kapelle.processors.workflows.lanes import completes, starts_slots
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.queue import launch
from kapelle.processors.workflows.reading import there, workflow_of
from kapelle.processors.workflows.requests import BY_PEOPLE
from kapelle.processors.workflows.slots import slot_request_id, slots_after
from kapelle.processors.workflows.starts import STARTS_MAX, Batch
from kapelle.processors.workflows.tables import BackfillRow
from kapelle.processors.workflows.ticks import arrivals_in, scheduled_params, tick_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillStatus, InstanceStatus, Start

EXISTING_MAX: Final = 100  # slots that have instances already, passed in one decision


def go_on(draft: WorkflowDraft, backfill_id: str, now_ms: int) -> None:
    """Start the next slots, as many as there is room for and a decision may start. After the last one, complete."""
    row = there(draft.state.backfills.get((draft.key, backfill_id)), "backfills", draft.key, backfill_id)
    if starts_slots(row):
        if workflow_of(draft.state, draft.key).active_version:
            _start_slots(draft, backfill_id, row, now_ms)
        else:
            _note(draft, backfill_id, BackfillStatus.PAUSED, "No version of the workflow is active", now_ms=now_ms)
    elif completes(row):
        _note(draft, backfill_id, BackfillStatus.COMPLETED, now_ms=now_ms)


def _start_slots(draft: WorkflowDraft, backfill_id: str, row: BackfillRow, now_ms: int) -> None:
    schedule = schedule_of(row.schedule)
    slots = slots_after(row.position_ms, row, times_of(schedule))
    room = min(row.concurrency - row.running, STARTS_MAX)
    batch: list[tuple[int, Start]] = []
    new = 0
    for slot in islice(slots, EXISTING_MAX):
        start = _start_of(draft.key, backfill_id, row, slot)
        is_new = draft.state.requests.get((draft.key, start.request_id)) is None
        if is_new and new == room:
            break
        new += is_new
        batch.append((slot, start))
    starts = c.StartInstances(row.author, tuple(start for _, start in batch))
    outcomes = Batch(starts, draft, now_ms, started_by=BY_PEOPLE).outcomes()
    decided = tuple(tick_of(slot, start, outcome) for (slot, start), outcome in zip(batch, outcomes, strict=True))
    created = [replace(a, backfill_id=backfill_id) for a in arrivals_in(outcomes) if isinstance(a, c.InstanceCreated)]
    launched = [arrival for arrival in created if arrival.status is InstanceStatus.CREATED]
    position = batch[-1][0] if batch else row.position_ms
    is_last = next(slots_after(position, row, times_of(schedule)), None) is None
    draft.emit(
        c.BackfillProgressed(
            workflow_id=draft.key,
            backfill_id=backfill_id,
            slots=decided,
            existing=sum(not slot.is_new and slot.instance_id is not None for slot in decided),
            position_ms=position,
            is_last=is_last,
            at_ms=now_ms,
        )
    )
    for arrival in created:
        draft.emit(arrival)
    for arrival in launched:
        launch(draft, (arrival.instance_id, arrival.run_id), now_ms=now_ms)


def _start_of(workflow_id: str, backfill_id: str, row: BackfillRow, slot: int) -> Start:
    initiator: dict[str, object] = {
        "type": "MANUAL",
        "user": row.author,
        "backfill_id": backfill_id,
        "trigger_time": slot,
        "timezone": schedule_of(row.schedule).timezone,
    }
    if row.trigger_id is not None:
        initiator["trigger_uuid"] = row.trigger_id
    return Start(
        request_id=slot_request_id(workflow_id, backfill_id, row, slot),
        initiator=msgspec.json.encode(initiator).decode(),
        run_params=scheduled_params(slot, row.run_params),
        persist_failed_run=True,
    )


def pause_given_up(draft: WorkflowDraft, backfill_id: str, reason: str, now_ms: int) -> None:
    """A decision on the next slots ran out of time: the backfill waits for somebody to look."""
    _note(draft, backfill_id, BackfillStatus.PAUSED, reason, now_ms=now_ms)


def _note(draft: WorkflowDraft, backfill_id: str, status: BackfillStatus, reason: str = "", *, now_ms: int) -> None:
    """A change that nobody has asked for."""
    row = there(draft.state.backfills.get((draft.key, backfill_id)), "backfills", draft.key, backfill_id)
    draft.emit(
        c.BackfillChanged(
            request_id="",
            author=row.author,
            workflow_id=draft.key,
            backfill_id=backfill_id,
            status=status,
            reason=reason,
            at_ms=now_ms,
        )
    )
