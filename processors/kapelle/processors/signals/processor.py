"""The processor `signals`: accepts each signal once, in order of its name, and offers it to matching subscriptions."""

from typing import Final

from kapelle.processors.processor import Processor
from kapelle.processors.signals.tables import Signals
from kapelle.processors.wiring import RUN_INTERNAL, SIGNAL_EVENTS, SIGNAL_INTERNAL, TRIGGER_INTERNAL

signals: Final = Processor(
    "signals",
    tables=Signals,
    inputs=[SIGNAL_INTERNAL],
    events=SIGNAL_EVENTS,
    outputs=[SIGNAL_INTERNAL, TRIGGER_INTERNAL, RUN_INTERNAL],
)
