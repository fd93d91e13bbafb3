"""How the events of a workflow change its tables."""

from typing import Final, NamedTuple

from msgspec.structs import replace

from kapelle.processors.messages import Message
from kapelle.processors.workflows.places import place_of
from kapelle.processors.workflows.processor import workflows
from kapelle.processors.workflows.schedule_applying import forget_schedules, lane_changed
from kapelle.processors.workflows.tables import (
    Answer,
    Armed,
    Breakpoint,
    Counts,
    Failed,
    Instance,
    Origin,
    Queued,
    Request,
    Running,
    Snapshot,
    Version,
    Workflow,
    WorkflowTables,
)
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus

NO_WORKFLOW: Final = Workflow()
NO_COUNTS: Final = Counts()


def _answered(state: WorkflowTables, key: str, request_id: str, version: int = 0) -> None:
    """The first answer to a request is the one that counts."""
    if state.answers.get((key, request_id)) is None:
        state.answers.put((key, request_id), Answer(version))


class _Change(NamedTuple):
    """By how much the counts change."""

    queued: int = 0
    running: int = 0
    failed: int = 0
    instances: int = 0
    displaced: int = 0


def _counted(state: WorkflowTables, key: str, change: _Change) -> None:
    counts = state.counts.get((key,)) or NO_COUNTS
    after = Counts(
        latest_instance_id=counts.latest_instance_id + change.instances,
        queued=counts.queued + change.queued,
        running=counts.running + change.running,
        failed=counts.failed + change.failed,
        displaced=counts.displaced + change.displaced,
        generation=counts.generation,
        breakpoints=counts.breakpoints,
        breakpoints_generation=counts.breakpoints_generation,
    )
    state.counts.put((key,), after)


def _failed(
    state: WorkflowTables,
    place: tuple[str, int],
    event: c.InstanceCreated | c.InstanceEnded,
    backfill_id: str | None,
) -> int:
    """Note a failure, if it is one, and tell by how much the count of them changes. It holds up the runs of its lane
    alone, and that of a backfill goes on.
    """
    if event.status is not InstanceStatus.FAILED or backfill_id is not None:
        return 0
    state.failed.put(place, Failed(event.run_id))
    return 1


def _forgotten(state: WorkflowTables, place: tuple[str, int]) -> int:
    """Forget a failure, if there is one, and tell by how much the count of them changes."""
    if state.failed.get(place) is None:
        return 0
    state.failed.delete(place)
    return -1


@workflows.applies(c.VersionPushed)
def version_pushed(message: Message[c.VersionPushed], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    before = state.workflows.get((key,)) or NO_WORKFLOW
    state.versions.put((key, event.version), Version(event.definition))
    state.workflows.put((key,), replace(before, latest_version=event.version, is_deleted=False))


@workflows.applies(c.VersionActivated)
def version_activated(message: Message[c.VersionActivated], state: WorkflowTables) -> None:
    before = state.workflows.get((message.key,)) or NO_WORKFLOW
    state.workflows.put((message.key,), replace(before, active_version=message.value.version))


@workflows.applies(c.TriggersArmed)
def triggers_armed(message: Message[c.TriggersArmed], state: WorkflowTables) -> None:
    for trigger_id in message.value.disarmed:
        state.armed.delete((message.key, trigger_id))
    for trigger_id in message.value.armed:
        state.armed.put((message.key, trigger_id), Armed(message.value.version))


@workflows.applies(c.WorkflowDeactivated)
def workflow_deactivated(message: Message[c.WorkflowDeactivated], state: WorkflowTables) -> None:
    before = state.workflows.get((message.key,)) or NO_WORKFLOW
    state.workflows.put((message.key,), replace(before, active_version=0))


@workflows.applies(c.PropertiesChanged)
def properties_changed(message: Message[c.PropertiesChanged], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    before = state.workflows.get((key,)) or NO_WORKFLOW
    state.properties.put((key, before.snapshot + 1), Snapshot(event.properties))
    state.workflows.put((key,), replace(before, snapshot=before.snapshot + 1))


@workflows.applies(c.WorkflowDeleted)
def workflow_deleted(message: Message[c.WorkflowDeleted], state: WorkflowTables) -> None:
    """Versions, properties and breakpoints go. Requests stay, so that none is carried out twice, and what has failed
    is out of reach: instances before the first of the next workflow are not looked at.
    """
    event, key = message.value, message.key
    # Those that are there: a number in a history may be anything, and counting up to it may never end.
    for version, _ in list(state.versions.prefix((key,))):
        state.versions.delete(version)
    for snapshot, _ in list(state.properties.prefix((key,))):
        state.properties.delete(snapshot)
    for place, _ in list(state.breakpoints.prefix((key,))):
        state.breakpoints.delete(place)
    forget_schedules(state, key)
    counts = state.counts.get((key,)) or NO_COUNTS
    latest = counts.latest_instance_id
    state.workflows.put((key,), Workflow(snapshot=event.snapshot, first_instance_id=latest + 1, is_deleted=True))
    generation = counts.breakpoints_generation
    state.counts.put((key,), Counts(latest_instance_id=latest, breakpoints_generation=generation))


@workflows.applies(c.InstanceCreated)
def instance_created(message: Message[c.InstanceCreated], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    place = (key, event.instance_id)
    state.requests.put((key, event.request_id), Request(event.instance_id, event.run_id))
    state.instances.put(place, Instance(event.run_id, event.status))
    is_queued = event.status is InstanceStatus.CREATED
    origin = _origin(event, (state.workflows.get((key,)) or NO_WORKFLOW).snapshot) if event.run_id == 1 else None
    if is_queued:
        generation = (state.counts.get((key,)) or NO_COUNTS).generation
        state.queue.put((*place, event.run_id), _queued(event, generation, origin))
    elif origin is not None:
        state.origins.put(place, origin)
    is_first = event.run_id == 1
    # A restart deals with the failure of the run before, whatever comes of the new one.
    failed = _failed(state, place, event, event.backfill_id) if is_first else _forgotten(state, place)
    queued = int(is_queued and event.backfill_id is None)
    _counted(state, key, _Change(queued=queued, failed=failed, instances=int(is_first)))


def _origin(event: c.InstanceCreated, snapshot: int) -> Origin:
    return Origin(
        request_id=event.request_id,
        version=event.version,
        snapshot=snapshot,
        initiator=event.initiator,
        run_params=event.run_params,
        step_run_params=event.step_run_params,
        runtime_tags=event.runtime_tags,
        correlation_id=event.correlation_id,
        # Parameters that could not be evaluated are evaluated anew if the instance is restarted.
        params=None if event.status is InstanceStatus.FAILED else event.params,
        parent=event.parent,
    )


def _queued(event: c.InstanceCreated, generation: int, origin: Origin | None) -> Queued:
    if origin is not None:
        return Queued(
            event.request_id,
            generation=generation,
            origin=origin,
            author=event.author,
            parent=event.parent,
            backfill_id=event.backfill_id,
        )
    given = (event.params, event.run_params, event.restart)
    return Queued(event.request_id, *given, generation, author=event.author, parent=event.parent)


@workflows.applies(c.QueueDisplaced)
def queue_displaced(message: Message[c.QueueDisplaced], state: WorkflowTables) -> None:
    """All that are queued now are of an earlier generation than those that come."""
    counts = state.counts.get((message.key,)) or NO_COUNTS
    after = replace(counts, displaced=message.value.count, generation=counts.generation + 1)
    state.counts.put((message.key,), after)


@workflows.applies(c.InstanceLaunched)
def instance_launched(message: Message[c.InstanceLaunched], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    place = (key, event.instance_id)
    row = state.queue.get((*place, event.run_id))
    origin = row.origin if row is not None and row.origin is not None else state.origins.get(place)
    if origin is not None and (event.run_id == 1 or origin.params is not None):
        state.origins.put(place, replace(origin, params=None))
    state.queue.delete((*place, event.run_id))
    backfill_id = None if row is None else row.backfill_id
    state.running.put(place, Running(event.run_id, backfill_id=backfill_id))
    state.instances.put(place, Instance(event.run_id, InstanceStatus.IN_PROGRESS))
    if backfill_id is None:
        _counted(state, key, _Change(queued=-1, running=1))
    else:
        lane_changed(state, (key, backfill_id), 1, event.at_ms)


@workflows.applies(c.TerminationRequested)
def termination_requested(message: Message[c.TerminationRequested], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    running = state.running.get((key, event.instance_id))
    if running is not None:
        state.running.put((key, event.instance_id), replace(running, run_id=event.run_id, action=event.action))


@workflows.applies(c.InstanceEnded)
def instance_ended(message: Message[c.InstanceEnded], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    place = (key, event.instance_id)
    state.instances.put(place, Instance(event.run_id, event.status))
    if event.was_launched:
        running = state.running.get(place)
        backfill_id = None if running is None else running.backfill_id
        state.running.delete(place)
        if backfill_id is not None:
            lane_changed(state, (key, backfill_id), -1, event.at_ms)
            return
        _counted(state, key, _Change(running=-1, failed=_failed(state, place, event, None)))
    else:
        row = state.queue.get((*place, event.run_id))
        if row is not None and row.origin is not None:
            state.origins.put(place, row.origin)
        counts = state.counts.get((key,)) or NO_COUNTS
        displaced = row is not None and counts.displaced > 0 and row.generation < counts.generation
        state.queue.delete((*place, event.run_id))
        failed = _failed(state, place, event, None)
        _counted(state, key, _Change(queued=-1, failed=failed, displaced=-int(displaced)))


@workflows.applies(c.InstanceUnblocked)
def instance_unblocked(message: Message[c.InstanceUnblocked], state: WorkflowTables) -> None:
    failed = _forgotten(state, (message.key, message.value.instance_id))
    _counted(state, message.key, _Change(failed=failed))
    _answered(state, message.key, message.value.request_id)


@workflows.applies(c.TerminationProgressed)
def termination_progressed(message: Message[c.TerminationProgressed], state: WorkflowTables) -> None:
    _answered(state, message.key, message.value.request_id)


@workflows.applies(c.BreakpointSet)
def breakpoint_set(message: Message[c.BreakpointSet], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    place = place_of(key, event.breakpoint)
    is_new = state.breakpoints.get(place) is None
    state.breakpoints.put(place, Breakpoint(event.breakpoint.author, event.breakpoint.at_ms))
    _breakpoints_counted(state, key, int(is_new), event.generation)


@workflows.applies(c.BreakpointDeleted)
def breakpoint_deleted(message: Message[c.BreakpointDeleted], state: WorkflowTables) -> None:
    event, key = message.value, message.key
    place = place_of(key, event.breakpoint)
    is_there = state.breakpoints.get(place) is not None
    state.breakpoints.delete(place)
    _breakpoints_counted(state, key, -int(is_there), event.generation)


def _breakpoints_counted(state: WorkflowTables, key: str, by: int, generation: int) -> None:
    counts = state.counts.get((key,)) or NO_COUNTS
    after = replace(counts, breakpoints=counts.breakpoints + by, breakpoints_generation=generation)
    state.counts.put((key,), after)


@workflows.applies(c.CommandSettled)
def command_settled(message: Message[c.CommandSettled], state: WorkflowTables) -> None:
    _answered(state, message.key, message.value.request_id, message.value.version)


@workflows.applies(c.StartDuplicated)
def start_duplicated(_: Message[c.StartDuplicated], __: WorkflowTables) -> None:
    """Nothing has changed."""


@workflows.applies(c.CommandRefused)
def command_refused(_: Message[c.CommandRefused], __: WorkflowTables) -> None:
    """Nothing has changed."""
