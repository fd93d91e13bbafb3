"""The changes that events of workflows make to the rows of the view."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from kapelle.schemas import contracts as c
from kapelle.views.labels import backfill_label, declared_tags, labels_of
from kapelle.views.projection.at import STANDINGS, At, outcome
from kapelle.views.projection.backfills import OF_BACKFILLS
from kapelle.views.projection.breakpoints import OF_BREAKPOINTS
from kapelle.views.projection.children import placed
from kapelle.views.projection.schedules import OF_SCHEDULES
from kapelle.views.rows import Cell, Cells, Rows

OF_PROPERTIES: Final = 0  # in place of a version
ENGINE: Final = "kapelle"  # the author of what nobody asked for


class Timed(Protocol):
    """An event with the time at which it happened."""

    @property
    def at_ms(self) -> int: ...


class _Named(msgspec.Struct):
    name: str | None = None


class _Owned(msgspec.Struct):
    owner: str | dict[str, object] | None = None


def _change(rows: Rows, at: At, event: Timed, **cells: Cell) -> None:
    rows.put("workflows", (at.workflow_id,), {**cells, "modified_at_ms": event.at_ms})


def _note(rows: Rows, at: At, event: Timed, log: str) -> None:
    cells: Cells = {"author": getattr(event, "author", ENGINE), "log": log, "at_ms": event.at_ms}
    rows.put("notes", (at.workflow_id, at.offset), cells)


def _version_pushed(rows: Rows, at: At, event: c.VersionPushed) -> None:
    name = msgspec.json.decode(event.definition, type=_Named).name
    cells: Cells = {"latest_version": event.version, "name": name, "is_deleted": 0, "modified_at_ms": event.at_ms}
    rows.put("workflows", (at.workflow_id,), cells, {"created_at_ms": event.at_ms})
    pushed: Cells = {
        "definition": event.definition,
        "metadata": event.metadata,
        "author": event.author,
        "at_ms": event.at_ms,
    }
    rows.put("versions", (at.workflow_id, event.version), pushed)
    _declare(rows, at, event.version, event.definition)
    _note(rows, at, event, f"Pushed version {event.version}")


def _declare(rows: Rows, at: At, version: int, text: str) -> None:
    """The tags that instances will have from now on."""
    rows.erase("declared_tags", {"workflow_id": at.workflow_id, "version": version})
    for tag in declared_tags(text):
        rows.put("declared_tags", (at.workflow_id, version, tag), {})


def _version_activated(rows: Rows, at: At, event: c.VersionActivated) -> None:
    _change(rows, at, event, active_version=event.version, activated_at_ms=event.at_ms, activated_by=event.author)
    before = f"version {event.previous_version}" if event.previous_version else "none"
    _note(rows, at, event, f"Activated version {event.version} (before: {before})")


def _triggers_armed(rows: Rows, at: At, event: c.TriggersArmed) -> None:
    done = [("Armed", event.armed), ("Disarmed", event.disarmed)]
    log = "; ".join(f"{verb} {', '.join(names)}" for verb, names in done if names)
    if log:
        _note(rows, at, event, f"Triggers: {log}")


def _workflow_deactivated(rows: Rows, at: At, event: c.WorkflowDeactivated) -> None:
    _change(rows, at, event, active_version=0, activated_at_ms=None, activated_by=None)
    _note(rows, at, event, f"Deactivated version {event.previous_version}")


def _properties_changed(rows: Rows, at: At, event: c.PropertiesChanged) -> None:
    owner = msgspec.json.decode(event.properties, type=_Owned).owner
    name = owner.get("name") if isinstance(owner, dict) else owner
    _change(rows, at, event, owner=name if isinstance(name, str) else None)
    cells: Cells = {"properties": event.properties, "author": event.author, "at_ms": event.at_ms}
    rows.put("properties", (at.workflow_id,), cells)
    _declare(rows, at, OF_PROPERTIES, event.properties)
    _note(rows, at, event, f"Changed properties: {event.changes}")


def _workflow_deleted(rows: Rows, at: At, event: c.WorkflowDeleted) -> None:
    rows.forget(at.workflow_id)
    for table in ("versions", "properties", "breakpoints"):
        rows.erase(table, {"workflow_id": at.workflow_id})
    _note(rows, at, event, "Deleted the workflow")


def _instance_created(rows: Rows, at: At, event: c.InstanceCreated) -> None:
    instance, run_id, at_ms = (at.workflow_id, event.instance_id), event.run_id, event.at_ms
    cells: Cells = {
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
        "created_at_ms": at_ms,
        "created_reason": event.reason,
    }
    place = placed(event.parent)
    if place:
        cells["launch"] = place["launch"]
    rows.put("runs", (*instance, run_id), cells)
    rank, status = STANDINGS[event.status]
    rows.stand((*instance, run_id), rank, status)
    # A later run finds what the first one has written, unless the view has let go of it.
    first: Cells = {"created_at_ms": at_ms}
    labels = labels_of(event.params, event.runtime_tags, event.initiator)
    if event.backfill_id is not None:
        first["backfill_id"], labels = event.backfill_id, (*labels, backfill_label(event.backfill_id))
    rows.put("instances", instance, place, first)
    rows.label(instance, at_ms if run_id == 1 else None, event.version, labels)
    if run_id == 1:
        rows.put("workflows", (at.workflow_id,), {"latest_instance_id": event.instance_id})
    about = {"run_id": run_id, "version": event.version, "status": status, "reason": event.reason}
    outcome(rows, at, event, event.instance_id, **about)


def _start_duplicated(rows: Rows, at: At, event: c.StartDuplicated) -> None:
    outcome(rows, at, event, event.instance_id, run_id=event.run_id)


def _instance_launched(rows: Rows, at: At, event: c.InstanceLaunched) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    rows.put("runs", run, {"launched_at_ms": event.at_ms})
    rows.stand(run, *STANDINGS[c.InstanceStatus.IN_PROGRESS])


def _queue_displaced(rows: Rows, at: At, event: c.QueueDisplaced) -> None:
    by = f"instance {event.instance_id} run {event.run_id}"
    _note(rows, at, event, f"Stopped {event.count} queued runs: {by} was started")


def only_told(_: Rows, __: At, ___: object) -> None:
    """The event changes nothing but the timeline."""


def _termination_progressed(_: Rows, __: At, ___: c.TerminationProgressed) -> None:
    """The outcome of the request comes with the last batch."""


def _instance_ended(rows: Rows, at: At, event: c.InstanceEnded) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    rows.put("runs", run, {"recorded_at_ms": event.at_ms, "recorded_reason": event.reason})
    rows.stand(run, *STANDINGS[event.status])


def command_settled(rows: Rows, at: At, event: c.CommandSettled) -> None:
    """Of a workflow or of a run: the request was carried out, or changed nothing."""
    about = {"command": event.command, "status": event.status.value, "version": event.version, "count": event.count}
    outcome(rows, at, event, event.instance_id, **about, run_id=event.run_id or None, reason=event.reason)


def command_refused(rows: Rows, at: At, event: c.CommandRefused) -> None:
    """Of a workflow or of a run: nothing has changed but that the request is answered."""
    about = {"command": event.command, "refusal": event.refusal.value, "message": event.message}
    outcome(rows, at, event, None, **about, errors=list(event.errors))


OF_WORKFLOWS: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
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
    c.TerminationRequested: only_told,
    c.TerminationProgressed: _termination_progressed,
    c.InstanceEnded: _instance_ended,
    c.InstanceUnblocked: only_told,
    **OF_BREAKPOINTS,
    **OF_SCHEDULES,
    **OF_BACKFILLS,
    c.CommandSettled: command_settled,
    c.CommandRefused: command_refused,
}
