"""The answer to the parent when an instance arrives: it was created, or the run strategy did not admit it."""

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.keys import run_key
from kapelle.processors.parents import child_end
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.queue import answer_parent
from kapelle.processors.workflows.tables import Request
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Parent

NOT_LET_IN = "Its run strategy did not admit it"


def tell_of_arrival(draft: WorkflowDraft, parent: Parent, created: c.InstanceCreated) -> None:
    """Tell a step that its child exists, and that it has ended if the run strategy has stopped it."""
    tell_of_start(draft, parent, Request(created.instance_id, created.run_id), created.version)
    instance = draft.state.instances.get((draft.key, created.instance_id))
    if instance is not None and instance.run_id == created.run_id and instance.status in INSTANCE_TERMINAL:
        answer_parent(draft, parent, child_end(parent, created.run_id, instance.status, NOT_LET_IN))


def tell_of_start(draft: WorkflowDraft, parent: Parent, child: Request, version: int) -> None:
    """Tell a step that its child exists."""
    draft.send(
        RUN_INTERNAL,
        parent.key,
        c.RecordChildStart(
            run_id=parent.run_id,
            step_id=parent.step_id,
            attempt=parent.attempt,
            iteration=parent.iteration,
            number=parent.number,
            child=run_key(draft.key, child.instance_id),
            child_run_id=child.run_id,
            version=version,
        ),
    )
