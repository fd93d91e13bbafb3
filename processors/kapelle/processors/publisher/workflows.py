"""`publisher.workflows`: pushes, activations, changes and deletions, each with the state of the workflow after it."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeVar

import msgspec

from kapelle.processors.definitions.properties import Properties
from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.publisher.processor import workflows
from kapelle.processors.publisher.sources import source_of
from kapelle.processors.publisher.streams import WORKFLOW_STATE
from kapelle.processors.publisher.tables import Current, Workflows
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RunStrategyRule, WorkflowChangeType


class Change(msgspec.Struct, frozen=True):
    """One change of a workflow: its kind, what the workflow is after it, and what concerns the change alone."""

    kind: WorkflowChangeType
    after: Current
    version: int | None = None
    definition: str | None = None
    instance_id: int | None = None


class OfWorkflow(Protocol):
    """An event that answers a request."""

    @property
    def request_id(self) -> str: ...

    @property
    def author(self) -> str: ...

    @property
    def at_ms(self) -> int: ...


NEW: Final = Current()
E = TypeVar("E", bound="OfWorkflow")
ChangeOf = Callable[[E, Current], Change]


def _publishes(contract: type[E]) -> Callable[[ChangeOf[E]], ChangeOf[E]]:
    """Register which change an event is; the rest is alike for all of them."""

    def register(change_of: ChangeOf[E]) -> ChangeOf[E]:
        def publish(message: Message[E], state: Workflows, _: int) -> Iterator[Effect]:
            before = state.current.get((message.key,)) or NEW
            public = _public_change(message, change_of(message.value, before), before.sequence + 1)
            yield Emit(public)
            yield Send(WORKFLOW_STATE, message.key, msgspec.structs.replace(public, definition=None))

        workflows.decides(contract)(publish)
        return change_of

    return register


@_publishes(c.VersionPushed)
def _pushed(event: c.VersionPushed, before: Current) -> Change:
    after = msgspec.structs.replace(before, latest_version=event.version, is_deleted=False)
    return Change(WorkflowChangeType.VERSION_PUSHED, after, version=event.version, definition=event.definition)


@_publishes(c.VersionActivated)
def _activated(event: c.VersionActivated, before: Current) -> Change:
    after = msgspec.structs.replace(before, active_version=event.version)
    return Change(WorkflowChangeType.VERSION_ACTIVATED, after, version=event.version)


@_publishes(c.WorkflowDeactivated)
def _deactivated(event: c.WorkflowDeactivated, before: Current) -> Change:
    after = msgspec.structs.replace(before, active_version=None)
    return Change(WorkflowChangeType.DEACTIVATED, after, version=event.previous_version)


@_publishes(c.PropertiesChanged)
def _properties_changed(event: c.PropertiesChanged, before: Current) -> Change:
    properties = Properties.parse(event.properties)
    after = msgspec.structs.replace(
        before,
        owner=properties.owner,
        run_strategy=RunStrategyRule(properties.run_strategy.rule.value),
        workflow_concurrency=properties.run_strategy.workflow_concurrency,
        step_concurrency=properties.step_concurrency,
        description=properties.description,
        tags=tuple(tag.name for tag in properties.tags),
    )
    return Change(WorkflowChangeType.PROPERTIES_CHANGED, after)


@_publishes(c.InstanceUnblocked)
def _unblocked(event: c.InstanceUnblocked, before: Current) -> Change:
    return Change(WorkflowChangeType.INSTANCE_UNBLOCKED, before, instance_id=event.instance_id)


@_publishes(c.WorkflowDeleted)
def _deleted(_: c.WorkflowDeleted, before: Current) -> Change:
    after = Current(owner=before.owner, is_deleted=True)
    return Change(WorkflowChangeType.DELETED, after)


def _public_change(message: Message[OfWorkflow], change: Change, sequence: int) -> c.WorkflowChange:
    event, after, (topic, partition, offset) = message.value, change.after, source_of(message)
    return c.WorkflowChange(
        workflow_id=message.key,
        sequence=sequence,
        change=change.kind,
        request_id=event.request_id,
        author=event.author,
        latest_version=after.latest_version,
        active_version=after.active_version,
        version=change.version,
        definition=change.definition,
        instance_id=change.instance_id,
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
