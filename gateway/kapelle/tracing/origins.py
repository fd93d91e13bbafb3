"""Where an instance came from: the trace that it is in, and the span that it is a child of."""

import msgspec

from kapelle.tracing.ids import Ids, Trace


class Origin(msgspec.Struct, frozen=True):
    """What the spans of an instance hang on."""

    trace: Trace
    parent_id: int | None

    @property
    def is_remote(self) -> bool:
        """Whether the parent is a stranger's span."""
        return self.parent_id is not None and self.parent_id == self.trace.parent_id


class _Initiator(msgspec.Struct):
    """What started an instance. Whoever starts one may say of themselves what they like."""

    type: str = ""
    trigger_uuid: str = ""
    signal_id_map: dict[str, int] = {}
    last_signal: str = ""
    traceparent: str = ""


_decode = msgspec.json.Decoder(_Initiator).decode


def origin_of(ids: Ids, initiator: str, workflow_id: str, instance_id: int) -> Origin:
    """The origin that an initiator tells of. One that cannot be read tells of none."""
    try:
        found = _decode(initiator)
    except msgspec.MsgspecError:
        found = _Initiator()
    signals = found.signal_id_map
    if found.type.upper() == "SIGNAL" and found.trigger_uuid and signals:
        # The one that came last set it off; a start that does not say which was waited for none.
        last = found.last_signal if found.last_signal in signals else next(iter(signals))
        trace = ids.trace_of_signal(last, signals[last], found.traceparent)
        return Origin(trace, ids.firing(workflow_id, found.trigger_uuid, signals))
    trace = ids.trace_of_instance(workflow_id, instance_id, found.traceparent)
    return Origin(trace, trace.parent_id)
