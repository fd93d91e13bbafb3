"""What follows when runs end by themselves: the next ones are launched."""

from collections.abc import Iterable

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.routes import WORKFLOW_INTERNAL
from kapelle.processors.workflows.deciding import CHARS_MAX, decides
from kapelle.processors.workflows.ending import TERMINAL
from kapelle.processors.workflows.launching import launch_queued
from kapelle.processors.workflows.processor import WorkflowDraft, workflows
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import contracts as c


@decides(c.RecordRunEnd)
def record_run_end(command: c.RecordRunEnd, draft: WorkflowDraft, now_ms: int) -> None:
    """What is repeated, or speaks of another run than the one that runs, has no effect."""
    running = draft.state.running.get((draft.key, command.instance_id))
    if running is None or running.run_id != command.run_id or command.status not in TERMINAL:
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


@workflows.gives_up(c.RecordRunEnd)
def end_only(message: Message[c.RecordRunEnd], _: str, state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
    """The end is true even if launching the next runs takes too long: those are launched by a decision of their own."""
    command, draft = message.value, WorkflowDraft(workflows, message.key, state)
    running = state.running.get((message.key, command.instance_id))
    if running is not None and running.run_id == command.run_id and command.status in TERMINAL:
        _end(command, draft, now_ms)
        draft.send(WORKFLOW_INTERNAL, message.key, c.LaunchQueued())
    return draft.effects


@decides(c.LaunchQueued)
def go_on_launching(_: c.LaunchQueued, draft: WorkflowDraft, now_ms: int) -> None:
    launch_queued(draft, now_ms)
