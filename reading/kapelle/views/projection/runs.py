"""What the events of runs, tasks and their cancellations do to the view."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.runs.states import COMPLETE, TERMINAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, InstanceStatus, StepStatus
from kapelle.views.projection.at import PHASE_RUN, STANDINGS, At, Moment, as_json, body_of, tell
from kapelle.views.projection.news import CANCELLATIONS, task_news
from kapelle.views.projection.signals import step_matched
from kapelle.views.projection.workflows import command_refused, command_settled
from kapelle.views.rows import Cells, Rows

URGENCY: Final = {Criticality.CRITICAL: 0, Criticality.HIGH: 1, Criticality.MEDIUM: 2, Criticality.LOW: 3}
URGENCY_OTHER: Final = 4
EMPTY: Final = "{}"
BODIES_CACHED: Final = 1_024  # most runs and steps go the same way
TEXTS: Final = {status: status.value for status in StepStatus}


def _run_started(rows: Rows, at: At, event: c.RunStarted) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    cells: Cells = {
        "started_at_ms": event.at_ms,
        "timeout_at_ms": event.timeout_at_ms,
        "run_properties": event.run_properties,
        "steps": as_json(event.steps) if event.steps else None,
    }
    rows.put("runs", run, cells)
    rows.stand(run, *STANDINGS[InstanceStatus.IN_PROGRESS])
    tell(rows, at, Moment(event.at_ms, "STATUS", event.run_id), _status_body(InstanceStatus.IN_PROGRESS, ""))


def _run_ended(rows: Rows, at: At, event: c.RunEnded) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    _, run_status = STANDINGS[event.run_status]
    rows.put("runs", run, {"ended_at_ms": event.at_ms, "run_status": run_status, "ended_reason": event.reason})
    rows.stand(run, *STANDINGS[event.status])
    tell(rows, at, Moment(event.at_ms, "STATUS", event.run_id), _status_body(event.status, event.reason))


@lru_cache(BODIES_CACHED)
def _status_body(status: InstanceStatus, reason: str) -> msgspec.Raw:
    return body_of(status=status.value, message=reason)


def _step_changed(rows: Rows, at: At, event: c.StepChanged) -> None:
    statuses = event.statuses
    status = statuses[-1]
    key = (at.workflow_id, at.instance_id, event.run_id, event.step_id, event.iteration, event.attempt)
    rows.put("attempts", key, _changed_cells(event, status), _first_cells(event))
    if status is not StepStatus.STARTING and StepStatus.CREATED not in statuses:
        rows.put("tasks", key, {"is_over": 1})  # a worker has it, or nobody needs to
    body = _step_body(statuses, event.worker, event.reason)
    rows.tell(
        (at.workflow_id, at.instance_id, event.at_ms, at.stream, at.partition),
        (at.offset, event.run_id, PHASE_RUN, "STATUS", event.step_id, event.attempt, event.iteration, body),
    )


@lru_cache(BODIES_CACHED)
def _step_body(statuses: tuple[StepStatus, ...], worker: str | None, reason: str) -> msgspec.Raw:
    return body_of(status=statuses[-1], statuses=statuses, worker=worker, message=reason)


def _changed_cells(event: c.StepChanged, status: StepStatus) -> Cells:
    """What is not given stays as it is."""
    cells: Cells = {
        "sequence": event.sequence,
        "status": TEXTS[status],
        "reason": event.reason,
        "retries": as_json(event.retries) if event.retries else EMPTY,
        "due_at_ms": event.due_at_ms,
        "changed_at_ms": event.at_ms,
    }
    if event.params is not None:
        cells["params"] = event.params
    if event.token is not None:
        cells["token"] = event.token
    if event.worker is not None:
        cells["worker"] = event.worker
    if event.answer is not None:
        cells["answer"] = event.answer
    if event.timeout_at_ms is not None:
        cells["timeout_at_ms"] = event.timeout_at_ms
    if event.lease_at_ms is not None:
        cells["lease_at_ms"] = event.lease_at_ms
    if status in COMPLETE:
        cells["successors"] = as_json(event.successors) if event.successors else EMPTY
    if status in TERMINAL:
        cells["ended_at_ms"] = event.at_ms
    return cells


def _first_cells(event: c.StepChanged) -> Cells:
    if StepStatus.STARTING in event.statuses:
        return {"created_at_ms": event.at_ms, "started_at_ms": event.at_ms}
    return {"created_at_ms": event.at_ms}


def _of_step(event: c.DependenciesSet | c.StepLogged) -> Moment:
    return Moment(event.at_ms, "LOG", event.run_id, None, event.step_id, event.attempt, event.iteration)


def _loop_entered(rows: Rows, at: At, event: c.LoopEntered) -> None:
    iteration = event.iterations[event.header]
    for step_id in event.steps:
        where: Cells = {"workflow_id": at.workflow_id, "instance_id": at.instance_id, "step_id": step_id}
        rows.erase("dependencies", where)
    moment = Moment(event.at_ms, "LOG", event.run_id, step_id=event.header, iteration=iteration)
    message = f"The loop of {event.header!r} begins iteration {iteration}"
    tell(rows, at, moment, body_of(message=message))


def _loop_ended(rows: Rows, at: At, event: c.LoopEnded) -> None:
    moment = Moment(event.at_ms, "LOG", event.run_id, step_id=event.header, iteration=event.iteration)
    message = f"The loop of {event.header!r} ends after {event.iteration} iterations"
    tell(rows, at, moment, body_of(message=message))


def _dependencies_set(rows: Rows, at: At, event: c.DependenciesSet) -> None:
    for number, name in enumerate(event.names):
        rows.put("dependencies", (at.workflow_id, at.instance_id, event.step_id, number), {"name": name})
    tell(rows, at, _of_step(event), body_of(message=f"Waits for {signals_text(event.names)}"))


def signals_text(names: Sequence[str]) -> str:
    """Signals that are waited for, in words."""
    return f"signal{'s' * (len(names) != 1)} {', '.join(repr(name) for name in names)}"


def _dependency_matched(rows: Rows, at: At, event: c.DependencyMatched) -> None:
    cells: Cells = {"name": event.name, "signal_id": event.signal_id, "sequence": event.sequence}
    rows.put("dependencies", (at.workflow_id, at.instance_id, event.step_id, event.index), cells)
    message = f"Has signal {event.name!r}" if event.signal_id else f"Waits no more for signal {event.name!r}"
    moment = Moment(event.at_ms, "LOG", event.run_id, step_id=event.step_id)
    tell(rows, at, moment, body_of(message=message, signal_id=event.signal_id))
    step_matched(rows, at.workflow_id, at.instance_id, event)


def _lease_renewed(rows: Rows, _: At, event: c.LeaseRenewed) -> None:
    cells: Cells = {"lease_at_ms": event.lease_at_ms, "changed_at_ms": event.at_ms}
    rows.amend("attempts", {"token": event.token}, cells)


def _step_logged(rows: Rows, at: At, event: c.StepLogged) -> None:
    rows.amend("attempts", {"token": event.token}, {"message": event.text, "changed_at_ms": event.at_ms})
    tell(rows, at, _of_step(event), body_of(worker=event.worker, message=event.text))


def _report_refused(rows: Rows, at: At, event: c.ReportRefused) -> None:
    cells: Cells = {
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id,
        "token": event.token,
        "worker": event.worker,
        "report": event.report.value,
        "reason": event.reason,
        "at_ms": event.at_ms,
    }
    rows.put("refused_reports", (at.stream, at.partition, at.offset), cells)
    moment = Moment(event.at_ms, "LOG", step_id=event.step_id)
    message = f"Refused {event.report.value}: {event.reason}"
    tell(rows, at, moment, body_of(worker=event.worker, message=message))


def _action_taken(rows: Rows, at: At, event: c.ActionTaken) -> None:
    moment = Moment(event.at_ms, "ACTION", event.run_id, step_id=event.step_id)
    tell(rows, at, moment, body_of(action=event.action.value, author=event.author, message=event.reason))


def _restart_requested(rows: Rows, at: At, event: c.RestartRequested) -> None:
    body = body_of(action=c.Action.RESTART.value, author=event.author, restart=event.restart)
    tell(rows, at, Moment(event.at_ms, "ACTION", event.run_id), body)


def task_given(rows: Rows, task: c.Task) -> None:
    """Work that a worker may take."""
    key = (task.workflow_id, task.instance_id, task.run_id, task.step_id, task.iteration, task.attempt)
    cells: Cells = {
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
    rows.put("tasks", key, cells)
    rows.news(task_news(task.type))


def task_cancelled(rows: Rows, cancelled: c.CancelTask) -> None:
    """A worker may still be at it, and should stop."""
    rows.put("cancellations", (cancelled.token,), {"reason": cancelled.reason, "at_ms": cancelled.at_ms})
    rows.news(CANCELLATIONS)


OF_RUNS: Final[Mapping[type[Any], Callable[[Rows, At, Any], None]]] = {
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
