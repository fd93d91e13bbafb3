"""What follows when runs end by themselves: the next ones are launched."""

from kapelle.processors.workflows.deciding import CHARS_MAX, decides
from kapelle.processors.workflows.ending import TERMINAL
from kapelle.processors.workflows.launching import launch_queued
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.schemas import contracts as c


@decides(c.RecordRunEnd)
def record_run_end(command: c.RecordRunEnd, draft: WorkflowDraft, now_ms: int) -> None:
    """What is repeated, or speaks of another run than the one that runs, has no effect."""
    running = draft.state.running.get((draft.key, command.instance_id))
    if running is None or running.run_id != command.run_id or command.status not in TERMINAL:
        return
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
    launch_queued(draft, now_ms)


@decides(c.LaunchQueued)
def go_on_launching(_: c.LaunchQueued, draft: WorkflowDraft, now_ms: int) -> None:
    launch_queued(draft, now_ms)
