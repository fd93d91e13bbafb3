"""Ending a composite step in two phases: its children are told to stop, and the step ends after the last of them.

So a run strategy never sees the next instance of a workflow beside children of the last one. A child that is told to
stop from above is STOPPED, whatever is done to the step. Asynchronous subworkflows are left alone: nothing waits for
them.
"""

from itertools import islice
from typing import Final

from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.composites import identity
from kapelle.processors.runs.composites.counts import IN_PROGRESS
from kapelle.processors.runs.context import REASON_CHARS_MAX, Ending, RunContext
from kapelle.processors.runs.tables import FanRow, StepRow
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, StepStatus

TOLD_MAX: Final = 100  # children, of one decision
LOOKED_AT_MAX: Final = 1_000


def take_back(context: RunContext, step_id: str, row: StepRow, ending: Ending) -> bool:
    """Tell the children of an attempt to stop. Whether none is left that the end of the attempt has to wait for."""
    fan = fan_of(context, step_id, row)
    if fan is None or not fan.is_sync:
        return True
    if fan.running == 0 and fan.due_at_ms is None:
        return True
    tell(context, step_id, fan, ending)
    return fan.running == 0


def stop_again(context: RunContext, step_id: str, fan: FanRow, number: int) -> None:
    """A child that exists only now has not been told: it may have been on its way when the others were."""
    if fan.is_sync and fan.ending is not None:
        _stop(context, step_id, fan, number, fan.ending.reason)


def is_ending(context: RunContext) -> bool:
    """Whether the run will end when the children of its steps have ended."""
    fans = (fan for _, fan in context.state.fans.prefix((context.key,)) if fan.run_id == context.run.run_id)
    return any(fan.ending is not None and not fan.ending.is_alone and fan.running > 0 for fan in fans)


def fan_of(context: RunContext, step_id: str, row: StepRow) -> FanRow | None:
    """The children of the attempt that is under way; None if it has none."""
    if row.status is not StepStatus.RUNNING:
        return None
    fan = context.state.fans.get((context.key, step_id))
    if fan is None or (fan.run_id, fan.attempt, fan.iteration) != (row.run_id, row.attempt, row.iteration):
        return None  # the children are those of an earlier attempt, which has ended
    return fan


def tell(context: RunContext, step_id: str, fan: FanRow, ending: Ending) -> None:
    """Note how the step will end, and tell the next children to stop. A timer tells the rest."""
    told = fan.ending.told if fan.ending is not None else 0
    numbers, upto = running_after(context, step_id, told, fan.total)
    context.draft.emit(
        c.StepEnding(
            run_id=fan.run_id,
            step_id=step_id,
            attempt=fan.attempt,
            iteration=fan.iteration,
            action=ending.action,
            status=ending.status,
            reason=ending.reason[:REASON_CHARS_MAX],
            is_alone=ending.is_alone,
            told=upto,
            due_at_ms=context.now_ms if upto < fan.total else None,
            at_ms=context.now_ms,
        )
    )
    for number in numbers:
        _stop(context, step_id, fan, number, ending.reason)


def running_after(context: RunContext, step_id: str, told: int, last: int) -> tuple[list[int], int]:
    """The next children that run, up to the last one, and the number up to which was looked.

    One that a person has restarted may run although the step has not come to its number.
    """
    may_send = min(TOLD_MAX, context.may_send())
    if may_send == 0:
        return [], told
    rows = context.state.children.range((context.key, step_id, told + 1), (context.key, step_id, last + 1))
    seen = list(islice(rows, LOOKED_AT_MAX + 1))
    numbers: list[int] = []
    for (_, _, number), child in seen[:LOOKED_AT_MAX]:
        if len(numbers) == may_send:
            return numbers, told
        told = number
        if child.status is IN_PROGRESS:
            numbers.append(number)
    return numbers, told if len(seen) > LOOKED_AT_MAX else last


def _stop(context: RunContext, step_id: str, fan: FanRow, number: int, reason: str) -> None:
    run = context.run
    row = context.state.children.get((context.key, step_id, number))
    if row is None:
        return
    context.sent += 1
    ancestor = f" (step {step_id!r} of {context.key})"
    reason = reason[: REASON_CHARS_MAX - len(ancestor)] + ancestor
    request_id = identity.request_of(context, Attempt(step_id, fan.attempt, fan.iteration, 0), number)
    if fan.kind is ChildKind.SUBWORKFLOW:
        end = c.EndChild(request_id, run.author, reason)
        if "/" in row.child:  # a restart goes by way of the child, and must not be overtaken
            context.draft.send(RUN_INTERNAL, row.child, end)
        else:
            context.draft.send(WORKFLOW_INTERNAL, row.child, end)
        return
    stop = c.TerminateRun(
        request_id=f"{request_id}/stop",
        author=run.author,
        run_id=row.run_id,
        action=Action.STOP,
        reason=reason,
        is_from_above=True,
    )
    context.draft.send(RUN_INTERNAL, identity.child_key(fan.kind, context.key, step_id, number), stop)
