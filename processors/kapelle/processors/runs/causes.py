"""What started a run, for tracing: a signal, a trace from outside, or neither.

A signal that a step announces says so in its source: where it is accepted nobody knows the run, and without it a trace
could not be followed from one workflow to the next.
"""

import msgspec

from kapelle.processors.initiators import initiator_of


class Cause(msgspec.Struct, omit_defaults=True, frozen=True):
    """What is told of it beside an announced signal. A run that somebody started without a trace tells nothing."""

    signal: str = ""
    number: int = 0
    traceparent: str = ""


def cause_of(initiator: str) -> Cause:
    """The trace that a run came with, or the signal whose trace it is in."""
    found = initiator_of(initiator)
    if found.traceparent:
        return Cause(traceparent=found.traceparent)
    return Cause() if found.signal is None else Cause(*found.signal)
