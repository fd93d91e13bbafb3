"""What started a run, for tracing: a signal, a trace from outside, a step of another run, or none of them.

A signal that a step announces says so in its source: where it is accepted nobody knows the run, and without it a trace
could not be followed from one workflow to the next. A child says so in its initiator: however late it starts, it is in
the trace of the instance at the top of its tree.
"""

from kapelle.processors.initiators import Cause, initiator_of

__all__ = ["Cause", "cause_of", "cause_of_children"]


def cause_of(initiator: str) -> Cause:
    """The trace that a run came with, or the signal or instance whose trace it is in."""
    origin = initiator_of(initiator)
    if origin.root_cause is not None:
        return origin.root_cause
    if origin.traceparent:
        return Cause(traceparent=origin.traceparent)
    return Cause() if origin.signal is None else Cause(*origin.signal)


def cause_of_children(key: str, initiator: str) -> Cause:
    """What is handed to the children of an instance. A trace that has no other name has that of the instance."""
    cause = cause_of(initiator)
    return Cause(instance=key) if cause == Cause() else cause
