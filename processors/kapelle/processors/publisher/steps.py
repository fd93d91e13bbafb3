"""`publisher.steps`: the statuses of steps. What an attempt passes at once is one record, with all that it passed."""

from collections.abc import Iterator
from typing import Final

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.publisher.sources import Number, Numbered, next_number, source_of
from kapelle.processors.publisher.streams import STEP_CHANGES, STEP_STATE, step_key
from kapelle.processors.routes import RUN_EVENTS, ids_of
from kapelle.schemas import contracts as c

steps: Final = Processor(
    "publisher.steps", tables=Numbered, inputs=[RUN_EVENTS], events=STEP_CHANGES, outputs=[STEP_STATE]
)


@steps.decides(c.StepChanged)
def publish_step(message: Message[c.StepChanged], state: Numbered, _: int) -> Iterator[Effect]:
    event, source = message.value, source_of(message)
    workflow_id, instance_id = ids_of(message.key)
    change = c.StepStatusChange(
        workflow_id=workflow_id,
        instance_id=instance_id,
        run_id=event.run_id,
        step_id=event.step_id,
        attempt=event.attempt,
        iteration=event.iteration,
        loop=event.loop,
        sequence=next_number(state, message.key),
        status=event.statuses[-1],
        passed=event.statuses[:-1],
        reason=event.reason,
        worker=event.worker,
        at_ms=event.at_ms,
        source_topic=source.topic,
        source_partition=source.partition,
        source_offset=source.offset,
    )
    yield Emit(change)
    yield Send(STEP_STATE, step_key(message.key, event.step_id), change)


@steps.applies(c.StepStatusChange)
def step_published(message: Message[c.StepStatusChange], state: Numbered) -> None:
    state.numbers.put((message.key,), Number(message.value.sequence))
