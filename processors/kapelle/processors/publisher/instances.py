"""`publisher.instances`: the statuses of instances, from their creation to the end of each of their runs.

| event | status |
|---|---|
| `InstanceCreated` | what it says: CREATED, or STOPPED or FAILED if the run will never begin |
| `InstanceLaunched` | IN_PROGRESS |
| `InstanceEnded` | what it says |
| `PublishInstance` | what it says: IN_PROGRESS, or how it ended |

The first three are events of the workflow, so its instances have one order. What a record says beside its status is in
the event that created the run: it is kept until the run has ended.

Iterations and rounds have no such events, because they have no queue. `publisher.steps` reads their starts and ends in
the histories of the instances, and sends them here as `PublishInstance`, by the key of their workflow. Here they get
their numbers, so that there is one writer and one order for each workflow. Of one instance they arrive in the order of
its history.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.publisher.processor import instances
from kapelle.processors.publisher.sources import initiator_type, next_number, source_of
from kapelle.processors.publisher.streams import INSTANCE_STATE
from kapelle.processors.publisher.tables import Above, Instances, Live
from kapelle.processors.wiring import run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InitiatorType, InstanceStatus

CREATED: Final = InstanceStatus.CREATED
IN_PROGRESS: Final = InstanceStatus.IN_PROGRESS
OfInstance = c.InstanceCreated | c.InstanceLaunched | c.InstanceEnded | c.PublishInstance
UNKNOWN: Final = Live(0, 0, InitiatorType.OTHER, "", "", "", 0)  # of a run whose beginning is no longer in the history


@instances.decides(c.InstanceCreated)
def publish_creation(message: Message[c.InstanceCreated], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    live = Live(
        run_id=event.run_id,
        version=event.version,
        initiator=initiator_type(event.initiator),
        author=event.author,
        request_id=event.request_id,
        correlation_id=event.correlation_id,
        created_at_ms=event.at_ms,
    )
    above = None if event.parent is None else above_of(event.parent)
    return _published(message, state, live, status=event.status, previous=None, reason=event.reason, above=above)


@instances.decides(c.InstanceLaunched)
def publish_launch(message: Message[c.InstanceLaunched], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    live = msgspec.structs.replace(_live(state, message), started_at_ms=event.at_ms)
    above = state.parents.get((event.workflow_id, event.instance_id))
    return _published(message, state, live, status=IN_PROGRESS, previous=CREATED, above=above)


@instances.decides(c.InstanceEnded)
def publish_end(message: Message[c.InstanceEnded], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    previous = IN_PROGRESS if event.was_launched else CREATED
    live, above = _live(state, message), state.parents.get((event.workflow_id, event.instance_id))
    return _published(message, state, live, status=event.status, previous=previous, reason=event.reason, above=above)


@instances.decides(c.PublishInstance)
def publish_inline(message: Message[c.PublishInstance], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    if event.status in INSTANCE_TERMINAL:
        live, above = _live(state, message), state.parents.get((message.key, event.instance_id))
        previous = IN_PROGRESS
        return _published(
            message, state, live, status=event.status, previous=previous, reason=event.reason, above=above
        )
    live = Live(
        run_id=event.run_id,
        version=event.version,
        initiator=event.initiator,
        author=event.author,
        request_id=event.request_id,
        correlation_id=event.correlation_id,
        created_at_ms=event.at_ms,
        started_at_ms=event.at_ms,
    )
    above = None if event.parent is None else above_of(event.parent)
    return _published(message, state, live, status=event.status, previous=None, above=above)


def above_of(parent: c.Parent) -> Above:
    """What the public is told of the parent of an instance."""
    return Above(parent.key, parent.run_id, parent.step_id, parent.number, parent.kind, parent.root)


def _live(state: Instances, message: Message[OfInstance]) -> Live:
    event = message.value
    return state.live.get((message.key, event.instance_id)) or msgspec.structs.replace(UNKNOWN, run_id=event.run_id)


def _published(  # noqa: PLR0913 - each by its name
    message: Message[OfInstance],
    state: Instances,
    live: Live,
    *,
    status: InstanceStatus,
    previous: InstanceStatus | None,
    reason: str = "",
    above: Above | None = None,
) -> Iterable[Effect]:
    event = message.value
    workflow_id, instance_id, at_ms = message.key, event.instance_id, event.at_ms
    topic, partition, offset = _source_of(message)
    # The first three by position, and the last three apart: Python builds a dictionary for a call with more names,
    # which takes twice as long.
    change = c.InstanceStatusChange(
        workflow_id,
        instance_id,
        live.run_id,
        sequence=next_number(state, message.key),
        status=status,
        version=live.version,
        initiator=live.initiator,
        author=live.author,
        request_id=live.request_id,
        correlation_id=live.correlation_id,
        reason=reason,
        created_at_ms=live.created_at_ms,
        at_ms=at_ms,
        source_topic=topic,
        source_partition=partition,
        source_offset=offset,
    )
    if status is not CREATED:
        change = msgspec.structs.replace(
            change,
            previous_status=previous,
            started_at_ms=live.started_at_ms,
            ended_at_ms=at_ms if status in INSTANCE_TERMINAL else None,
        )
    if above is not None:
        change = msgspec.structs.replace(change, **msgspec.structs.asdict(above))
    return Emit(change), Send(INSTANCE_STATE, run_key(workflow_id, instance_id), change)


def _source_of(message: Message[OfInstance]) -> tuple[str, int, int]:
    event = message.value
    if isinstance(event, c.PublishInstance):
        return event.source_topic, event.source_partition, event.source_offset
    return source_of(message)
