"""What is asked of all iterations of a step at once: ending those that run, and unblocking, which changes nothing.

Ending goes in batches. A decision tells a batch of children and sends itself a command for the next one. Children that
are launched after the request are not told: the loop continues, because stopped iterations do not stop it.
"""

from msgspec.structs import replace

from kapelle.processors.decisions import LATER, Done, unchanged
from kapelle.processors.parents import INLINE
from kapelle.processors.refusals import invalid, not_found
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.composites import identity
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.runs.composites.step_endings import running_after
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.tables import FanRow
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action


@on_draft.carries_out(c.TerminateChildren)
def terminate_children(request: c.TerminateChildren, draft: RunDraft, now_ms: int) -> Done:
    """Stop or kill the iterations or the round of a step that run now."""
    if request.action not in (Action.STOP, Action.KILL):
        raise invalid(f"Expected STOP or KILL, but found {request.action}")
    fan = draft.state.fans.get((draft.key, request.step_id))
    if fan is None or fan.kind not in INLINE:
        raise not_found(f"Expected step {request.step_id!r:.80} of {draft.key} to have iterations, but it has none")
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    upto = min(request.upto_number or fan.next - 1, fan.next - 1)
    after = max(request.after_number, 0)
    numbers, looked_at = running_after(flow, request.step_id, after, upto)
    for number in numbers:
        _tell(flow, fan, request, number)
    count = request.count + len(numbers)
    if looked_at < upto:
        rest = replace(request, after_number=looked_at, upto_number=upto, count=count)
        draft.send(RUN_INTERNAL, draft.key, rest)
        return LATER
    draft.emit(
        c.ActionTaken(
            request_id=request.request_id,
            author=request.author,
            run_id=flow.run.run_id,
            action=request.action,
            reason=f"All children that run, {count} in number: {request.reason or 'no reason given'}",
            at_ms=now_ms,
            step_id=request.step_id,
        )
    )
    return Done(instance_id=flow.run.instance_id, run_id=flow.run.run_id, count=count)


def _tell(flow: Flow, fan: FanRow, request: c.TerminateChildren, number: int) -> None:
    child = flow.state.children.get((flow.key, request.step_id, number))
    if child is None:
        return
    end = c.TerminateRun(
        request_id=request.request_id,
        author=request.author,
        run_id=child.run_id,
        action=request.action,
        reason=request.reason or f"{request.author} asked for {request.action}",
    )
    flow.draft.send(RUN_INTERNAL, identity.child_key(fan.kind, flow.key, request.step_id, number), end)


@on_draft.carries_out(c.UnblockInstances)
def unblock_instances(_: c.UnblockInstances, draft: RunDraft, __: int) -> Done:
    """Change nothing: iterations and rounds are in no queue that a failed one could block."""
    run = draft.state.runs.get((draft.key,))
    if run is None or not is_inline(run.workflow_id):
        raise not_found("Expected an iteration or a round that has run, but there is none")
    reason = "Iterations and rounds are in no queue: there is nothing to unblock"
    return unchanged(reason, instance_id=run.instance_id)
