"""How an arrival displaces all that are queued, however many: a batch at once, the others by decisions of their own.

From the moment that it arrives nothing of what it displaces is launched, and neither is it itself until the last of
them has ended. What arrives meanwhile is of a later generation of the queue: it waits, or displaces them in its turn.
"""

from itertools import islice
from typing import Final

from kapelle.processors.routes import WORKFLOW_INTERNAL
from kapelle.processors.workflows.deciding import decides
from kapelle.processors.workflows.ending import Run, end_queued
from kapelle.processors.workflows.launching import launch_queued
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.reading import counts_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus

DISPLACED_MAX: Final = 100
BEFORE_ALL: Final[Run] = (0, 0)


def displace_queued(draft: WorkflowDraft, by: Run, reason: str, *, now_ms: int) -> None:
    """End all that are queued. Beyond a batch, note that they are displaced, and end the rest by and by."""
    counts = counts_of(draft.state, draft.key)
    if counts.queued > DISPLACED_MAX or counts.displaced:
        draft.emit(c.QueueDisplaced(draft.key, by[0], by[1], counts.queued, now_ms))
    _end_batch(draft, BEFORE_ALL, reason, now_ms=now_ms)


@decides(c.EndDisplaced)
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
        rest = c.EndDisplaced(noted.generation, last[0], last[1], reason)
        draft.send(WORKFLOW_INTERNAL, draft.key, rest)
