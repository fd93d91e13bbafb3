"""`publisher.workflows`: what is pushed, activated, changed and deleted, each with what the workflow is after it."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from kapelle.processors.definitions.properties import Properties
from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.publisher.sources import source_of
from kapelle.processors.publisher.streams import WORKFLOW_CHANGES, WORKFLOW_STATE
from kapelle.processors.tables import Tables, table
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RunStrategyRule, WorkflowChangeType


class Current(msgspec.Struct, frozen=True, gc=False):
    """What a workflow is, and the number of its last change."""

    sequence: int = 0
    latest_version: int = 0
    active_version: int | None = None
    owner: str = ""
    run_strategy: RunStrategyRule = RunStrategyRule.SEQUENTIAL
    workflow_concurrency: int = 1
    step_concurrency: int | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    is_deleted: bool = False


class Workflows(Tables):
    """The workflows."""

    current = table("current", key=tuple[str], row=Current)


class Said(msgspec.Struct, frozen=True):
    """What one event says: the kind of change, what the workflow is after it, and what concerns the change alone."""

    change: WorkflowChangeType
    after: Current
    version: int | None = None
    definition: str | None = None
    instance_id: int | None = None


workflows: Final = Processor(
    "publisher.workflows", tables=Workflows, inputs=[WORKFLOW_EVENTS], events=WORKFLOW_CHANGES, outputs=[WORKFLOW_STATE]
)
NEW: Final = Current()
_FIELDS: Final = Current.__struct_fields__

E = TypeVar("E")
Says = Callable[[E, Current], Said]


def _publishes(contract: type[E]) -> Callable[[Says[E]], Says[E]]:
    """Register what an event says; the rest is alike for all of them."""

    def register(says: Says[E]) -> Says[E]:
        def publish(message: Message[E], state: Workflows, _: int) -> Iterator[Effect]:
            before = state.current.get((message.key,)) or NEW
            change = _change(message, says(message.value, before), before.sequence + 1)
            yield Emit(change)
            yield Send(WORKFLOW_STATE, message.key, msgspec.structs.replace(change, definition=None))

        workflows.decides(contract)(publish)
        return says

    return register


@_publishes(c.VersionPushed)
def _pushed(event: c.VersionPushed, before: Current) -> Said:
    after = msgspec.structs.replace(before, latest_version=event.version, is_deleted=False)
    return Said(WorkflowChangeType.VERSION_PUSHED, after, version=event.version, definition=event.definition)


@_publishes(c.VersionActivated)
def _activated(event: c.VersionActivated, before: Current) -> Said:
    after = msgspec.structs.replace(before, active_version=event.version)
    return Said(WorkflowChangeType.VERSION_ACTIVATED, after, version=event.version)


@_publishes(c.WorkflowDeactivated)
def _deactivated(event: c.WorkflowDeactivated, before: Current) -> Said:
    after = msgspec.structs.replace(before, active_version=None)
    return Said(WorkflowChangeType.DEACTIVATED, after, version=event.previous_version)


@_publishes(c.PropertiesChanged)
def _properties_changed(event: c.PropertiesChanged, before: Current) -> Said:
    found = Properties.parse(event.properties)
    after = msgspec.structs.replace(
        before,
        owner=found.owner,
        run_strategy=RunStrategyRule(found.run_strategy.rule.value),
        workflow_concurrency=found.run_strategy.workflow_concurrency,
        step_concurrency=found.step_concurrency,
        description=found.description,
        tags=tuple(tag.name for tag in found.tags),
    )
    return Said(WorkflowChangeType.PROPERTIES_CHANGED, after)


@workflows.reads(c.PropertiesChanged)
def _read_properties(event: c.PropertiesChanged) -> None:
    Properties.parse(event.properties)


@_publishes(c.InstanceUnblocked)
def _unblocked(event: c.InstanceUnblocked, before: Current) -> Said:
    return Said(WorkflowChangeType.INSTANCE_UNBLOCKED, before, instance_id=event.instance_id)


@_publishes(c.WorkflowDeleted)
def _deleted(_: c.WorkflowDeleted, before: Current) -> Said:
    after = Current(owner=before.owner, is_deleted=True)
    return Said(WorkflowChangeType.DELETED, after)


@workflows.applies(c.WorkflowChange)
def workflow_published(message: Message[c.WorkflowChange], state: Workflows) -> None:
    change = message.value
    state.current.put((message.key,), Current(**{name: getattr(change, name) for name in _FIELDS}))


def _change(message: Message[Any], said: Said, sequence: int) -> c.WorkflowChange:
    event, after, (topic, partition, offset) = message.value, said.after, source_of(message)
    return c.WorkflowChange(
        workflow_id=message.key,
        sequence=sequence,
        change=said.change,
        request_id=event.request_id,
        author=event.author,
        latest_version=after.latest_version,
        active_version=after.active_version,
        version=said.version,
        definition=said.definition,
        instance_id=said.instance_id,
        owner=after.owner,
        run_strategy=after.run_strategy,
        workflow_concurrency=after.workflow_concurrency,
        step_concurrency=after.step_concurrency,
        description=after.description,
        tags=after.tags,
        is_deleted=after.is_deleted,
        at_ms=event.at_ms,
        source_topic=topic,
        source_partition=partition,
        source_offset=offset,
    )
