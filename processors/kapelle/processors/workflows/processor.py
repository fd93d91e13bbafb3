"""The processor object, on which the other modules register what they decide and apply."""

from typing import Final

from kapelle.processors.draft import Draft
from kapelle.processors.processor import Processor
from kapelle.processors.routes import (
    RUN_INTERNAL,
    TRIGGER_INTERNAL,
    WORKFLOW_COMMANDS,
    WORKFLOW_EVENTS,
    WORKFLOW_INTERNAL,
)
from kapelle.processors.workflows.tables import WorkflowTables

workflows: Final = Processor(
    "workflows",
    tables=WorkflowTables,
    inputs=[WORKFLOW_COMMANDS, WORKFLOW_INTERNAL],
    events=WORKFLOW_EVENTS,
    outputs=[RUN_INTERNAL, WORKFLOW_INTERNAL, TRIGGER_INTERNAL],
)


class WorkflowDraft(Draft[WorkflowTables]):
    """A decision about a workflow. It is a class, not an alias, because calling an alias costs as much as a decision's
    first look into a table."""

    trace: str | None = None  # what the command came with
