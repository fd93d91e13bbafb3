"""Instances that are children of a subworkflow step, and the answers to their parents.

A child is an instance like any other: it has a version, parameters and a place in the queue. Its parent is told

1. that it exists, or why it does not;
2. that it has ended, wherever that happens: on arrival, in the queue, or after a run.

The parent stands in a record of its own that only the engine writes. It is never read from the initiator, which the
caller of a start writes.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from kapelle.processors.effects import Effect
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.parents import child_end
from kapelle.processors.refusals import Refused
from kapelle.processors.workflows.arrivals import arrive
from kapelle.processors.workflows.parents import tell_of_arrival, tell_of_start
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft, workflows
from kapelle.processors.workflows.queue import Termination, answer_parent, launch_queued
from kapelle.processors.workflows.requests import BY_PARENTS
from kapelle.processors.workflows.starts import Batch
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.processors.workflows.terminations import terminate
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus


@on_draft.decides(c.StartChild)
def start_child(command: c.StartChild, draft: WorkflowDraft, now_ms: int) -> None:
    """Create the child, if the workflow takes it. The same request again gives the same child."""
    known = draft.state.requests.get((draft.key, command.request_id))
    if known is None:
        start = c.Start(
            request_id=command.request_id,
            version=command.version,
            initiator=command.initiator,
            run_params=command.run_params,
            correlation_id=command.correlation_id,
        )
        try:
            whole = c.StartInstances(command.author, (start,))
            arrivals = Batch(whole, draft, now_ms, started_by=BY_PARENTS).arrivals()
        except Refused as refused:
            answer_parent(draft, command.parent, child_end(command.parent, 0, InstanceStatus.FAILED, _said(refused)))
            return
        created = [
            replace(arrival, parent=command.parent) for arrival in arrivals if isinstance(arrival, c.InstanceCreated)
        ]
        arrive(draft, created, now_ms=now_ms)
        tell_of_arrival(draft, command.parent, created[0])
        return
    # The start was carried out before. The step that asks again has not heard of it.
    tell_of_start(draft, command.parent, known, 0)


def _said(refused: Refused) -> str:
    return "; ".join((refused.message, *refused.errors))


@workflows.gives_up(c.StartChild)
def start_given_up(message: Message[c.StartChild], reason: str, state: WorkflowTables, _: int) -> Iterable[Effect]:
    """The child is refused."""
    draft = WorkflowDraft(workflows, message.key, state)
    parent = message.value.parent
    answer_parent(draft, parent, child_end(parent, 0, InstanceStatus.FAILED, reason))
    return draft.effects


@on_draft.decides(c.EndChild)
def end_child(command: c.EndChild, draft: WorkflowDraft, now_ms: int) -> None:
    """Stop the child, if it has not ended. Its end is told like any other."""
    known = draft.state.requests.get((draft.key, command.request_id))
    instance = None if known is None else draft.state.instances.get((draft.key, known.instance_id))
    if known is None or instance is None or instance.run_id != known.run_id or instance.status in INSTANCE_TERMINAL:
        return
    wanted = Termination(command.request_id, command.author, Action.STOP, command.reason, is_from_above=True)
    terminate(draft, (known.instance_id, known.run_id), wanted, now_ms=now_ms)
    launch_queued(draft, now_ms)
