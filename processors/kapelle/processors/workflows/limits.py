"""The step concurrency of a workflow, told to `permits` whenever it has changed.

Messages of one workflow come in order, but the runs tell `permits` the limit as well, each as it was when its instance
was created. So a limit goes with the number of the properties that it is from, and a higher number replaces a lower
one. The numbers of a workflow that is deleted and pushed again go on from the last one.
"""

from kapelle.processors.keys import workflow_limit_key
from kapelle.processors.wiring import PERMIT_INTERNAL
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.reading import properties_of
from kapelle.processors.workflows.tables import Workflow, WorkflowTables
from kapelle.schemas import contracts as c


def step_concurrency_of(state: WorkflowTables, key: str) -> int | None:
    """How many steps of the workflow may run; None if there is no limit."""
    workflow = state.workflows.get((key,))
    properties = None if workflow is None else properties_of(state, key, workflow)
    return None if properties is None else properties.step_concurrency


def tell_limit(draft: WorkflowDraft, author: str, *, before: int | None) -> None:
    """Tell `permits` how many steps may run now, if it is another number than before."""
    limit = step_concurrency_of(draft.state, draft.key)
    if limit == before:
        return
    snapshot = (draft.state.workflows.get((draft.key,)) or Workflow()).snapshot
    told = c.LimitWorkflow(author=author, max=limit, snapshot=snapshot)
    draft.send(PERMIT_INTERNAL, workflow_limit_key(draft.key), told)
