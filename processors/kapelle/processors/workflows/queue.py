"""The queue of a workflow: how runs leave it, launched or ended, and what follows when a run ends.

1. Runs are launched from the head of the queue, as many as the run strategy allows.
2. A queued run is ended at once. A running one is told to end, and has ended when `runs` reports it.
3. The end of a run launches the next ones.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from kapelle.processors.effects import Effect
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.parents import child_end
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL, run_key
from kapelle.processors.workflows.bounds import CHARS_MAX
from kapelle.processors.workflows.breakpoints import breakpoints_of, is_for
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft, workflows
from kapelle.processors.workflows.reading import counts_of, definition_of, strategy_of, there
from kapelle.processors.workflows.strategies import LAUNCHES_MAX, launchable
from kapelle.processors.workflows.tables import Origin, Queued, WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Parent

SNAPSHOTS_CACHED: Final = 1024
Run = tuple[int, int]  # instance id, run id
STATUS_AFTER: Final = {Action.STOP: InstanceStatus.STOPPED, Action.KILL: InstanceStatus.FAILED}


# Launching ----------------------------------------------------------------------------------------------------------


def launch_queued(draft: WorkflowDraft, now_ms: int) -> None:
    """Launch all that may run. Beyond a batch, ask for the rest to be launched by a decision of its own."""
    counts = counts_of(draft.state, draft.key)
    if not counts.queued:
        return
    count = launchable(strategy_of(draft.state, draft.key), counts)
    if not count:  # most starts into a long queue end here: not even the head of the queue is looked for
        return
    present = breakpoints_of(draft.state, draft.key) if counts.breakpoints else ()
    first = islice(draft.state.queue.prefix((draft.key,)), min(count, LAUNCHES_MAX))
    # A list, because a launch removes rows from the queue.
    for (_, instance_id, run_id), queued in list(first):
        _launch(draft, (instance_id, run_id), queued, present, now_ms=now_ms)
    if count > LAUNCHES_MAX:
        draft.send(WORKFLOW_INTERNAL, draft.key, c.LaunchQueued())


def launch(draft: WorkflowDraft, run: Run, *, now_ms: int) -> None:
    """Launch a run that has just been created, whatever the queue holds: it is in a lane of its own."""
    queued = there(draft.state.queue.get((draft.key, *run)), "queue", draft.key, *run)
    present = breakpoints_of(draft.state, draft.key) if counts_of(draft.state, draft.key).breakpoints else ()
    _launch(draft, run, queued, present, now_ms=now_ms)


def _launch(
    draft: WorkflowDraft, run: Run, queued: Queued, breakpoints: Sequence[c.Breakpoint], *, now_ms: int
) -> None:
    instance_id, run_id = run
    origin = queued.origin
    if origin is None:
        origin = there(draft.state.origins.get((draft.key, instance_id)), "origins", draft.key, instance_id)
    draft.emit(c.InstanceLaunched(workflow_id=draft.key, instance_id=instance_id, run_id=run_id, at_ms=now_ms))
    draft.send(
        RUN_INTERNAL,
        run_key(draft.key, instance_id),
        c.StartRun(
            workflow_id=draft.key,
            instance_id=instance_id,
            run_id=run_id,
            request_id=queued.request_id,
            version=origin.version,
            definition=definition_of(draft.state, draft.key, origin.version),
            initiator=origin.initiator,
            params=queued.params or origin.params or "{}",
            run_params=origin.run_params if queued.run_params is None else queued.run_params,
            step_run_params=origin.step_run_params,
            run_properties=_run_properties(draft, origin),
            correlation_id=origin.correlation_id,
            restart=queued.restart,
            author=queued.author,
            parent=queued.parent,
            breakpoints=tuple(point for point in breakpoints if is_for(point, origin.version, instance_id, run_id)),
            breakpoints_generation=counts_of(draft.state, draft.key).breakpoints_generation,
        ),
    )


def _run_properties(draft: WorkflowDraft, origin: Origin) -> str:
    """The properties as they were when the instance was created."""
    snapshot = draft.state.properties.get((draft.key, origin.snapshot))
    return "{}" if snapshot is None else run_properties(snapshot.text, origin.snapshot, origin.runtime_tags)


@lru_cache(maxsize=SNAPSHOTS_CACHED)
def run_properties(snapshot: str, number: int, runtime_tags: str) -> str:
    """What a run carries of the properties: owner, alerting, step concurrency and tags. What is absent is unset.

    With the step concurrency goes the number of the properties: `permits` uses that of the latest it has heard of.
    """
    whole = msgspec.json.decode(snapshot)
    kept = {name: whole[name] for name in ("owner", "alerting", "step_concurrency", "tags") if name in whole}
    if "step_concurrency" in kept:
        kept["step_concurrency_snapshot"] = number
    return msgspec.json.encode({**kept, "runtime_tags": msgspec.json.decode(runtime_tags)}).decode()


# Ending by others ---------------------------------------------------------------------------------------------------


class Termination(msgspec.Struct, frozen=True):
    """Who wants a run to end, how, and why."""

    request_id: str
    author: str
    action: Action
    reason: str
    is_from_above: bool = False  # the step ends that the instance is a child of


def end_queued(draft: WorkflowDraft, run: Run, *, status: InstanceStatus, reason: str, now_ms: int) -> None:
    """End a run that waits. `runs` knows of it only if the instance has run before."""
    instance_id, run_id = run
    # Read before the event, which removes the row.
    queued = draft.state.queue.get((draft.key, instance_id, run_id))
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
    if queued is not None and queued.parent is not None:
        answer_parent(draft, queued.parent, child_end(queued.parent, run_id, status, reason))


def answer_parent(draft: WorkflowDraft, parent: Parent, end: c.RecordChildEnd) -> None:
    """Tell the step that started an instance that a run of it has ended, if the step waits for it.

    A refusal is told also to a step that would not have waited: it waits for the child to exist.
    """
    if parent.is_sync or not end.child_run_id:
        draft.send(RUN_INTERNAL, parent.key, end)


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
            is_from_above=wanted.is_from_above,
        ),
    )


# Ends that `runs` reports -------------------------------------------------------------------------------------------


@on_draft.decides(c.RecordRunEnd)
def record_run_end(command: c.RecordRunEnd, draft: WorkflowDraft, now_ms: int) -> None:
    """What is repeated, or speaks of another run than the one that runs, has no effect."""
    running = draft.state.running.get((draft.key, command.instance_id))
    if running is None or running.run_id != command.run_id or command.status not in INSTANCE_TERMINAL:
        return
    _end(command, draft, now_ms)
    launch_queued(draft, now_ms)


def _end(command: c.RecordRunEnd, draft: WorkflowDraft, now_ms: int) -> None:
    draft.emit(
        c.InstanceEnded(
            workflow_id=draft.key,
            instance_id=command.instance_id,
            run_id=command.run_id,
            status=command.status,
            was_launched=True,
            reason=command.reason[: CHARS_MAX["reason"]],
            at_ms=now_ms,
        )
    )
    if command.parent is not None:
        end = child_end(command.parent, command.run_id, command.status, command.reason, values=command.values)
        answer_parent(draft, command.parent, end)


@workflows.gives_up(c.RecordRunEnd)
def end_only(message: Message[c.RecordRunEnd], _: str, state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
    """The end is true even if launching the next runs takes too long: those are launched by a decision of their own."""
    command, draft = message.value, WorkflowDraft(workflows, message.key, state)
    running = state.running.get((message.key, command.instance_id))
    if running is not None and running.run_id == command.run_id and command.status in INSTANCE_TERMINAL:
        _end(command, draft, now_ms)
        draft.send(WORKFLOW_INTERNAL, message.key, c.LaunchQueued())
    return draft.effects


@on_draft.decides(c.LaunchQueued)
def go_on_launching(_: c.LaunchQueued, draft: WorkflowDraft, now_ms: int) -> None:
    launch_queued(draft, now_ms)
