"""`publisher.steps`: the statuses of steps. What an attempt passes at once is one record, with all that it passed."""

from collections.abc import Iterable
from typing import Final

from kapelle.processors.effects import Effect, Emit, Send, SetAside
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.publisher.sources import Number, Numbered, next_number, source_of
from kapelle.processors.publisher.streams import STEP_CHANGES, STEP_STATE, step_key
from kapelle.processors.wiring import RUN_EVENTS, ids_of
from kapelle.schemas import contracts as c

steps: Final = Processor(
    "publisher.steps", tables=Numbered, inputs=[RUN_EVENTS], events=STEP_CHANGES, outputs=[STEP_STATE]
)


@steps.decides(c.StepChanged)
def publish_step(message: Message[c.StepChanged], state: Numbered, _: int) -> Iterable[Effect]:
    event, statuses = message.value, message.value.statuses
    if not statuses:
        return (SetAside("Expected a StepChanged with a status, but it has none"),)
    workflow_id, instance_id = ids_of(message.key)
    # By position, in the order of the type: so many names take three times as long.
    change = c.StepStatusChange(
        workflow_id,
        instance_id,
        event.run_id,
        event.step_id,
        event.attempt,
        event.iteration,
        next_number(state, message.key),
        statuses[-1],
        statuses[:-1],
        event.reason,
        event.at_ms,
        *source_of(message),
        event.loop,
        event.worker,
    )
    return Emit(change), Send(STEP_STATE, step_key(message.key, event.step_id), change)


@steps.applies(c.StepStatusChange)
def step_published(message: Message[c.StepStatusChange], state: Numbered) -> None:
    state.numbers.put((message.key,), Number(message.value.sequence))
