"""Reads and checks the JSON in internal commands to `triggers`, before a decision."""

from kapelle.processors.moments import TIME_MS_MAX, TIME_MS_MIN
from kapelle.processors.params.durations import DURATION_MS_MAX
from kapelle.processors.signals.bounds import params_in
from kapelle.processors.triggers.definition import trigger_of
from kapelle.processors.triggers.processor import triggers
from kapelle.schemas import contracts as c


@triggers.reads(c.SetTrigger)
def set_trigger(command: c.SetTrigger) -> None:
    trigger = trigger_of(command.definition)
    trigger.definitions()
    if not 0 <= (trigger.expires_after_ms or 0) <= DURATION_MS_MAX:
        raise ValueError(f"its signals expire after {trigger.expires_after_ms} ms")
    if not TIME_MS_MIN <= (trigger.since_at_ms or 0) <= TIME_MS_MAX:
        raise ValueError(f"it takes signals since {trigger.since_at_ms} ms")


@triggers.reads(c.OfferSignal)
def offer_signal(command: c.OfferSignal) -> None:
    params_in(command.params)
