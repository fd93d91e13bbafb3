"""The public streams: changes, and the current state of each changed thing.

Changes are kept for ever and keyed as the history that they are made from. A state is the latest change of one
workflow, instance or step, by its own key, in a compacted topic. One type of record each: any sink can take them.
"""

from typing import Final

from kapelle.processors.keys import KeyForm
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas import contracts as c

WORKFLOW_CHANGES: Final = Stream("public.workflows.changes", (c.WorkflowChange,), Keep.FOR_EVER, public=True)
WORKFLOW_STATE: Final = Stream("public.workflows.state", (c.WorkflowChange,), Keep.LATEST, public=True)
INSTANCE_CHANGES: Final = Stream("public.instances.changes", (c.InstanceStatusChange,), Keep.FOR_EVER, public=True)
INSTANCE_STATE: Final = Stream("public.instances.state", (c.InstanceStatusChange,), Keep.LATEST, public=True)
STEP_CHANGES: Final = Stream("public.steps.changes", (c.StepStatusChange,), Keep.FOR_EVER, public=True)
STEP_STATE: Final = Stream("public.steps.state", (c.StepStatusChange,), Keep.LATEST, public=True)
SIGNAL_VERDICTS: Final = Stream("public.signals.verdicts", (c.SignalVerdict,), Keep.FOR_EVER, public=True)

# What happens to iterations and rounds stands in the histories of their instances, on all partitions. It comes together
# by this stream, so that a workflow has one publisher and its instances one order.
INLINE_CHANGES: Final = Stream("publisher.internal", (c.PublishInstance,), key=KeyForm.WORKFLOW)

# By the records of each topic: what a key of it is.
KEYS: Final = {
    WORKFLOW_CHANGES: "workflow",
    WORKFLOW_STATE: "workflow",
    INSTANCE_CHANGES: "workflow",
    INSTANCE_STATE: "workflow/instance",
    STEP_CHANGES: "workflow/instance",
    STEP_STATE: "workflow/instance/step",
    SIGNAL_VERDICTS: "signal name, or workflow/trigger",
}


def step_key(run_key: str, step_id: str) -> str:
    """The key of a step in the topic of current states."""
    return f"{run_key}/{step_id}"
