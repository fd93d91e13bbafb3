"""The publishers: one processor for each public topic of changes."""

from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.publisher.streams import (
    INLINE_CHANGES,
    INSTANCE_CHANGES,
    INSTANCE_STATE,
    SIGNAL_VERDICTS,
    STEP_CHANGES,
    STEP_STATE,
    WORKFLOW_CHANGES,
    WORKFLOW_STATE,
)
from kapelle.processors.publisher.tables import Instances, Numbered, Workflows
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS

workflows: Final = Processor(
    "publisher.workflows", tables=Workflows, inputs=[WORKFLOW_EVENTS], events=WORKFLOW_CHANGES, outputs=[WORKFLOW_STATE]
)
instances: Final = Processor(
    "publisher.instances",
    tables=Instances,
    inputs=[WORKFLOW_EVENTS, INLINE_CHANGES],
    events=INSTANCE_CHANGES,
    outputs=[INSTANCE_STATE],
)
steps: Final = Processor(
    "publisher.steps", tables=Numbered, inputs=[RUN_EVENTS], events=STEP_CHANGES, outputs=[STEP_STATE, INLINE_CHANGES]
)
verdicts: Final = Processor(
    "publisher.signals", tables=Numbered, inputs=[SIGNAL_EVENTS, TRIGGER_EVENTS], events=SIGNAL_VERDICTS
)

PUBLISHERS: Final[tuple[Processor[Any], ...]] = (workflows, instances, steps, verdicts)

for _publisher in PUBLISHERS:
    _publisher.is_patient = True
