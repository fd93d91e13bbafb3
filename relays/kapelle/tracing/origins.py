"""The origin of a span: its trace, and its parent."""

from typing import Final

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.processors.keys import ids_in, ids_of
from kapelle.processors.parents import read_parent
from kapelle.processors.runs.causes import Cause, cause_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.tracing.ids import Ids, Trace
from kapelle.tracing.spans import Attributes

WHAT: Final = {ChildKind.FOREACH: "iteration", ChildKind.WHILE: "round"}


class Origin(msgspec.Struct, frozen=True):
    """What the spans of an instance hang on, and what they are called. `attributes` name the parent of a child."""

    trace: Trace
    parent_id: int | None
    name: str
    attributes: Attributes = {}

    @property
    def is_remote(self) -> bool:
        """Whether the parent is a stranger's span."""
        return self.parent_id is not None and self.parent_id == self.trace.parent_id


def origin_of(ids: Ids, event: c.InstanceCreated | c.RunStarted) -> Origin:
    """The origin that an instance tells of: its parent, or its initiator. One that cannot be read tells of none."""
    workflow_id, initiator = event.workflow_id, initiator_of(event.initiator)
    parent = read_parent(event.parent)
    if parent is not None:
        return _origin_of_child(ids, parent, cause_of(event.initiator), workflow_id)
    if initiator.signal is not None:
        trace = ids.trace_of_signal(*initiator.signal, initiator.traceparent)
        return Origin(trace, ids.firing(workflow_id, initiator.trigger_uuid, initiator.signal_id_map), workflow_id)
    trace = ids.trace_of_instance(workflow_id, event.instance_id, initiator.traceparent)
    return Origin(trace, trace.parent_id, workflow_id)


def _origin_of_child(ids: Ids, parent: c.Parent, cause: Cause, workflow_id: str) -> Origin:
    """The span of the attempt that has started the child, in the trace of the instance at the top."""
    run = ids.run(*ids_of(parent.key), parent.run_id)
    span_id = ids.attempt(run, parent.step_id, parent.iteration, parent.attempt)
    attributes: Attributes = {
        "kapelle.parent": parent.key,
        "kapelle.parent.run": parent.run_id,
        "kapelle.parent.step": parent.step_id,
        "kapelle.child": parent.number,
        "kapelle.root": parent.root,
    }
    name = parent.step_id if parent.kind in WHAT else workflow_id
    return Origin(_trace_of(ids, cause, ids_of(parent.root)), span_id, name, attributes)


def _trace_of(ids: Ids, cause: Cause, instance: tuple[str, int]) -> Trace:
    """The trace of an instance whose cause is known. A trace that has no other name has that of an instance."""
    if cause.signal:
        return ids.trace_of_signal(cause.signal, cause.number, None)
    return ids.trace_of_instance(*(ids_in(cause.instance) or instance), cause.traceparent)


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
        publisher = _decode(source)
    except msgspec.MsgspecError:
        return None  # anyone may announce, and say of themselves what they like
    workflow_id, instance_id, cause = publisher.workflow_id, publisher.workflow_instance_id, publisher.cause
    trace = _trace_of(ids, cause, (workflow_id, instance_id))
    run = ids.run(workflow_id, instance_id, publisher.workflow_run_id)
    attributes: Attributes = {
        "kapelle.workflow": workflow_id,
        "kapelle.instance": instance_id,
        "kapelle.run": publisher.workflow_run_id,
        "kapelle.step": publisher.step_id,
    }
    return Announcer(
        trace, ids.attempt(run, publisher.step_id, publisher.iteration, publisher.step_attempt_id), attributes
    )
