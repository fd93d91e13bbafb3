"""Where something came from: the trace that it is in, and the span that it is a child of."""

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.processors.runs.causes import Cause
from kapelle.tracing.ids import Ids, Trace
from kapelle.tracing.spans import Attributes


class Origin(msgspec.Struct, frozen=True):
    """What the spans of an instance hang on."""

    trace: Trace
    parent_id: int | None

    @property
    def is_remote(self) -> bool:
        """Whether the parent is a stranger's span."""
        return self.parent_id is not None and self.parent_id == self.trace.parent_id


def origin_of(ids: Ids, initiator: str, workflow_id: str, instance_id: int) -> Origin:
    """The origin that an initiator tells of. One that cannot be read tells of none."""
    found = initiator_of(initiator)
    if found.signal is not None:
        trace = ids.trace_of_signal(*found.signal, found.traceparent)
        return Origin(trace, ids.firing(workflow_id, found.trigger_uuid, found.signal_id_map))
    trace = ids.trace_of_instance(workflow_id, instance_id, found.traceparent)
    return Origin(trace, trace.parent_id)


class Announcer(msgspec.Struct, frozen=True):
    """The step that announced a signal: the trace that it is in, and its span."""

    trace: Trace
    span_id: int
    attributes: Attributes


class _Source(msgspec.Struct):
    """The step that announced a signal, and what had set its run off."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    iteration: int
    cause: Cause


_decode = msgspec.json.Decoder(_Source).decode


def announcer_of(ids: Ids, source: str) -> Announcer | None:
    """The step that announced a signal, if one did."""
    try:
        found = _decode(source)
    except msgspec.MsgspecError:
        return None  # anyone may announce, and say of themselves what they like
    workflow_id, instance_id, cause = found.workflow_id, found.workflow_instance_id, found.cause
    if cause.signal:
        trace = ids.trace_of_signal(cause.signal, cause.number, None)
    else:
        trace = ids.trace_of_instance(workflow_id, instance_id, cause.traceparent)
    run = ids.run(workflow_id, instance_id, found.workflow_run_id)
    attributes: Attributes = {
        "kapelle.workflow": workflow_id,
        "kapelle.instance": instance_id,
        "kapelle.run": found.workflow_run_id,
        "kapelle.step": found.step_id,
    }
    return Announcer(trace, ids.attempt(run, found.step_id, found.iteration, found.step_attempt_id), attributes)
