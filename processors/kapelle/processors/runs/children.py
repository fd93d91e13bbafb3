"""Decisions on the answers of children and on the timers of composite steps.

The end of an iteration is counted without reading the definition or the parameters of the run, unless it is the last
one or has failed: an iteration costs the same in a loop of 25,000 as in a loop of ten.
"""

from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.composites import counts, fan, foreach, rounds, step_endings, subworkflow
from kapelle.processors.runs.context import Ending
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.tables import ChildRow, FanRow, Runs
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus, StepStatus


@on_draft.decides(c.RecordChildStart)
def record_child_start(start: c.RecordChildStart, draft: RunDraft, now_ms: int) -> None:
    """A subworkflow exists. An answer to another attempt than the one under way changes nothing."""
    fan_row, child = awaited(start, draft.key, draft.state)
    if fan_row is None or child is None:
        return
    draft.emit(
        c.ChildStarted(
            run_id=fan_row.run_id,
            step_id=start.step_id,
            attempt=fan_row.attempt,
            iteration=fan_row.iteration,
            number=start.number,
            child=start.child,
            child_run_id=start.child_run_id,
            version=start.version,
            at_ms=now_ms,
        )
    )
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    row = flow.row(start.step_id)
    if row is None or step_endings.fan_of(flow, start.step_id, row) is None:
        return  # the step did not wait for its child and was stopped meanwhile, or the whole run was
    step_endings.stop_again(flow, start.step_id, fan_row, start.number)
    subworkflow.started(flow, flow.plan.steps[start.step_id], row)
    flow.go_on()


@on_draft.decides(c.RecordChildEnd)
def record_child_end(end: c.RecordChildEnd, draft: RunDraft, now_ms: int) -> None:
    """A child has ended: count it, and go on with the step if that changes what the step does."""
    before = note_end(end, draft, now_ms)
    if before is None:
        return
    after = draft.state.fans.get((draft.key, end.step_id)) or before
    is_first_failure = end.status is InstanceStatus.FAILED and after.ending is None
    if after.kind is not ChildKind.WHILE and not counts.is_over(after) and not is_first_failure:
        return
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    step, row = flow.plan.steps[end.step_id], flow.row(end.step_id)
    if row is None or row.status is not StepStatus.RUNNING:
        return  # it does not wait for its child, and has been ended before
    if after.kind is ChildKind.WHILE:
        rounds.ended(flow, step, row, after, end)
    elif counts.is_over(after):
        fan.finish(flow, step, row, after)
    elif step.step.failure_mode == "FAIL_IMMEDIATELY":
        fan.kill(flow, end.step_id, after, f"Iteration {end.number} FAILED: {end.reason}")
    flow.go_on()


def note_end(end: c.RecordChildEnd, draft: RunDraft, now_ms: int) -> FanRow | None:
    """Count a child that has ended. None if nobody waits for this end."""
    fan_row, child = awaited(end, draft.key, draft.state)
    if fan_row is None or child is None or (end.child_run_id and end.child_run_id != child.run_id):
        return None
    oldest = fan.oldest_after(draft.state, (draft.key, end.step_id), fan_row, end.number)
    draft.emit(fan.end_of(fan_row, end, oldest, now_ms))
    return fan_row


def awaited(
    answer: c.RecordChildStart | c.RecordChildEnd, key: str, state: Runs
) -> tuple[FanRow | None, ChildRow | None]:
    """The children of the attempt that an answer is meant for, and the child itself, if it is still waited for."""
    fan_row = state.fans.get((key, answer.step_id))
    if fan_row is None or (fan_row.run_id, fan_row.attempt, fan_row.iteration) != (
        answer.run_id,
        answer.attempt,
        answer.iteration,
    ):
        return None, None
    child = state.children.get((key, answer.step_id, answer.number))
    if child is None or child.status is not counts.IN_PROGRESS or child.fan_run != fan_row.fan_run:
        return None, None
    return fan_row, child


def timer_due(flow: Flow, step_id: str) -> bool:
    """Launch the next children, or tell the next ones to stop. Whether the step still runs: else nothing is done."""
    row = flow.row(step_id)
    fan_row = None if row is None else step_endings.fan_of(flow, step_id, row)
    if fan_row is None:
        return False
    if fan_row.ending is not None:
        told = fan_row.ending
        step_endings.tell(flow, step_id, fan_row, Ending(told.action, told.status, told.reason, told.is_alone))
    else:
        foreach.go_on(flow, flow.plan.steps[step_id])
    return True
