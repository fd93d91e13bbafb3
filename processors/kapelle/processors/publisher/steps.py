"""`publisher.steps`: the statuses of steps. Statuses that an attempt passes at once are one record.

It also reads the starts and ends of iterations and rounds, and sends them to `publisher.instances`.
"""

from collections.abc import Iterable

import msgspec

from kapelle.processors.effects import Effect, Emit, Send, SetAside
from kapelle.processors.messages import Message
from kapelle.processors.publisher.processor import steps
from kapelle.processors.publisher.sources import initiator_type, next_number, source_of
from kapelle.processors.publisher.streams import INLINE_CHANGES, STEP_STATE, step_key
from kapelle.processors.publisher.tables import Numbered
from kapelle.processors.runs.composites.identity import PREFIXES, is_inline
from kapelle.processors.wiring import ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus


@steps.decides(c.StepChanged)
def publish_step(message: Message[c.StepChanged], state: Numbered, _: int) -> Iterable[Effect]:
    event, statuses = message.value, message.value.statuses
    if not statuses:
        return (SetAside("Expected a StepChanged with a status, but it has none"),)
    workflow_id, instance_id = ids_of(message.key)
    topic, partition, offset = source_of(message)
    # The first three by position: Python builds a dictionary for a call with 16 names, which takes twice as long.
    change = c.StepStatusChange(
        workflow_id,
        instance_id,
        event.run_id,
        step_id=event.step_id,
        attempt=event.attempt,
        iteration=event.iteration,
        sequence=next_number(state, message.key),
        status=statuses[-1],
        passed=statuses[:-1],
        reason=event.reason,
        at_ms=event.at_ms,
        source_topic=topic,
        source_partition=partition,
        source_offset=offset,
        loop=event.loop,
        worker=event.worker,
    )
    return Emit(change), Send(STEP_STATE, step_key(message.key, event.step_id), change)


@steps.decides(c.RunStarted)
def tell_of_start(message: Message[c.RunStarted], _: Numbered, __: int) -> Iterable[Effect]:
    """A run of an iteration or a round has started. The others are published from the events of their workflow."""
    event, parent = message.value, message.value.parent
    if parent is None or not is_inline(event.workflow_id):
        return ()
    topic, partition, offset = source_of(message)
    command = c.PublishInstance(
        event.instance_id,
        event.run_id,
        InstanceStatus.IN_PROGRESS,
        version=event.version,
        initiator=initiator_type(event.initiator),
        author=event.author,
        request_id=event.request_id,
        correlation_id=event.correlation_id,
        parent=msgspec.structs.replace(parent, asks=(), carries=()),
        at_ms=event.at_ms,
        source_topic=topic,
        source_partition=partition,
        source_offset=offset,
    )
    return (Send(INLINE_CHANGES, event.workflow_id, command),)


@steps.decides(c.RunEnded)
def tell_of_end(message: Message[c.RunEnded], _: Numbered, __: int) -> Iterable[Effect]:
    """A run of an iteration or a round has ended."""
    event = message.value
    if not is_inline(event.workflow_id):
        return ()
    topic, partition, offset = source_of(message)
    command = c.PublishInstance(
        event.instance_id,
        event.run_id,
        event.status,
        reason=event.reason,
        at_ms=event.at_ms,
        source_topic=topic,
        source_partition=partition,
        source_offset=offset,
    )
    return (Send(INLINE_CHANGES, event.workflow_id, command),)


# Most runs are neither iterations nor rounds. The key of an event of a run begins with the id of its workflow.
steps.reads_only(c.RunStarted, PREFIXES.values())
steps.reads_only(c.RunEnded, PREFIXES.values())
