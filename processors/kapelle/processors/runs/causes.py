"""What set a run off, as far as those ask who follow a trace: a signal, a trace from outside, or neither.

A signal that a step announces says so in its source: where it is accepted nobody knows the run, and without it a trace
could not be followed from one workflow to the next.
"""

from typing import Final

import msgspec


class Initiator(msgspec.Struct):
    """What started an instance. Whoever starts one may say of themselves what they like."""

    type: str = ""
    trigger_uuid: str = ""
    signal_id_map: dict[str, int] = {}
    last_signal: str = ""
    traceparent: str = ""

    @property
    def signal(self) -> tuple[str, int] | None:
        """The name and number of the signal that a trigger fired with; of several, the one that came last."""
        signals = self.signal_id_map
        if self.type.upper() != "SIGNAL" or not self.trigger_uuid or not signals:
            return None
        # The one that came last set it off; a start that does not say which was waited for none.
        last = self.last_signal if self.last_signal in signals else next(iter(signals))
        return last, signals[last]


class Cause(msgspec.Struct, omit_defaults=True, frozen=True):
    """What is told of it beside an announced signal. A run that somebody started without a trace tells nothing."""

    signal: str = ""
    number: int = 0
    traceparent: str = ""


_decoder: Final = msgspec.json.Decoder(Initiator)


def initiator_of(text: str) -> Initiator:
    """What an initiator says. One that cannot be read says nothing."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError:
        return Initiator()


def cause_of(initiator: str) -> Cause:
    """The trace that a run came with, or the signal whose trace it is in."""
    found = initiator_of(initiator)
    if found.traceparent:
        return Cause(traceparent=found.traceparent)
    return Cause() if found.signal is None else Cause(*found.signal)
