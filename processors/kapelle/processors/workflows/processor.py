"""The processor `workflows`: versions, properties, the queue, and one instance for each request."""

from typing import Any, Final

from kapelle.processors.decisions import Done, OnDraft, Request, Rules, repeated
from kapelle.processors.draft import Draft
from kapelle.processors.errors import WrongTransition
from kapelle.processors.instances import NEXT
from kapelle.processors.processor import Processor
from kapelle.processors.wiring import (
    PERMIT_INTERNAL,
    RUN_INTERNAL,
    TRIGGER_INTERNAL,
    WORKFLOW_COMMANDS,
    WORKFLOW_EVENTS,
    WORKFLOW_INTERNAL,
)
from kapelle.processors.workflows.bounds import check_of
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus

workflows: Final = Processor(
    "workflows",
    tables=WorkflowTables,
    inputs=[WORKFLOW_COMMANDS, WORKFLOW_INTERNAL],
    events=WORKFLOW_EVENTS,
    outputs=[RUN_INTERNAL, WORKFLOW_INTERNAL, TRIGGER_INTERNAL, PERMIT_INTERNAL],
)


# The kinds of timers: the part of their names before the first slash.
TICK: Final = "tick"
BACKFILL: Final = "backfill"


class WorkflowDraft(Draft[WorkflowTables]):
    """A decision about a workflow. It is a class, not an alias, because calling an alias costs as much as a decision's
    first look into a table."""

    def emit(self, event: Any) -> None:
        """Decide that this is now true. What changes the status of an instance must be a change that exists."""
        kind = type(event)
        if kind is c.InstanceCreated or kind is c.InstanceEnded:
            self._check(event, event.status)
        elif kind is c.InstanceLaunched:
            self._check(event, InstanceStatus.IN_PROGRESS)
        super().emit(event)

    def _check(self, event: c.InstanceCreated | c.InstanceLaunched | c.InstanceEnded, status: InstanceStatus) -> None:
        # The numbers of instances are given out here, so nobody has to look whether a first run has one before it.
        is_first = event.run_id == 1 and type(event) is c.InstanceCreated
        row = None if is_first else self.state.instances.get((self.key, event.instance_id))
        before = row.status if row is not None else None
        if status not in NEXT[before]:
            raise WrongTransition(f"{self.key}/{event.instance_id}", before or "nothing", status)


def _earlier(command: Request, draft: WorkflowDraft) -> Done | None:
    """The outcome of a request that was carried out before. A batch that goes on is no repetition."""
    if getattr(command, "after_instance_id", 0):
        return None
    answer = draft.state.answers.get((draft.key, command.request_id))
    return None if answer is None else repeated(version=answer.version)


on_draft: Final = OnDraft(workflows, WorkflowDraft, Rules(lambda key: key, _earlier, check_of))
