"""The children of a composite step: planned when the step begins, launched as its window allows, counted as they end.

1. A step plans its children once for each attempt. What an earlier attempt or run has left is kept, counted again, or
   run again, as the restart says.
2. Children are launched in the order of their numbers. A decision launches at most a batch; a timer goes on, in turns
   with other workflows.
3. A child answers with the run that it was asked for. Any other answer changes nothing.
4. The step ends when no child runs and none will be launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.composites import counts, identity
from kapelle.processors.runs.composites.step_endings import tell
from kapelle.processors.runs.context import Ending, Params, RunContext
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.plan import StepPlan, digest_of
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import ChildRow, FanRow, Runs, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, RestartPolicy, StepStatus

LOOKED_AT_MAX: Final = 1_000  # numbers, of one decision
INPUTS_CACHED: Final = 32


class Start(Protocol):
    """Sends the start of one child, which may go on with what is incomplete."""

    def __call__(self, number: int, row: ChildRow | None, *, is_resumed: bool) -> None: ...


class Planned(msgspec.Struct, frozen=True):
    """Which children a step wants."""

    kind: ChildKind
    total: int
    window: int = 0
    is_strict: bool = False
    is_sync: bool = True
    values: str = "{}"
    next: int = 1


def is_too_deep(context: RunContext) -> str | None:
    """Why a step of this run cannot have children; None if it can."""
    depth = context.run.parent.depth + 1 if context.run.parent else 1
    if depth <= identity.ANCESTORS_MAX:
        return None
    return f"Expected at most {identity.ANCESTORS_MAX} ancestors of a child, but it would have {depth}"


class Keep(StrEnum):
    """What a step keeps of the children that earlier attempts and runs have left."""

    NOTHING = "NOTHING"  # all are run again
    SUCCEEDED = "SUCCEEDED"  # the others are run again
    ALL = "ALL"  # only one is run again, and those that were never launched


def begin(flow: Flow, launch: Launch, planned: Planned, keep: Keep) -> None:
    """The step runs, and has planned its children."""
    step, attempt = launch.step, launch.attempt
    flow.change(
        attempt,
        (*launch.passed, StepStatus.RUNNING),
        params=launch.params_to_note,
        timeout_at_ms=flow.timeout_at_ms(step),
    )
    before = flow.state.fans.get((flow.key, attempt.step_id))
    # Counted over all runs, because `kept_since` and `counted_since` compare children of different attempts.
    fan_run = 1 if before is None else before.fan_run + 1
    flow.draft.emit(
        c.ChildrenPlanned(
            run_id=flow.run.run_id,
            step_id=attempt.step_id,
            attempt=attempt.attempt,
            iteration=attempt.iteration,
            kind=planned.kind,
            total=planned.total,
            window=planned.window,
            is_strict=planned.is_strict,
            is_sync=planned.is_sync,
            fan_run=fan_run,
            kept_since=before.kept_since if before is not None and keep is not Keep.NOTHING else fan_run,
            counted_since=before.counted_since if before is not None and keep is Keep.ALL else fan_run,
            next=planned.next,
            digest=digest_of(launch.params_json),
            values=planned.values,
            downstream_policy=downstream(flow, attempt.step_id),
            at_ms=flow.now_ms,
        )
    )


def is_first_of_run(flow: Flow, step_id: str) -> bool:
    """Whether the step has had no children in this run: a restart is about the first ones, not about later attempts."""
    before = flow.state.fans.get((flow.key, step_id))
    return before is None or before.run_id < flow.run.run_id


def is_resumed(flow: Flow, attempt: Attempt) -> bool:
    """Whether a step that was not complete is restarted, by the run or by a person, and has children to keep."""
    before = flow.state.fans.get((flow.key, attempt.step_id))
    if before is None or before.is_discarded:
        return False
    return attempt.attempt > 1 or (attempt.step_id in flow.run.resumes and before.run_id < flow.run.run_id)


def _restart_of(flow: Flow, step_id: str) -> Restart | None:
    """The restart by which a step begins now: of the step alone, or of the run."""
    if flow.descends is not None and flow.descends.first_step == step_id:
        return flow.descends
    if flow.run.restart is not None and is_first_of_run(flow, step_id):
        return Restart.parse(flow.run.restart)
    return None


def is_named(flow: Flow, step_id: str) -> bool:
    """Whether a restart is asked for this step, and not for something around it, before it or inside it."""
    restart = _restart_of(flow, step_id)
    return restart is not None and not restart.path and restart.step_id == step_id


def downstream(flow: Flow, step_id: str) -> RestartPolicy | None:
    """How the children of a step restart that run again but did not succeed; None if nobody has said so."""
    restart = _restart_of(flow, step_id)
    return None if restart is None else restart.downstream


def on_path(flow: Flow, step_id: str) -> tuple[int, Restart] | None:
    """The child of a step that a restart further down is on its way to, and how it is restarted."""
    restart = _restart_of(flow, step_id)
    if restart is None or not restart.path or restart.path[0].step_id != step_id:
        return None
    number = restart.path[0].number
    before, child = flow.state.fans.get((flow.key, step_id)), flow.state.children.get((flow.key, step_id, number))
    return (number, restart.below()) if counts.belongs(before, number, child) else None


def refuse(flow: Flow, launch: Launch, reason: str) -> None:
    """The step has begun, and cannot have children: it fails like work that fails, so its failure mode counts."""
    flow.change(launch.attempt, (*launch.passed, StepStatus.RUNNING), params=launch.params_to_note)
    flow.fail_for_good(launch.step, launch.attempt, StepStatus.FATALLY_FAILED, reason)


def give_up(flow: Flow, step: StepPlan, reason: str) -> None:
    """The step runs, and no more children can be started: it fails when those that run have been stopped."""
    row = flow.row(step.step.id)
    if row is not None and flow.take_back(step.step.id, row, Ending(Action.KILL, StepStatus.FATALLY_FAILED, reason)):
        flow.fail_for_good(step, attempt_of(step.step.id, row), StepStatus.FATALLY_FAILED, reason)


# Launching ----------------------------------------------------------------------------------------------------------


def launch_children(flow: Flow, step: StepPlan, start: Start, *, weight: int) -> None:
    """Launch as many children as the window and one decision allow. End the step if there is nothing to wait for."""
    step_id = step.step.id
    fan = fan_at(flow, step_id)
    numbers, following = _next(flow, step_id, fan, weight)
    # Read before the launch is noted, which overwrites the rows.
    before = {number: flow.state.children.get((flow.key, step_id, number)) for number in numbers}
    note_launch(flow, step_id, fan, numbers, following)
    for number, row_before in before.items():
        # One that has not run since the step began from the beginning begins from the beginning too.
        is_resumed = row_before is not None and row_before.fan_run >= fan.kept_since
        start(number, flow.state.children.get((flow.key, step_id, number)), is_resumed=is_resumed)
    after, row = fan_at(flow, step_id), flow.row(step_id)
    if counts.is_over(after) and row is not None:  # all are kept
        finish(flow, step, row, after)


def note_launch(flow: Flow, step_id: str, fan: FanRow, numbers: Sequence[int], following: int) -> None:
    """Children are launched. If there is room for more, a timer launches them."""
    # Counted as `apply` will: a timer must be set exactly if there is room left.
    after = counts.with_launched(fan, numbers, next_number=following)
    for number in numbers:
        row = flow.state.children.get((flow.key, step_id, number))
        after = after if row is None else counts.without(after, row)
    flow.draft.emit(
        c.ChildrenLaunched(
            run_id=fan.run_id,
            step_id=step_id,
            attempt=fan.attempt,
            iteration=fan.iteration,
            numbers=tuple(numbers),
            next=following,
            due_at_ms=flow.now_ms if fan.kind is ChildKind.FOREACH and counts.room(after) else None,
            at_ms=flow.now_ms,
        )
    )


def _next(flow: Flow, step_id: str, fan: FanRow, weight: int) -> tuple[list[int], int]:
    """The numbers of the next children to launch, and the first number that was not looked at."""
    wanted, number = min(counts.room(fan), flow.may_send(weight)), fan.next
    numbers: list[int] = []
    last = min(fan.total, fan.next + LOOKED_AT_MAX - 1)
    while number <= last and len(numbers) < wanted:
        if not counts.is_kept(fan, flow.state.children.get((flow.key, step_id, number))):
            numbers.append(number)
        number += 1
    return numbers, number


def inputs_text(context: RunContext, step_id: str) -> str:
    """The parameters of the attempt that is under way, as they are written."""
    row = context.state.inputs.get((context.key, step_id))
    return "{}" if row is None else row.text


def inputs_of(flow: Flow, step: StepPlan, fan: FanRow) -> Params:
    """The parameters of a step that has children. They may hold thousands of loop values, and are read for each batch
    of children: so those used last are kept, by their digest."""
    inputs = _inputs.get(fan.digest)
    if inputs is None:
        while len(_inputs) >= INPUTS_CACHED:
            del _inputs[next(iter(_inputs))]
        inputs = _inputs[fan.digest] = flow.inputs(step)
    return inputs


_inputs: Final[dict[str, Params]] = {}


def fan_at(context: RunContext, step_id: str) -> FanRow:
    """The children of a step that has planned them."""
    fan = context.state.fans.get((context.key, step_id))
    if fan is None:
        raise ValueError(f"Expected step {step_id!r} of {context.key!r} to have children, but it has none")
    return fan


# Ends ---------------------------------------------------------------------------------------------------------------


def end_of(fan: FanRow, end: c.RecordChildEnd, oldest: int, now_ms: int) -> c.ChildEnded:
    """The event that a child has ended. If there is room, a timer launches more; a failure takes it back."""
    after = counts.with_ended(fan, end.status, oldest=oldest)
    due_at_ms = fan.due_at_ms
    # While the step ends, its timer is the one that tells the next children to stop.
    if fan.ending is None:
        has_room = fan.kind is ChildKind.FOREACH and counts.room(after) > 0
        due_at_ms = (due_at_ms or now_ms) if has_room else None
    return c.ChildEnded(
        run_id=fan.run_id,
        step_id=end.step_id,
        attempt=fan.attempt,
        iteration=fan.iteration,
        number=end.number,
        child_run_id=end.child_run_id,
        status=end.status,
        reason=end.reason,
        values=end.values,
        oldest=oldest,
        due_at_ms=due_at_ms,
        at_ms=now_ms,
    )


def finish(flow: Flow, step: StepPlan, row: StepRow, fan: FanRow) -> None:
    """No child runs and none will: the step ends as it was told to, or as its children have."""
    attempt = attempt_of(step.step.id, row)
    # The requested end counts: the children ended as STOPPED because of it.
    if fan.ending is not None:
        told = fan.ending
        _end_as_told(flow, step, attempt, Ending(told.action, told.status, told.reason, told.is_alone))
        return
    worst = next((status for status, count in _worst(fan) if count), None)
    if worst is None:
        flow.finish(step, attempt, (StepStatus.FINISHING,), flow.inputs(step))
    else:
        flow.fail_for_good(step, attempt, worst, _reason(flow, step.step.id, fan, worst))


def _worst(fan: FanRow) -> tuple[tuple[StepStatus, int], ...]:
    return (
        (StepStatus.FATALLY_FAILED, fan.failed),
        (StepStatus.TIMED_OUT, fan.timed_out),
        (StepStatus.STOPPED, fan.stopped),
    )


def _end_as_told(flow: Flow, step: StepPlan, attempt: Attempt, ending: Ending) -> None:
    if not ending.is_alone:
        flow.change(attempt, (ending.status,), reason=ending.reason)
    elif ending.action is Action.SKIP:
        flow.skip(step, attempt, (), ending.reason)
    else:
        flow.fail_for_good(step, attempt, ending.status, ending.reason)


# What a child's end makes of the step.
OF_CHILD: Final[Mapping[StepStatus, InstanceStatus]] = {
    StepStatus.FATALLY_FAILED: InstanceStatus.FAILED,
    StepStatus.TIMED_OUT: InstanceStatus.TIMED_OUT,
    StepStatus.STOPPED: InstanceStatus.STOPPED,
}


def _reason(flow: Flow, step_id: str, fan: FanRow, status: StepStatus) -> str:
    """How many children ended like this, and why the first of them did."""
    wanted = OF_CHILD[status]
    rows = flow.state.children.prefix((flow.key, step_id))
    number, child = next(((number, row) for (_, _, number), row in rows if row.status is wanted), (0, None))
    why = f": {child.reason}" if child is not None and child.reason else ""
    if fan.kind is ChildKind.SUBWORKFLOW:
        name = child.child if child is not None and child.child else "the subworkflow"
        return f"{name} {wanted}{why}"
    what = "iteration" if fan.kind is ChildKind.FOREACH else "round"
    ended = dict(_worst(fan))
    if ended[status] > 1:
        return f"{ended[status]} {what}s {wanted}, first {number}{why}"
    return f"{what.capitalize()} {number} {wanted}{why}"


def oldest_after(state: Runs, at: tuple[str, str], fan: FanRow, number: int) -> int:
    """The lowest number that still runs after this one has ended. Only a strict order with a window asks for it.

    The window begins at the oldest one, so at most the window and the numbers that one decision looks at lie behind it.
    """
    if not fan.is_strict or fan.window == 0 or number != fan.oldest:
        return fan.oldest
    number += 1
    while number < fan.next:
        row = state.children.get((*at, number))
        if row is not None and row.status is counts.IN_PROGRESS:
            return number
        number += 1
    return number


def kill(flow: Flow, step_id: str, fan: FanRow, reason: str) -> None:
    """The step fails at once: its children are stopped first."""
    tell(flow, step_id, fan, Ending(Action.KILL, StepStatus.FATALLY_FAILED, reason))
