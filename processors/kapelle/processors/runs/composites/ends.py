"""The recipient of a run's end: `workflows`, which launches the next run, or the step that the run is a child of.

An iteration or a round answers its parent. A subworkflow answers by way of `workflows`, so that the parent cannot start
it again before its place in the run strategy is free.
"""

from kapelle.processors.parents import INLINE, NOTHING_GIVEN, child_end
from kapelle.processors.runs.composites.child_values import given_back
from kapelle.processors.runs.context import RunContext
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus


def tell_of_end(context: RunContext, status: InstanceStatus, reason: str) -> None:
    """The run has ended: tell the one that waits for it."""
    run, parent = context.run, context.run.parent
    values = NOTHING_GIVEN if parent is None else given_back(parent, context.key, context.state, status)
    if parent is not None and parent.kind in INLINE:
        context.draft.send(RUN_INTERNAL, parent.key, child_end(parent, run.run_id, status, reason, values=values))
    else:
        ended = c.RecordRunEnd(
            instance_id=run.instance_id, run_id=run.run_id, status=status, reason=reason, parent=parent, values=values
        )
        context.draft.send(WORKFLOW_INTERNAL, run.workflow_id, ended)
