"""The processor `triggers`: joins signals, and starts a workflow once for each combination."""

from typing import Final

from kapelle.processors.processor import Processor
from kapelle.processors.triggers.tables import Triggers
from kapelle.processors.wiring import SIGNAL_INTERNAL, TRIGGER_EVENTS, TRIGGER_INTERNAL, WORKFLOW_INTERNAL

triggers: Final = Processor(
    "triggers",
    tables=Triggers,
    inputs=[TRIGGER_INTERNAL],
    events=TRIGGER_EVENTS,
    outputs=[SIGNAL_INTERNAL, WORKFLOW_INTERNAL, TRIGGER_INTERNAL],
)
