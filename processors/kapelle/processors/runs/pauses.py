"""Decisions about breakpoints in a run: which it has, and how paused attempts continue.

`workflows` owns the breakpoints. It launches a run with those that are for it, and tells the run of each later change.
Both come from one key, so a run learns of changes in their order: an attempt that reaches its gate before the change
runs, and a later one pauses. The history of the run has the change between them. A run tells its iterations and rounds
in the same way.
"""

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.params import ParamError
from kapelle.processors.parents import INLINE
from kapelle.processors.refusals import conflict, invalid
from kapelle.processors.runs import restarts
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.breakpoints import matches, matching
from kapelle.processors.runs.composites import identity
from kapelle.processors.runs.composites.step_endings import running_after
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.tables import FanRow, StepRow
from kapelle.processors.sel.values import json_text
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Breakpoint, StepStatus

# Changes ------------------------------------------------------------------------------------------------------------


@on_draft.decides(c.ChangeBreakpoints)
def change_breakpoints(command: c.ChangeBreakpoints, draft: RunDraft, now_ms: int) -> None:
    """Use other breakpoints from now on. A deleted one no longer holds the attempts that it has paused."""
    run = draft.state.runs.get((draft.key,))
    if run is None or run.status in INSTANCE_TERMINAL:
        return  # a later run is launched with the breakpoints of its time
    if command.generation >= run.breakpoints_generation and command.breakpoints != run.breakpoints:
        draft.emit(
            c.BreakpointsChanged(
                run_id=run.run_id,
                generation=command.generation,
                breakpoints=command.breakpoints,
                at_ms=now_ms,
            )
        )
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    for (_, step_id), fan in list(draft.state.fans.prefix((draft.key,))):
        if fan.kind in INLINE and fan.run_id == run.run_id and fan.running:
            _tell_children(flow, step_id, fan, after=0, removed=command.removed)
    if command.removed is not None:
        _resume_all(flow, command.removed)
    flow.go_on()


@on_draft.decides(c.PassOnBreakpoints)
def pass_on_breakpoints(command: c.PassOnBreakpoints, draft: RunDraft, now_ms: int) -> None:
    """Tell the next children. Those that were launched since the change have its breakpoints already."""
    run, fan = draft.state.runs.get((draft.key,)), draft.state.fans.get((draft.key, command.step_id))
    if run is None or run.status in INSTANCE_TERMINAL or fan is None or fan.kind not in INLINE:
        return
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    _tell_children(flow, command.step_id, fan, after=max(0, command.after_number), removed=command.removed)


def _tell_children(flow: Flow, step_id: str, fan: FanRow, *, after: int, removed: Breakpoint | None) -> None:
    last = fan.next - 1
    numbers, upto = running_after(flow, step_id, after, last)
    change = c.ChangeBreakpoints(
        generation=flow.run.breakpoints_generation, breakpoints=flow.run.breakpoints, removed=removed
    )
    for number in numbers:
        flow.sent += 1
        flow.draft.send(RUN_INTERNAL, identity.child_key(fan.kind, flow.key, step_id, number), change)
    if upto < last:
        rest = c.PassOnBreakpoints(removed=removed, step_id=step_id, after_number=upto)
        flow.draft.send(RUN_INTERNAL, flow.key, rest)


# Going on -----------------------------------------------------------------------------------------------------------


def _resume_all(flow: Flow, removed: Breakpoint) -> None:
    """Resume the attempts that a deleted breakpoint has held and no other one holds."""
    for (_, step_id), row in list(flow.state.steps.prefix((flow.key,))):
        if row.status is not StepStatus.PAUSED or row.run_id != flow.run.run_id:
            continue
        if matches(removed, step_id, row.attempt) and not matching(flow.run.breakpoints, step_id, row.attempt):
            flow.pass_on(step_id)


def resume(flow: Flow, request: c.ActOnStep) -> None:
    """Resume a paused attempt, with parameters that replace those it has, if any are given."""
    step_id = request.step_id
    try:
        given = parsed_object(request.step_run_params)
        more = restarts.step_params(json_text({step_id: given}), flow.plan) if given else {}
        changed = restarts.with_step_params(flow.run.step_run_params, more)
        restarts.check_size(flow.run.params, flow.run.run_params, changed)
    except ParamError as error:
        raise invalid(str(error)) from None
    flow.draft.emit(
        c.ActionTaken(
            request_id=request.request_id,
            author=request.author,
            run_id=flow.run.run_id,
            action=request.action,
            reason=request.reason,
            at_ms=flow.now_ms,
            step_id=step_id,
            step_run_params=changed if more else None,
        )
    )
    if more:
        knowing = Flow(flow.draft, flow.cause, flow.now_ms, BEHAVIOURS)  # one that has the changed parameters
        knowing.pass_on_with_other_params(step_id)
        knowing.go_on()
    else:
        flow.pass_on(step_id)
        flow.go_on()


def check_not_paused_by(flow: Flow, step_id: str, row: StepRow) -> None:
    """Refuse a restart of children whose step would pause first: after the pause nothing would say which children."""
    hit = matching(flow.run.breakpoints, step_id, row.attempt + 1)
    if hit is not None:
        raise conflict(
            f"Expected no breakpoint on step {step_id!r} of {flow.key}, because its children are to be restarted, but "
            f"{hit.author} set one: delete it, or restart the step itself"
        )
