"""What the run strategy makes of runs that arrive together: queued, or ended at once, and others ended for them."""

from collections.abc import Sequence
from typing import Final, TypeGuard

from msgspec.structs import replace

from kapelle.processors.definitions import Rule
from kapelle.processors.workflows.displacing import displace_queued
from kapelle.processors.workflows.ending import Run, Termination, tell_of_end, terminate_running
from kapelle.processors.workflows.launching import launch_queued
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.reading import counts_of, strategy_of, there
from kapelle.processors.workflows.strategies import ALL, STRATEGIES
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus

Arrival = c.InstanceCreated | c.StartDuplicated
STOPPED: Final = InstanceStatus.STOPPED


def arrive(draft: WorkflowDraft, arrivals: Sequence[Arrival], *, now_ms: int) -> None:
    """Emit what arrives, in its order, as the strategy decides, and launch what may run."""
    entering = [one for one in arrivals if _enters(one)]
    if entering:
        rule = strategy_of(draft.state, draft.key).rule
        counts = counts_of(draft.state, draft.key)
        chosen = STRATEGIES[rule].chooses(len(entering), counts.queued + counts.running)
        only = entering[chosen] if chosen >= 0 else None
        reason = None if chosen == ALL else _make_way(draft, rule, only, now_ms=now_ms)
    for one in arrivals:
        if _enters(one) and one is not only and reason is not None:
            _stop(draft, one, reason)
        else:
            draft.emit(one)
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
            if running.action is None:
                terminate_running(draft, (instance_id, running.run_id), wanted, now_ms=now_ms)
    return reason


def _someone_alive(draft: WorkflowDraft) -> Run:
    running = draft.state.running.first((draft.key,))
    if running is not None:
        return running[0][1], running[1].run_id
    (_, instance_id, run_id), _row = there(draft.state.queue.first((draft.key,)), "queue", draft.key)
    return instance_id, run_id
