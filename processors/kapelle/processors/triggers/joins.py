"""Which signals join: those with equal values of their join keys.

A signal's *join value* is what it has at the join keys of its name, as compact JSON. Signals of all names of a trigger
with the same join value fire it. Of each name the one that has waited longest is taken, or the newest where the trigger
asks for that; each signal is taken at most once. Other join values are not touched, so none can be lost because another
moved ahead.
"""

from collections.abc import Mapping

import msgspec

from kapelle.processors.signals.bounds import params_in
from kapelle.processors.signals.matching import Scalar
from kapelle.processors.triggers.definition import Trigger
from kapelle.processors.triggers.tables import TriggerRow, Triggers
from kapelle.schemas import contracts as c


def join_value(trigger: Trigger, offer: c.OfferSignal) -> str | None:
    """What the partners of a signal must have too; None if it lacks one of its join keys."""
    params: Mapping[str, Scalar] = params_in(offer.params)
    keys = trigger.names[offer.name].join_keys
    if any(key not in params for key in keys):
        return None
    return msgspec.json.encode([params[key] for key in keys]).decode()


def partners(key: str, row: TriggerRow, trigger: Trigger, value: str, state: Triggers) -> dict[str, c.JoinedSignal]:
    """Of each name the signal that is next, as far as there is one. Nothing ever waits for itself alone."""
    waiting = state.waiting.get((key, row.generation, value)) if len(trigger.names) > 1 else None
    if waiting is None:
        return {}
    return {
        name: c.JoinedSignal(name=name, signal_id=signal.signal_id, sequence=signal.sequence, params=signal.params)
        for name, signal in waiting.first.items()
    }
