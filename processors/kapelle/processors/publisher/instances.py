"""`publisher.instances`: the statuses of instances, from their creation to the end of each of their runs.

| event | status |
|---|---|
| `InstanceCreated` | what it says: CREATED, or STOPPED or FAILED if the run will never begin |
| `InstanceLaunched` | IN_PROGRESS |
| `InstanceEnded` | what it says |

All three are events of the workflow, so its instances have one order. What a record says beside its status is in the
event that created the run: it is kept until the run has ended.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.initiators import initiator_of
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.publisher.sources import Number, Numbered, next_number, source_of
from kapelle.processors.publisher.streams import INSTANCE_CHANGES, INSTANCE_STATE
from kapelle.processors.tables import table
from kapelle.processors.wiring import WORKFLOW_EVENTS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InitiatorType, InstanceStatus


class Live(msgspec.Struct, frozen=True, gc=False):
    """What is known of a run that has not ended."""

    run_id: int
    version: int
    initiator: InitiatorType
    author: str
    request_id: str
    correlation_id: str
    created_at_ms: int
    started_at_ms: int | None = None


class Instances(Numbered):
    """The runs that have not ended, by workflow and instance."""

    live = table("live", key=tuple[str, int], row=Live)


instances: Final = Processor(
    "publisher.instances", tables=Instances, inputs=[WORKFLOW_EVENTS], events=INSTANCE_CHANGES, outputs=[INSTANCE_STATE]
)
CREATED: Final = InstanceStatus.CREATED
IN_PROGRESS: Final = InstanceStatus.IN_PROGRESS
INITIATORS: Final = {kind.value: kind for kind in InitiatorType}
OTHER: Final = InitiatorType.OTHER
UNKNOWN: Final = Live(0, 0, OTHER, "", "", "", 0)  # of a run whose beginning is no longer in the history


@instances.decides(c.InstanceCreated)
def publish_creation(message: Message[c.InstanceCreated], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    live = Live(
        event.run_id,
        event.version,
        _initiator(event.initiator),
        event.author,
        event.request_id,
        event.correlation_id,
        event.at_ms,
    )
    return _published(message, state, live, status=event.status, previous=None, reason=event.reason)


@instances.decides(c.InstanceLaunched)
def publish_launch(message: Message[c.InstanceLaunched], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    live = msgspec.structs.replace(_live(state, event), started_at_ms=event.at_ms)
    return _published(message, state, live, status=IN_PROGRESS, previous=CREATED)


@instances.decides(c.InstanceEnded)
def publish_end(message: Message[c.InstanceEnded], state: Instances, _: int) -> Iterable[Effect]:
    event = message.value
    previous = IN_PROGRESS if event.was_launched else CREATED
    live = _live(state, event)
    return _published(message, state, live, status=event.status, previous=previous, reason=event.reason)


@instances.applies(c.InstanceStatusChange)
def instance_published(message: Message[c.InstanceStatusChange], state: Instances) -> None:
    change = message.value
    state.numbers.put((message.key,), Number(change.sequence))
    if change.status in INSTANCE_TERMINAL:
        state.live.delete((message.key, change.instance_id))
        return
    live = Live(
        change.run_id,
        change.version,
        change.initiator,
        change.author,
        change.request_id,
        change.correlation_id,
        change.created_at_ms,
        change.started_at_ms,
    )
    state.live.put((message.key, change.instance_id), live)


def _live(state: Instances, event: c.InstanceLaunched | c.InstanceEnded) -> Live:
    return state.live.get((event.workflow_id, event.instance_id)) or msgspec.structs.replace(
        UNKNOWN, run_id=event.run_id
    )


def _published(  # noqa: PLR0913 - each by its name
    message: Message[Any],
    state: Instances,
    live: Live,
    *,
    status: InstanceStatus,
    previous: InstanceStatus | None,
    reason: str = "",
) -> Iterable[Effect]:
    event = message.value
    workflow_id, instance_id, at_ms = event.workflow_id, event.instance_id, event.at_ms
    # By position, in the order of the type: so many names take three times as long.
    change = c.InstanceStatusChange(
        workflow_id,
        instance_id,
        live.run_id,
        next_number(state, message.key),
        status,
        live.version,
        live.initiator,
        live.author,
        live.request_id,
        live.correlation_id,
        reason,
        live.created_at_ms,
        at_ms,
        *source_of(message),
        previous_status=previous,
        started_at_ms=live.started_at_ms,
        ended_at_ms=at_ms if status in INSTANCE_TERMINAL else None,
    )
    return Emit(change), Send(INSTANCE_STATE, run_key(workflow_id, instance_id), change)


def _initiator(written: str) -> InitiatorType:
    return INITIATORS.get(initiator_of(written).kind, OTHER)
