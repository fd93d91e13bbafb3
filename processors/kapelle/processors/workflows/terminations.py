"""Stopping, killing and unblocking instances, one or all of a workflow, in batches that fit into one decision."""

from heapq import merge
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kapelle.processors.decisions import LATER, Done, unchanged
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.refusals import invalid
from kapelle.processors.wiring import WORKFLOW_INTERNAL
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.queue import (
    STATUS_AFTER,
    Run,
    Termination,
    end_queued,
    launch_queued,
    request_termination,
    terminate_running,
)
from kapelle.processors.workflows.reading import counts_of, workflow_of
from kapelle.processors.workflows.restarts import instance_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus

TERMINATED_MAX: Final = 100
UNBLOCKED_MAX: Final = 100


def _check_action(action: Action) -> None:
    if action not in STATUS_AFTER:
        raise invalid(f"Expected STOP or KILL, but found {action}")


@on_draft.carries_out(c.TerminateInstance)
def terminate_instance(command: c.TerminateInstance, draft: WorkflowDraft, now_ms: int) -> Done:
    _check_action(command.action)
    instance = instance_of(draft, command.instance_id)
    if instance.status is STATUS_AFTER[command.action]:
        return unchanged(f"The run is {instance.status} already", instance_id=command.instance_id)
    if instance.status in INSTANCE_TERMINAL:
        raise invalid(
            f"Expected instance {draft.key}/{command.instance_id} to be queued or running, but it is {instance.status}"
        )
    wanted = Termination(command.request_id, command.author, command.action, command.reason)
    is_told = terminate(draft, (command.instance_id, instance.run_id), wanted, now_ms=now_ms)
    launch_queued(draft, now_ms)
    if not is_told:
        return unchanged("An earlier request is already ending the run", instance_id=command.instance_id)
    return Done(instance_id=command.instance_id, count=1)


def terminate(draft: WorkflowDraft, run: Run, wanted: Termination, *, now_ms: int) -> bool:
    """End a run that is alive, at once if it waits. Whether there was anything to tell it."""
    running = draft.state.running.get((draft.key, run[0]))
    if running is None:
        request_termination(draft, run, wanted, now_ms=now_ms)
        end_queued(draft, run, status=STATUS_AFTER[wanted.action], reason=wanted.reason, now_ms=now_ms)
    # A kill replaces a stop, but not the other way round; the same action twice has no effect.
    elif running.action in (Action.KILL, wanted.action):
        return False
    else:
        terminate_running(draft, run, wanted, now_ms=now_ms)
    return True


@on_draft.carries_out(c.TerminateInstances)
def terminate_instances(command: c.TerminateInstances, draft: WorkflowDraft, now_ms: int) -> Done:
    _check_action(command.action)
    workflow_of(draft.state, draft.key)
    upto = _upto(command, draft)
    runs = _alive(draft, max(command.after_instance_id, 0), upto)
    batch, is_last = runs[:TERMINATED_MAX], len(runs) <= TERMINATED_MAX
    wanted = Termination(command.request_id, command.author, command.action, command.reason)
    count = sum(terminate(draft, run, wanted, now_ms=now_ms) for run in batch)
    draft.emit(
        c.TerminationProgressed(
            request_id=command.request_id, workflow_id=draft.key, count=count, is_last=is_last, at_ms=now_ms
        )
    )
    # Not before the last batch, which ends the runs that would be launched.
    if is_last:
        launch_queued(draft, now_ms)
        return Done(count=command.count + count)
    # `upto` stays that of the first batch: instances that are created meanwhile are not meant.
    rest = replace(command, after_instance_id=batch[-1][0], upto_instance_id=upto, count=command.count + count)
    draft.send(WORKFLOW_INTERNAL, draft.key, rest)
    return LATER


def _upto(command: c.TerminateInstances | c.UnblockInstances, draft: WorkflowDraft) -> int:
    """The last instance that a command is about: there is none after the latest, whatever number was given."""
    latest = counts_of(draft.state, draft.key).latest_instance_id
    return latest if command.upto_instance_id is None else min(command.upto_instance_id, latest)


def _alive(draft: WorkflowDraft, after: int, upto: int) -> list[Run]:
    """The first runs of a batch and one more, queued or running, by instance."""
    if after >= upto:
        return []
    start, end = (draft.key, after + 1), (draft.key, upto + 1)
    queued = ((instance_id, run_id) for (_, instance_id, run_id), _row in draft.state.queue.range(start, end))
    running = ((instance_id, row.run_id) for (_, instance_id), row in draft.state.running.range(start, end))
    return list(islice(merge(queued, running), TERMINATED_MAX + 1))


@on_draft.carries_out(c.UnblockInstances)
def unblock_instances(command: c.UnblockInstances, draft: WorkflowDraft, now_ms: int) -> Done:
    instance_ids = _failed(command, draft)
    for instance_id in instance_ids[:UNBLOCKED_MAX]:
        draft.emit(
            c.InstanceUnblocked(
                request_id=command.request_id,
                author=command.author,
                workflow_id=draft.key,
                instance_id=instance_id,
                reason=command.reason,
                at_ms=now_ms,
            )
        )
    launch_queued(draft, now_ms)
    if len(instance_ids) > UNBLOCKED_MAX:
        rest = replace(
            command, after_instance_id=instance_ids[UNBLOCKED_MAX - 1], upto_instance_id=_upto(command, draft)
        )
        draft.send(WORKFLOW_INTERNAL, draft.key, rest)
        return LATER
    if not instance_ids and not command.after_instance_id:
        return unchanged("There is nothing to unblock", instance_id=command.instance_id)
    return Done(instance_id=command.instance_id)


def _failed(command: c.UnblockInstances, draft: WorkflowDraft) -> list[int]:
    """The instances to unblock: a batch and one more."""
    workflow = workflow_of(draft.state, draft.key)
    if command.instance_id is not None:
        status = instance_of(draft, command.instance_id).status
        if status is not InstanceStatus.FAILED:
            raise invalid(f"Expected instance {draft.key}/{command.instance_id} to have failed, but it is {status}")
        is_blocking = draft.state.failed.get((draft.key, command.instance_id)) is not None
        return [command.instance_id] * is_blocking
    after = max(command.after_instance_id, workflow.first_instance_id - 1)
    upto = _upto(command, draft)
    if after >= upto:
        return []
    rows = draft.state.failed.range((draft.key, after + 1), (draft.key, upto + 1))
    return [instance_id for (_, instance_id), _row in islice(rows, UNBLOCKED_MAX + 1)]
