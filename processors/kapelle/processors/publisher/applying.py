"""How public records change the tables of their publishers."""

from typing import Final

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.publisher.processor import instances, steps, verdicts, workflows
from kapelle.processors.publisher.tables import Above, Current, Instances, Live, Number, Numbered, Workflows
from kapelle.schemas import contracts as c

_FIELDS: Final = Current.__struct_fields__
_ABOVE: Final = Above.__struct_fields__


@workflows.applies(c.WorkflowChange)
def workflow_published(message: Message[c.WorkflowChange], state: Workflows) -> None:
    change = message.value
    state.current.put((message.key,), Current(**{name: getattr(change, name) for name in _FIELDS}))


@instances.applies(c.InstanceStatusChange)
def instance_published(message: Message[c.InstanceStatusChange], state: Instances) -> None:
    change = message.value
    state.numbers.put((message.key,), Number(change.sequence))
    at = (message.key, change.instance_id)
    if change.status in INSTANCE_TERMINAL:
        state.live.delete(at)
        if change.parent is not None:
            state.parents.delete(at)
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
    state.live.put(at, live)
    if change.parent is not None:
        state.parents.put(at, Above(**{name: getattr(change, name) for name in _ABOVE}))


@steps.applies(c.StepStatusChange)
def step_published(message: Message[c.StepStatusChange], state: Numbered) -> None:
    state.numbers.put((message.key,), Number(message.value.sequence))


@verdicts.applies(c.SignalVerdict)
def verdict_published(message: Message[c.SignalVerdict], state: Numbered) -> None:
    state.numbers.put((message.key,), Number(message.value.sequence))
