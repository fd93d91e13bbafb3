"""Which time triggers are armed: a pure function of the active version, the properties and the pauses.

A trigger is armed while the active version has it, time triggers are not disabled, and nobody has paused it. The ticks
that come while it is armed start, or the catch-up policy passes them over. Those that come at other times do neither.

| change | what becomes of a trigger |
|---|---|
| a version with the same times is activated | it goes on where it is, also with another policy or delay |
| a version without its times is activated | it is disarmed; new times are armed from now on |
| the workflow is deactivated, disabled, paused or deleted | it is disarmed; due ticks that did not start are counted |
| the workflow is activated, enabled or resumed | it is armed from now on |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.calendar import schedule_of, times_of
from kapelle.processors.decisions import Done, unchanged
from kapelle.processors.definitions import fuzzy_max_delay_ms, parse_workflow, schedule_from
from kapelle.processors.refusals import conflict, not_found
from kapelle.processors.workflows.catch_up import Trigger, due_at_ms, due_window
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.reading import definition_of, properties_of, workflow_of
from kapelle.processors.workflows.tables import ALL, ScheduleRow, Workflow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import CatchUp

DEFINITIONS_CACHED: Final = 256


class Wanted(msgspec.Struct, frozen=True):
    """A time trigger as a version defines it."""

    schedule: str
    catch_up: CatchUp
    fuzzy_max_delay_ms: int


NO_TRIGGERS: Final[Mapping[str, Wanted]] = {}


@lru_cache(maxsize=DEFINITIONS_CACHED)
def time_triggers_of(definition: str) -> Mapping[str, Wanted]:
    """The time triggers of a definition, by their ids."""
    wanted: dict[str, Wanted] = {}
    for trigger in parse_workflow(definition).time_triggers:
        schedule = schedule_from(trigger)
        wanted[schedule.id] = Wanted(schedule.json(), CatchUp(trigger.catch_up), fuzzy_max_delay_ms(trigger))
    return wanted


# Arming -------------------------------------------------------------------------------------------------------------


def arm_schedules(draft: WorkflowDraft, now_ms: int) -> None:
    """Bring the armed time triggers in line with the workflow as it is now."""
    workflow = draft.state.workflows.get((draft.key,)) or Workflow()
    wanted, why_not = _wanted(draft, workflow)
    wall_ms = now_ms - draft.state.timers.ahead_ms()
    present = {trigger_id: row for (_, trigger_id), row in draft.state.schedules.prefix((draft.key,))}
    armed = tuple(
        _armed(draft.key, trigger_id, new, present.get(trigger_id), wall_ms)
        for trigger_id, new in wanted.items()
        if trigger_id not in present or _differs(new, present[trigger_id])
    )
    disarmed = tuple(
        _disarmed(draft, Trigger(draft.key, trigger_id, row), why_not, wall_ms)
        for trigger_id, row in present.items()
        if trigger_id not in wanted
    )
    if armed or disarmed:
        version = workflow.active_version
        draft.emit(
            c.SchedulesArmed(workflow_id=draft.key, version=version, armed=armed, disarmed=disarmed, at_ms=now_ms)
        )


def _wanted(draft: WorkflowDraft, workflow: Workflow) -> tuple[Mapping[str, Wanted], str]:
    """The triggers that are to be armed, and why others are not."""
    if workflow.is_deleted:
        return NO_TRIGGERS, "The workflow was deleted"
    if not workflow.active_version:
        return NO_TRIGGERS, "No version is active"
    properties = properties_of(draft.state, draft.key, workflow)
    if properties is not None and properties.time_trigger_disabled:
        return NO_TRIGGERS, "time_trigger_disabled is set"
    if draft.state.pauses.get((draft.key, ALL)) is not None:
        return NO_TRIGGERS, "All time triggers of the workflow are paused"
    defined = time_triggers_of(definition_of(draft.state, draft.key, workflow.active_version))
    paused = {trigger_id for (_, trigger_id), _row in draft.state.pauses.prefix((draft.key,))}
    wanted = {trigger_id: new for trigger_id, new in defined.items() if trigger_id not in paused}
    return wanted, f"Version {workflow.active_version} does not have it"


def _differs(new: Wanted, row: ScheduleRow) -> bool:
    return (new.catch_up, new.fuzzy_max_delay_ms) != (row.catch_up, row.fuzzy_max_delay_ms)


def _armed(workflow_id: str, trigger_id: str, new: Wanted, row: ScheduleRow | None, wall_ms: int) -> c.ArmedSchedule:
    after_ms = wall_ms if row is None else row.after_ms
    next_at_ms = times_of(schedule_of(new.schedule)).next_after(after_ms)
    due_ms = None if next_at_ms is None else due_at_ms(workflow_id, trigger_id, next_at_ms, new.fuzzy_max_delay_ms)
    return c.ArmedSchedule(
        trigger_id=trigger_id,
        schedule=new.schedule,
        catch_up=new.catch_up,
        fuzzy_max_delay_ms=new.fuzzy_max_delay_ms,
        after_ms=after_ms,
        next_at_ms=next_at_ms,
        next_due_ms=due_ms,
    )


def _disarmed(draft: WorkflowDraft, trigger: Trigger, why_not: str, wall_ms: int) -> c.DisarmedSchedule:
    window = due_window(trigger, wall_ms)
    is_paused = draft.state.pauses.get((draft.key, trigger.id)) is not None
    return c.DisarmedSchedule(
        trigger_id=trigger.id,
        reason="The time trigger is paused" if is_paused else why_not,
        missed=0 if window is None else window.count,
        after_ms=trigger.row.after_ms,
    )


# Pausing ------------------------------------------------------------------------------------------------------------


@on_draft.carries_out(c.PauseSchedules)
def pause_schedules(command: c.PauseSchedules, draft: WorkflowDraft, now_ms: int) -> Done:
    """Start no ticks from now on. A pause of the whole workflow is for later versions too."""
    workflow = workflow_of(draft.state, draft.key)
    if command.trigger_id is not None:
        _check_known(draft, workflow, command.trigger_id)
    if draft.state.pauses.get((draft.key, command.trigger_id or ALL)) is not None:
        return unchanged(f"{_described(command.trigger_id)} paused already")
    draft.emit(
        c.SchedulesPaused(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            trigger_id=command.trigger_id,
            reason=command.reason,
            at_ms=now_ms,
        )
    )
    arm_schedules(draft, now_ms)
    return Done()


@on_draft.carries_out(c.ResumeSchedules)
def resume_schedules(command: c.ResumeSchedules, draft: WorkflowDraft, now_ms: int) -> Done:
    """Start the ticks that come from now on. Resuming a workflow resumes each of its triggers."""
    workflow = workflow_of(draft.state, draft.key)
    paused = {trigger_id for (_, trigger_id), _row in draft.state.pauses.prefix((draft.key,))}
    if command.trigger_id is not None and command.trigger_id not in paused:
        _check_known(draft, workflow, command.trigger_id)
        if ALL in paused:
            raise conflict(
                f"Expected a time trigger of workflow {draft.key!r} that is paused by itself, but all of them are "
                "paused: resume the workflow"
            )
    if not paused or (command.trigger_id is not None and command.trigger_id not in paused):
        return unchanged(f"{_described(command.trigger_id)} not paused")
    draft.emit(
        c.SchedulesResumed(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            trigger_id=command.trigger_id,
            at_ms=now_ms,
        )
    )
    arm_schedules(draft, now_ms)
    return Done()


def _check_known(draft: WorkflowDraft, workflow: Workflow, trigger_id: str) -> None:
    version = workflow.active_version or workflow.latest_version
    known = time_triggers_of(definition_of(draft.state, draft.key, version))
    if trigger_id not in known:
        names = ", ".join(known) or "none"
        raise not_found(
            f"Expected a time trigger of version {version} of workflow {draft.key!r} ({names}), "
            f"but found {trigger_id[:80]!r}"
        )


def _described(trigger_id: str | None) -> str:
    return "The time triggers of the workflow are" if trigger_id is None else f"Time trigger {trigger_id!r} is"
