"""How runs are ended by others: those that wait at once, those that run by telling them to."""

from typing import Final

import msgspec

from kapelle.processors.routes import RUN_INTERNAL, run_key
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus

Run = tuple[int, int]  # instance id, run id
TERMINAL: Final = frozenset(
    {InstanceStatus.TIMED_OUT, InstanceStatus.STOPPED, InstanceStatus.FAILED, InstanceStatus.SUCCEEDED}
)
STATUS_AFTER: Final = {Action.STOP: InstanceStatus.STOPPED, Action.KILL: InstanceStatus.FAILED}


class Termination(msgspec.Struct, frozen=True):
    """Who wants a run to end, how, and why."""

    request_id: str
    author: str
    action: Action
    reason: str


def end_queued(draft: WorkflowDraft, run: Run, *, status: InstanceStatus, reason: str, now_ms: int) -> None:
    """End a run that waits. `runs` knows of it only if the instance has run before."""
    instance_id, run_id = run
    draft.emit(
        c.InstanceEnded(
            workflow_id=draft.key,
            instance_id=instance_id,
            run_id=run_id,
            status=status,
            was_launched=False,
            reason=reason,
            at_ms=now_ms,
        )
    )
    tell_of_end(draft, run, status=status, reason=reason)


def tell_of_end(draft: WorkflowDraft, run: Run, *, status: InstanceStatus, reason: str) -> None:
    """Tell `runs` that a run of an instance that it knows will never start."""
    instance_id, run_id = run
    if run_id > 1:
        draft.send(
            RUN_INTERNAL, run_key(draft.key, instance_id), c.EndQueuedRun(run_id=run_id, status=status, reason=reason)
        )


def request_termination(draft: WorkflowDraft, run: Run, wanted: Termination, *, now_ms: int) -> None:
    """Note who wants a run to end."""
    draft.emit(
        c.TerminationRequested(
            request_id=wanted.request_id,
            author=wanted.author,
            workflow_id=draft.key,
            instance_id=run[0],
            run_id=run[1],
            action=wanted.action,
            reason=wanted.reason,
            at_ms=now_ms,
        )
    )


def terminate_running(draft: WorkflowDraft, run: Run, wanted: Termination, *, now_ms: int) -> None:
    """Tell a running run to end. It has ended when `runs` says so."""
    request_termination(draft, run, wanted, now_ms=now_ms)
    draft.send(
        RUN_INTERNAL,
        run_key(draft.key, run[0]),
        c.TerminateRun(
            request_id=wanted.request_id,
            author=wanted.author,
            run_id=run[1],
            action=wanted.action,
            reason=wanted.reason,
        ),
    )
