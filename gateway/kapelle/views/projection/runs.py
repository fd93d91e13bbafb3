"""What the events of runs, tasks and their cancellations do to the view."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kapelle.processors.runs.states import COMPLETE, TERMINAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, StepStatus
from kapelle.views.changes import Amend, Cell, Change, Erase, Put
from kapelle.views.projection.at import At, Moment, as_json, entry_put, outcome_put, run_cells, status_puts
from kapelle.views.projection.signals import step_matched
from kapelle.views.projection.workflows import command_refused, command_settled

Changes = Iterator[Change]

URGENCY: Final = {Criticality.CRITICAL: 0, Criticality.HIGH: 1, Criticality.MEDIUM: 2, Criticality.LOW: 3}
URGENCY_OTHER: Final = 4
EMPTY: Final = "{}"


def _run_started(at: At, event: c.RunStarted) -> Changes:
    cells: dict[str, Cell] = {
        "started_at_ms": event.at_ms,
        "timeout_at_ms": event.timeout_at_ms,
        "run_properties": event.run_properties,
        "steps": as_json(event.steps) if event.steps else None,
    }
    yield Put("runs", run_cells(at, event.run_id), cells)
    yield from status_puts(at, event.run_id, c.InstanceStatus.IN_PROGRESS)
    yield entry_put(at, Moment(event.at_ms, "STATUS", event.run_id), status=c.InstanceStatus.IN_PROGRESS.value)


def _run_ended(at: At, event: c.RunEnded) -> Changes:
    cells = {"ended_at_ms": event.at_ms, "run_status": event.run_status.value, "ended_reason": event.reason}
    yield Put("runs", run_cells(at, event.run_id), cells)
    yield from status_puts(at, event.run_id, event.status)
    yield entry_put(at, Moment(event.at_ms, "STATUS", event.run_id), status=event.status.value, message=event.reason)


def _step_changed(at: At, event: c.StepChanged) -> Changes:
    key = _attempt_cells(at, event)
    status = event.statuses[-1]
    yield Put("attempts", key, _changed_cells(event, status), first=_first_cells(event))
    if status is not StepStatus.STARTING and StepStatus.CREATED not in event.statuses:
        yield Put("tasks", key, {"is_over": 1})  # a worker has it, or nobody needs to
    yield entry_put(
        at,
        Moment(
            event.at_ms,
            "STATUS",
            event.run_id,
            step_id=event.step_id,
            attempt=event.attempt,
            iteration=event.iteration,
        ),
        status=status,
        statuses=event.statuses,
        worker=event.worker,
        message=event.reason,
    )


def _attempt_cells(at: At, event: c.StepChanged) -> dict[str, Cell]:
    return {
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id,
        "run_id": event.run_id,
        "step_id": event.step_id,
        "iteration": event.iteration,
        "attempt": event.attempt,
    }


def _changed_cells(event: c.StepChanged, status: StepStatus) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "sequence": event.sequence,
        "status": status.value,
        "reason": event.reason,
        "retries": as_json(event.retries) if event.retries else EMPTY,
        "due_at_ms": event.due_at_ms,
        "changed_at_ms": event.at_ms,
    }
    given = (
        ("params", event.params),
        ("token", event.token),
        ("worker", event.worker),
        ("timeout_at_ms", event.timeout_at_ms),
        ("lease_at_ms", event.lease_at_ms),
        ("successors", as_json(event.successors) if status in COMPLETE else None),
        ("ended_at_ms", event.at_ms if status in TERMINAL else None),
    )
    cells.update(one for one in given if one[1] is not None)
    return cells


def _first_cells(event: c.StepChanged) -> dict[str, Cell]:
    first: dict[str, Cell] = {"created_at_ms": event.at_ms}
    if StepStatus.STARTING in event.statuses:
        first["started_at_ms"] = event.at_ms
    return first


def _loop_entered(at: At, event: c.LoopEntered) -> Changes:
    iteration = event.iterations[event.header]
    for step_id in event.steps:
        yield Erase("dependencies", {**_whole(at), "step_id": step_id})
    yield entry_put(
        at,
        Moment(event.at_ms, "LOG", event.run_id, step_id=event.header, iteration=iteration),
        message=f"The loop of {event.header!r} begins iteration {iteration}",
    )


def _whole(at: At) -> dict[str, Cell]:
    return {"workflow_id": at.workflow_id, "instance_id": at.instance_id}


def _dependencies_set(at: At, event: c.DependenciesSet) -> Changes:
    for number, name in enumerate(event.names):
        yield Put("dependencies", {**_whole(at), "step_id": event.step_id, "number": number}, {"name": name})
    yield entry_put(
        at,
        Moment(
            event.at_ms,
            "LOG",
            event.run_id,
            step_id=event.step_id,
            attempt=event.attempt,
            iteration=event.iteration,
        ),
        message=f"Waits for {signals_text(event.names)}",
    )


def signals_text(names: Sequence[str]) -> str:
    """Signals that are waited for, in words."""
    return f"signal{'s' * (len(names) != 1)} {', '.join(repr(name) for name in names)}"


def _dependency_matched(at: At, event: c.DependencyMatched) -> Changes:
    yield Put(
        "dependencies",
        {**_whole(at), "step_id": event.step_id, "number": event.index},
        {"name": event.name, "signal_id": event.signal_id, "sequence": event.sequence},
    )
    yield entry_put(
        at,
        Moment(event.at_ms, "LOG", event.run_id, step_id=event.step_id),
        message=f"Has signal {event.name!r}" if event.signal_id else f"Waits no more for signal {event.name!r}",
        signal_id=event.signal_id,
    )
    yield from step_matched(at.workflow_id, at.instance_id, event)


def _loop_ended(at: At, event: c.LoopEnded) -> Changes:
    yield entry_put(
        at,
        Moment(event.at_ms, "LOG", event.run_id, step_id=event.header, iteration=event.iteration),
        message=f"The loop of {event.header!r} ends after {event.iteration} iterations",
    )


def _lease_renewed(_: At, event: c.LeaseRenewed) -> Changes:
    cells: dict[str, Cell] = {"lease_at_ms": event.lease_at_ms, "changed_at_ms": event.at_ms}
    yield Amend("attempts", {"token": event.token}, cells)


def _step_logged(at: At, event: c.StepLogged) -> Changes:
    yield Amend("attempts", {"token": event.token}, {"message": event.text, "changed_at_ms": event.at_ms})
    yield entry_put(
        at,
        Moment(
            event.at_ms,
            "LOG",
            event.run_id,
            step_id=event.step_id,
            attempt=event.attempt,
            iteration=event.iteration,
        ),
        worker=event.worker,
        message=event.text,
    )


def _report_refused(at: At, event: c.ReportRefused) -> Changes:
    cells = {
        "token": event.token,
        "worker": event.worker,
        "report": event.report.value,
        "reason": event.reason,
        "at_ms": event.at_ms,
    }
    yield Put("refused_reports", at.place, cells)
    yield entry_put(
        at,
        Moment(event.at_ms, "LOG", step_id=event.step_id),
        worker=event.worker,
        message=f"Refused {event.report.value}: {event.reason}",
    )


def _action_taken(at: At, event: c.ActionTaken) -> Changes:
    yield entry_put(
        at,
        Moment(event.at_ms, "ACTION", event.run_id, step_id=event.step_id),
        action=event.action.value,
        author=event.author,
        message=event.reason,
    )
    yield outcome_put(at, event, run_id=event.run_id, step_id=event.step_id, action=event.action.value)


def _restart_requested(at: At, event: c.RestartRequested) -> Changes:
    yield entry_put(
        at,
        Moment(event.at_ms, "ACTION", event.run_id),
        action=c.Action.RESTART.value,
        author=event.author,
        restart=event.restart,
    )
    yield outcome_put(at, event, run_id=event.run_id)


def task_given(task: c.Task) -> Changes:
    """Work that a worker may take."""
    key: dict[str, Cell] = {
        "workflow_id": task.workflow_id,
        "instance_id": task.instance_id,
        "run_id": task.run_id,
        "step_id": task.step_id,
        "iteration": task.iteration,
        "attempt": task.attempt,
    }
    cells: dict[str, Cell] = {
        "token": task.token,
        "type": task.type,
        "sub_type": task.sub_type,
        "params": task.params,
        "idempotency_key": task.idempotency_key,
        "criticality": task.criticality.value,
        "urgency": URGENCY.get(task.criticality, URGENCY_OTHER),
        "lease_ms": task.lease_ms,
        "deadline_at_ms": task.deadline_at_ms,
        "at_ms": task.at_ms,
    }
    yield Put("tasks", key, cells)


def task_cancelled(cancelled: c.CancelTask) -> Changes:
    """A worker may still be at it, and should stop."""
    yield Put("cancellations", {"token": cancelled.token}, {"reason": cancelled.reason, "at_ms": cancelled.at_ms})


OF_RUNS: Final[Mapping[type[Any], Callable[[At, Any], Changes]]] = {
    c.RunStarted: _run_started,
    c.StepChanged: _step_changed,
    c.LoopEntered: _loop_entered,
    c.LoopEnded: _loop_ended,
    c.LeaseRenewed: _lease_renewed,
    c.StepLogged: _step_logged,
    c.DependenciesSet: _dependencies_set,
    c.DependencyMatched: _dependency_matched,
    c.ReportRefused: _report_refused,
    c.ActionTaken: _action_taken,
    c.RestartRequested: _restart_requested,
    c.RunEnded: _run_ended,
    c.CommandSettled: command_settled,
    c.CommandRefused: command_refused,
}
