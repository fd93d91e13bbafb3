"""The run strategy applied to new runs: they are queued or ended at once, and other runs may be ended for them.

An arrival may displace all queued runs, however many: a batch at once, the others by later decisions. From its arrival
on, none of the displaced runs is launched, and the arrival itself waits until the last of them has ended. Runs that
arrive in the meantime are of a later generation of the queue: they wait, or displace the earlier ones in their turn.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final, TypeGuard

from msgspec.structs import replace

from kapelle.processors.definitions import Rule
from kapelle.processors.wiring import WORKFLOW_INTERNAL
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.queue import (
    Run,
    Termination,
    end_queued,
    launch_queued,
    tell_of_end,
    terminate_running,
)
from kapelle.processors.workflows.reading import counts_of, strategy_of, there
from kapelle.processors.workflows.strategies import ALL, STRATEGIES
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus

Arrival = c.InstanceCreated | c.StartDuplicated
STOPPED: Final = InstanceStatus.STOPPED
DISPLACED_MAX: Final = 100
BEFORE_ALL: Final[Run] = (0, 0)


def arrive(draft: WorkflowDraft, arrivals: Sequence[Arrival], *, now_ms: int) -> None:
    """Emit what arrives, in its order, as the strategy decides, and launch what may run."""
    entering = [arrival for arrival in arrivals if _enters(arrival)]
    if entering:
        rule = strategy_of(draft.state, draft.key).rule
        counts = counts_of(draft.state, draft.key)
        chosen = STRATEGIES[rule].chooses(len(entering), counts.queued + counts.running)
        only = entering[chosen] if chosen >= 0 else None
        reason = None if chosen == ALL else _make_way(draft, rule, only, now_ms=now_ms)
    for arrival in arrivals:
        if _enters(arrival) and arrival is not only and reason is not None:
            _stop(draft, arrival, reason)
        else:
            draft.emit(arrival)
    launch_queued(draft, now_ms)


def _enters(arrival: Arrival) -> TypeGuard[c.InstanceCreated]:
    """Whether the strategy has a say: not about repeated starts, nor about those that failed before they began."""
    return isinstance(arrival, c.InstanceCreated) and arrival.status is InstanceStatus.CREATED


def _stop(draft: WorkflowDraft, arrival: c.InstanceCreated, reason: str) -> None:
    draft.emit(replace(arrival, status=STOPPED, reason=reason))
    tell_of_end(draft, (arrival.instance_id, arrival.run_id), status=STOPPED, reason=reason)


def _make_way(draft: WorkflowDraft, rule: Rule, only: c.InstanceCreated | None, *, now_ms: int) -> str:
    """End whom the only one that gets in displaces; tell why the others are stopped."""
    if only is None:
        instance_id, run_id = _someone_alive(draft)
        return f"Stopped by {rule}: instance {instance_id} run {run_id} is queued or running"
    reason = f"Stopped by {rule}: instance {only.instance_id} run {only.run_id} was started"
    if STRATEGIES[rule].ends_queued:
        displace_queued(draft, (only.instance_id, only.run_id), reason, now_ms=now_ms)
    if STRATEGIES[rule].stops_running:
        wanted = Termination(only.request_id, only.author, Action.STOP, reason)
        for (_, instance_id), running in list(draft.state.running.prefix((draft.key,))):
            if running.action is None and running.backfill_id is None:
                terminate_running(draft, (instance_id, running.run_id), wanted, now_ms=now_ms)
    return reason


def _someone_alive(draft: WorkflowDraft) -> Run:
    # Those of a backfill are in a lane of their own: the strategy does not see them.
    for (_, instance_id), running in draft.state.running.prefix((draft.key,)):
        if running.backfill_id is None:
            return instance_id, running.run_id
    (_, instance_id, run_id), _row = there(draft.state.queue.first((draft.key,)), "queue", draft.key)
    return instance_id, run_id


# Displacing the queue -----------------------------------------------------------------------------------------------


def displace_queued(draft: WorkflowDraft, by: Run, reason: str, *, now_ms: int) -> None:
    """End all that are queued. Beyond a batch, note that they are displaced, and end the rest by and by."""
    counts = counts_of(draft.state, draft.key)
    if counts.queued > DISPLACED_MAX or counts.displaced:
        draft.emit(
            c.QueueDisplaced(workflow_id=draft.key, instance_id=by[0], run_id=by[1], count=counts.queued, at_ms=now_ms)
        )
    _end_batch(draft, BEFORE_ALL, reason, now_ms=now_ms)


@on_draft.decides(c.EndDisplaced)
def end_displaced(command: c.EndDisplaced, draft: WorkflowDraft, now_ms: int) -> None:
    """Go on, unless the queue was displaced again: then others go on from its head."""
    counts = counts_of(draft.state, draft.key)
    if not counts.displaced or counts.generation != command.generation:
        return
    after = (command.after_instance_id, command.after_run_id)
    _end_batch(draft, after, command.reason, now_ms=now_ms)
    launch_queued(draft, now_ms)


def _end_batch(draft: WorkflowDraft, after: Run, reason: str, *, now_ms: int) -> None:
    """End what is displaced among the next runs of the queue, and ask for the rest. If nothing was noted, all are."""
    noted = counts_of(draft.state, draft.key)
    end = (draft.key, noted.latest_instance_id + 1)
    rows = draft.state.queue.range((draft.key, after[0], after[1] + 1), end)
    last = after
    for (_, instance_id, run_id), row in list(islice(rows, DISPLACED_MAX)):
        last = (instance_id, run_id)
        if not noted.displaced or row.generation < noted.generation:
            end_queued(draft, last, status=InstanceStatus.STOPPED, reason=reason, now_ms=now_ms)
    if counts_of(draft.state, draft.key).displaced:
        rest = c.EndDisplaced(
            generation=noted.generation, after_instance_id=last[0], after_run_id=last[1], reason=reason
        )
        draft.send(WORKFLOW_INTERNAL, draft.key, rest)
