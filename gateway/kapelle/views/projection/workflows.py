"""What the events of workflows do to the view."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.views.changes import Cell, Change, Erase, Forget, Label, Put
from kapelle.views.labels import declared_tags, labels_of
from kapelle.views.projection.at import (
    PHASE_AFTER,
    PHASE_BEFORE,
    At,
    Moment,
    entry_put,
    outcome_put,
    run_cells,
    status_puts,
)

Changes = Iterator[Change]

OF_PROPERTIES: Final = 0  # in place of a version


class _Named(msgspec.Struct):
    name: str | None = None


class _Owned(msgspec.Struct):
    owner: str | dict[str, Any] | None = None


def _workflow(at: At, event: Any, **cells: Any) -> Put:
    return Put("workflows", {"workflow_id": at.workflow_id}, {**cells, "modified_at_ms": event.at_ms})


def _note(at: At, event: Any, log: str) -> Put:
    cells = {"author": event.author, "log": log, "at_ms": event.at_ms}
    return Put("notes", {"workflow_id": at.workflow_id, "position": at.offset}, cells)


def _version_pushed(at: At, event: c.VersionPushed) -> Changes:
    name = msgspec.json.decode(event.definition, type=_Named).name
    yield Put(
        "workflows",
        {"workflow_id": at.workflow_id},
        {"latest_version": event.version, "name": name, "is_deleted": 0, "modified_at_ms": event.at_ms},
        first={"created_at_ms": event.at_ms},
    )
    yield Put(
        "versions",
        {"workflow_id": at.workflow_id, "version": event.version},
        {
            "definition": event.definition,
            "metadata": event.metadata,
            "author": event.author,
            "at_ms": event.at_ms,
        },
    )
    yield from _declared(at, event.version, event.definition)
    yield _note(at, event, f"Pushed version {event.version}")
    yield outcome_put(at, event, version=event.version)


def _declared(at: At, version: int, text: str) -> Changes:
    """The tags that instances will have from now on."""
    yield Erase("declared_tags", {"workflow_id": at.workflow_id, "version": version})
    for tag in declared_tags(text):
        yield Put("declared_tags", {"workflow_id": at.workflow_id, "version": version, "tag": tag}, {})


def _version_activated(at: At, event: c.VersionActivated) -> Changes:
    yield _workflow(at, event, active_version=event.version, activated_at_ms=event.at_ms, activated_by=event.author)
    before = f"version {event.previous_version}" if event.previous_version else "none"
    yield _note(at, event, f"Activated version {event.version} (before: {before})")
    yield outcome_put(at, event, version=event.version)


def _triggers_armed(at: At, event: c.TriggersArmed) -> Changes:
    told = [("Armed", event.armed), ("Disarmed", event.disarmed)]
    log = "; ".join(f"{verb} {', '.join(names)}" for verb, names in told if names)
    if log:
        cells: dict[str, Cell] = {"author": "kapelle", "log": f"Triggers: {log}", "at_ms": event.at_ms}
        yield Put("notes", {"workflow_id": at.workflow_id, "position": at.offset}, cells)


def _workflow_deactivated(at: At, event: c.WorkflowDeactivated) -> Changes:
    yield _workflow(at, event, active_version=0, activated_at_ms=None, activated_by=None)
    yield _note(at, event, f"Deactivated version {event.previous_version}")
    yield outcome_put(at, event, version=event.previous_version)


def _properties_changed(at: At, event: c.PropertiesChanged) -> Changes:
    owner = msgspec.json.decode(event.properties, type=_Owned).owner
    yield _workflow(at, event, owner=owner.get("name") if isinstance(owner, dict) else owner)
    yield Put(
        "properties",
        {"workflow_id": at.workflow_id, "position": at.offset},
        {
            "properties": event.properties,
            "changes": event.changes,
            "author": event.author,
            "at_ms": event.at_ms,
        },
    )
    yield from _declared(at, OF_PROPERTIES, event.properties)
    yield _note(at, event, f"Changed properties: {event.changes}")
    yield outcome_put(at, event)


def _workflow_deleted(at: At, event: c.WorkflowDeleted) -> Changes:
    yield Forget(at.workflow_id)
    for table in ("versions", "properties"):
        yield Erase(table, {"workflow_id": at.workflow_id})
    yield _note(at, event, "Deleted the workflow")
    yield outcome_put(at, event)


def _instance_created(at: At, event: c.InstanceCreated) -> Changes:
    run = run_cells(at, event.run_id, event.instance_id)
    yield Put(
        "runs",
        run,
        {
            "version": event.version,
            "request_id": event.request_id,
            "author": event.author,
            "initiator": event.initiator,
            "params": event.params,
            "run_params": event.run_params,
            "step_run_params": event.step_run_params,
            "runtime_tags": event.runtime_tags,
            "artifacts": event.artifacts,
            "correlation_id": event.correlation_id,
            "restart": event.restart,
            "created_at_ms": event.at_ms,
            "created_reason": event.reason,
        },
    )
    yield from status_puts(at, event.run_id, event.status, event.instance_id)
    # A later run finds what the first one has written, unless the view has let go of it.
    whole: dict[str, Cell] = {"workflow_id": at.workflow_id, "instance_id": event.instance_id}
    yield Put("instances", whole, {}, first={"created_at_ms": event.at_ms})
    labels = labels_of(event.params, event.runtime_tags, event.initiator)
    yield Label(at.workflow_id, event.instance_id, event.version, labels)
    if event.run_id == 1:
        yield Put("workflows", {"workflow_id": at.workflow_id}, {"latest_instance_id": event.instance_id})
    yield entry_put(
        at,
        Moment(event.at_ms, "STATUS", event.run_id, event.instance_id, phase=PHASE_BEFORE),
        status=event.status.value,
        author=event.author,
        message=event.reason,
    )
    yield outcome_put(
        at,
        event,
        event.instance_id,
        run_id=event.run_id,
        version=event.version,
        status=event.status.value,
        reason=event.reason,
    )


def _start_duplicated(at: At, event: c.StartDuplicated) -> Changes:
    yield outcome_put(at, event, event.instance_id, run_id=event.run_id)


def _instance_launched(at: At, event: c.InstanceLaunched) -> Changes:
    run = run_cells(at, event.run_id, event.instance_id)
    yield Put("runs", run, {"launched_at_ms": event.at_ms})
    yield from status_puts(at, event.run_id, c.InstanceStatus.IN_PROGRESS, event.instance_id)
    yield entry_put(
        at,
        Moment(event.at_ms, "LOG", event.run_id, event.instance_id, phase=PHASE_BEFORE),
        message="Left the queue of its run strategy",
    )


def _queue_displaced(at: At, event: c.QueueDisplaced) -> Changes:
    by = f"instance {event.instance_id} run {event.run_id}"
    cells: dict[str, Cell] = {"author": "kapelle", "log": f"Stopped {event.count} queued runs: {by} was started"}
    yield Put("notes", {"workflow_id": at.workflow_id, "position": at.offset}, {**cells, "at_ms": event.at_ms})


def _termination_requested(at: At, event: c.TerminationRequested) -> Changes:
    yield entry_put(
        at,
        Moment(event.at_ms, "ACTION", event.run_id, event.instance_id, phase=PHASE_BEFORE),
        action=event.action.value,
        author=event.author,
        message=event.reason,
    )
    yield outcome_put(at, event, event.instance_id, run_id=event.run_id, action=event.action.value)


def _termination_progressed(at: At, event: c.TerminationProgressed) -> Changes:
    yield outcome_put(at, event, count=event.count, is_last=event.is_last)


def _instance_ended(at: At, event: c.InstanceEnded) -> Changes:
    run = run_cells(at, event.run_id, event.instance_id)
    yield Put("runs", run, {"recorded_at_ms": event.at_ms, "recorded_reason": event.reason})
    yield from status_puts(at, event.run_id, event.status, event.instance_id)
    if not event.was_launched:  # of one that was, `runs` tells the end
        yield entry_put(
            at,
            Moment(event.at_ms, "STATUS", event.run_id, event.instance_id, phase=PHASE_AFTER),
            status=event.status.value,
            message=event.reason,
        )


def _instance_unblocked(at: At, event: c.InstanceUnblocked) -> Changes:
    yield entry_put(
        at,
        Moment(event.at_ms, "ACTION", None, event.instance_id, phase=PHASE_AFTER),
        action=c.Action.UNBLOCK.value,
        author=event.author,
        message=event.reason,
    )
    yield outcome_put(at, event, event.instance_id)


def command_settled(at: At, event: c.CommandSettled) -> Changes:
    """Of a workflow or of a run: there was nothing to do."""
    yield outcome_put(
        at,
        event,
        command=event.command,
        version=event.version,
        run_id=event.run_id or None,
        reason=event.reason,
    )


def command_refused(at: At, event: c.CommandRefused) -> Changes:
    """Of a workflow or of a run: nothing has changed but that the request is answered."""
    yield outcome_put(
        at,
        event,
        command=event.command,
        refusal=event.refusal.value,
        message=event.message,
        errors=list(event.errors),
    )


OF_WORKFLOWS: Final[Mapping[type[Any], Callable[[At, Any], Changes]]] = {
    c.VersionPushed: _version_pushed,
    c.VersionActivated: _version_activated,
    c.TriggersArmed: _triggers_armed,
    c.WorkflowDeactivated: _workflow_deactivated,
    c.PropertiesChanged: _properties_changed,
    c.WorkflowDeleted: _workflow_deleted,
    c.InstanceCreated: _instance_created,
    c.StartDuplicated: _start_duplicated,
    c.InstanceLaunched: _instance_launched,
    c.QueueDisplaced: _queue_displaced,
    c.TerminationRequested: _termination_requested,
    c.TerminationProgressed: _termination_progressed,
    c.InstanceEnded: _instance_ended,
    c.InstanceUnblocked: _instance_unblocked,
    c.CommandSettled: command_settled,
    c.CommandRefused: command_refused,
}
