"""Backfills: one instance for each slot of a period, in a lane of their own.

1. The run strategy of a workflow applies to all its other instances as if the backfill were not there. Of a backfill
   at most `concurrency` instances run at a time, so neither waits for the other. A slot becomes an instance when it is
   launched: backfills do not queue.
2. A slot is decided on once: `position_ms` moves past it in the same event. Its start has a request id that `slots`
   makes, so a slot that was started before, by whatever backfill or schedule, is counted and not started again.
3. A background timer is set exactly while there is something to do: slots are left and there is room, or all
   instances have ended (`lanes`). Each of its decisions starts a batch of slots.
4. A backfill that is started again with the same id continues, and after its end looks for slots that have no instance.
5. Only the first run of an instance is in the lane. A restart is an ordinary run.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kapelle.processors.calendar import BadCron, Schedule, ScheduleType, schedule_of, times_of
from kapelle.processors.decisions import Done, unchanged
from kapelle.processors.moments import TIME_MS_MAX, TIME_MS_MIN, utc_text
from kapelle.processors.refusals import conflict, invalid, not_found
from kapelle.processors.sel import SelError
from kapelle.processors.sel.joda.zone import zone_of
from kapelle.processors.workflows.lanes import ENDED
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.queue import Termination, terminate_running
from kapelle.processors.workflows.reading import definition_of, workflow_of
from kapelle.processors.workflows.requests import run_params_of
from kapelle.processors.workflows.schedules import time_triggers_of
from kapelle.processors.workflows.slots import count_slots
from kapelle.processors.workflows.tables import BackfillRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, BackfillAction, BackfillStatus

SLOTS_MAX: Final = 100_000
CONCURRENCY_MAX: Final = 100
ALIVE_MAX: Final = 20  # backfills of one workflow that run or are paused
ID_CHARS_MAX: Final = 64
INTERVAL_MS_MIN: Final = 1_000
SAME: Final = ("schedule", "trigger_id", "from_ms", "to_ms", "run_params", "is_rerun")
ALIVE_SAME: Final = ("concurrency", "is_newest_first")
STATUS_AFTER: Final = {
    BackfillAction.PAUSE: BackfillStatus.PAUSED,
    BackfillAction.RESUME: BackfillStatus.RUNNING,
    BackfillAction.CANCEL: BackfillStatus.CANCELLED,
}


# Starting -----------------------------------------------------------------------------------------------------------


@on_draft.carries_out(c.StartBackfill)
def start_backfill(command: c.StartBackfill, draft: WorkflowDraft, now_ms: int) -> Done:
    """Start a backfill, or continue the one that has this id."""
    _check(command)
    workflow = workflow_of(draft.state, draft.key)
    if not workflow.active_version:
        raise conflict(f"Expected workflow {draft.key!r} to have an active version, but it has none")
    schedule = _checked_schedule(command, draft, workflow.active_version)
    total = count_slots(command, times_of(schedule))
    if not 1 <= total <= SLOTS_MAX:
        raise invalid(f"Expected a period with 1 to {SLOTS_MAX:,} slots, but found {total:,}")
    present = draft.state.backfills.get((draft.key, command.backfill_id))
    if present is not None:
        _check_same(command, present, SAME)
        if present.status not in ENDED:
            _check_same(command, present, ALIVE_SAME)
        if present.status is BackfillStatus.RUNNING:
            return unchanged("The backfill is running already")
        if present.status is BackfillStatus.PAUSED:
            _change(draft, command, BackfillStatus.RUNNING, "", now_ms=now_ms)
            return Done()
    _check_room(draft)
    draft.emit(
        c.BackfillStarted(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            backfill_id=command.backfill_id,
            schedule=command.schedule,
            trigger_id=command.trigger_id,
            from_ms=command.from_ms,
            to_ms=command.to_ms,
            is_newest_first=command.is_newest_first,
            concurrency=command.concurrency,
            is_rerun=command.is_rerun,
            run_params=command.run_params,
            total=total,
            at_ms=now_ms,
        )
    )
    return Done(count=total)


def _check(command: c.StartBackfill) -> None:
    if not 1 <= len(command.backfill_id) <= ID_CHARS_MAX or "/" in command.backfill_id:
        expected = f"Expected a backfill_id of 1 to {ID_CHARS_MAX} characters without slashes"
        raise invalid(f"{expected}, but found {command.backfill_id[:80]!r}")
    if not 1 <= command.concurrency <= CONCURRENCY_MAX:
        raise invalid(f"Expected a concurrency of 1 to {CONCURRENCY_MAX}, but found {command.concurrency}")
    if not TIME_MS_MIN <= command.from_ms <= command.to_ms <= TIME_MS_MAX:
        raise invalid(
            "Expected a period that begins before it ends, "
            f"but found {utc_text(command.from_ms)} to {utc_text(command.to_ms)}"
        )
    run_params_of(command.run_params)


def _checked_schedule(command: c.StartBackfill, draft: WorkflowDraft, version: int) -> Schedule:
    try:
        schedule = schedule_of(command.schedule)
        zone_of(schedule.timezone)
        if schedule.type is ScheduleType.CRON:
            times_of(schedule)
    except (msgspec.MsgspecError, BadCron, SelError) as error:
        raise invalid(f"Expected a schedule, but found {command.schedule[:200]!r}: {error}") from None
    if schedule.type is ScheduleType.INTERVAL and schedule.interval_ms < INTERVAL_MS_MIN:
        raise invalid(f"Expected an interval of at least {INTERVAL_MS_MIN} ms, but found {schedule.interval_ms}")
    if command.trigger_id is not None:
        known = time_triggers_of(definition_of(draft.state, draft.key, version))
        if command.trigger_id not in known or schedule.id != command.trigger_id:
            raise not_found(
                f"Expected a time trigger of version {version} of workflow {draft.key!r} "
                f"({', '.join(known) or 'none'}), but found {command.trigger_id[:80]!r}"
            )
    return schedule


def _check_same(command: c.StartBackfill, present: BackfillRow, names: tuple[str, ...]) -> None:
    """The same id is the same backfill. How many run at a time, and in which order, may differ after its end."""
    for name in names:
        given, before = getattr(command, name), getattr(present, name)
        if given != before:
            hint = "choose another id" if name in SAME else "cancel it first; when it is started again it continues"
            raise conflict(
                f"Expected {name} of backfill {command.backfill_id!r} to be {before!r:.200}, but found {given!r:.200}: "
                f"{hint}"
            )


def _check_room(draft: WorkflowDraft) -> None:
    alive = sum(row.status not in ENDED for _, row in draft.state.backfills.prefix((draft.key,)))
    if alive >= ALIVE_MAX:
        raise conflict(
            f"Expected fewer than {ALIVE_MAX} backfills of workflow {draft.key!r} at a time, but found {alive}"
        )


# Acting on one ------------------------------------------------------------------------------------------------------


@on_draft.carries_out(c.ActOnBackfill)
def act_on_backfill(command: c.ActOnBackfill, draft: WorkflowDraft, now_ms: int) -> Done:
    """Pause, resume or cancel. Instances that run go on, unless they are to be stopped with a cancelled backfill."""
    workflow_of(draft.state, draft.key)
    row = draft.state.backfills.get((draft.key, command.backfill_id))
    if row is None:
        raise not_found(f"Expected a backfill of workflow {draft.key!r}, but found {command.backfill_id[:80]!r}")
    status = STATUS_AFTER.get(command.action)
    if status is None:
        raise invalid(f"Expected {', '.join(STATUS_AFTER)} as action, but found {command.action}")
    if row.status is status:
        return unchanged(f"The backfill is {status} already")
    if row.status in ENDED:
        raise conflict(
            f"Expected backfill {command.backfill_id!r} to be running or paused, but it is {row.status}: "
            "start it again to continue it"
        )
    _change(draft, command, status, command.reason, now_ms=now_ms)
    if status is BackfillStatus.CANCELLED and command.is_stopping:
        return Done(count=_stop_running(draft, command, now_ms))
    return Done()


def _change(
    draft: WorkflowDraft,
    command: c.StartBackfill | c.ActOnBackfill,
    status: BackfillStatus,
    reason: str,
    *,
    now_ms: int,
) -> None:
    draft.emit(
        c.BackfillChanged(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            backfill_id=command.backfill_id,
            status=status,
            reason=reason,
            at_ms=now_ms,
        )
    )


def _stop_running(draft: WorkflowDraft, command: c.ActOnBackfill, now_ms: int) -> int:
    wanted = Termination(
        command.request_id, command.author, Action.STOP, command.reason or "The backfill was cancelled"
    )
    lane = [
        (instance_id, running.run_id)
        for (_, instance_id), running in draft.state.running.prefix((draft.key,))
        if running.backfill_id == command.backfill_id and running.action is None
    ]
    for run in lane:
        terminate_running(draft, run, wanted, now_ms=now_ms)
    return len(lane)
