"""The processor `intake`: reads signals in any form, and sends each to the partition of its name."""

from typing import Final

from kapelle.processors.intake.tables import Intake
from kapelle.processors.processor import Processor
from kapelle.processors.wiring import INTAKE_EVENTS, SIGNAL_INTERNAL, SIGNALS

intake: Final = Processor("intake", tables=Intake, inputs=[SIGNALS], events=INTAKE_EVENTS, outputs=[SIGNAL_INTERNAL])
