"""The changes that events of runs, tasks and cancellations make to the rows of the view."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kapelle.processors.runs.states import COMPLETE, TERMINAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, InstanceStatus, StepStatus
from kapelle.views.projection.at import STANDINGS, At, as_json
from kapelle.views.projection.children import OF_CHILDREN, child_started_to_run
from kapelle.views.projection.news import CANCELLATIONS, task_news
from kapelle.views.projection.signals import step_matched
from kapelle.views.projection.workflows import command_refused, command_settled, only_told
from kapelle.views.rows import Cells, Rows

URGENCY: Final = {Criticality.CRITICAL: 0, Criticality.HIGH: 1, Criticality.MEDIUM: 2, Criticality.LOW: 3}
URGENCY_OTHER: Final = 4
EMPTY: Final = "{}"
# The others come before STARTING, or are STARTING: an attempt that waits at its gates still gets its task.
NOT_FOR_TAKING: Final = TERMINAL | {StepStatus.RUNNING, StepStatus.FINISHING}
TEXTS: Final = {status: status.value for status in StepStatus}


def _run_started(rows: Rows, at: At, event: c.RunStarted) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    cells: Cells = {
        "started_at_ms": event.at_ms,
        "timeout_at_ms": event.timeout_at_ms,
        "run_properties": event.run_properties,
        "steps": as_json(event.steps) if event.steps else None,
        "breakpoints": as_json(event.breakpoints) if event.breakpoints else None,
    }
    rows.put("runs", run, cells)
    child_started_to_run(rows, at, event)
    for step_id in event.steps:
        rows.leaf((at.workflow_id, event.instance_id, step_id), {"status": None})
    rows.stand(run, *STANDINGS[InstanceStatus.IN_PROGRESS])


def _run_ended(rows: Rows, at: At, event: c.RunEnded) -> None:
    run = (at.workflow_id, event.instance_id, event.run_id)
    _, run_status = STANDINGS[event.run_status]
    rows.put("runs", run, {"ended_at_ms": event.at_ms, "run_status": run_status, "ended_reason": event.reason})
    rows.stand(run, *STANDINGS[event.status])


def _step_changed(rows: Rows, at: At, event: c.StepChanged) -> None:
    statuses = event.statuses
    status = statuses[-1]
    key = (at.workflow_id, at.instance_id, event.run_id, event.step_id, event.iteration, event.attempt)
    rows.put("attempts", key, _changed_cells(event, status), _first_cells(event))
    attempt: Cells = {"run_id": event.run_id, "iteration": event.iteration, "attempt": event.attempt}
    rows.leaf((at.workflow_id, at.instance_id or 0, event.step_id), {"status": TEXTS[status], **attempt})
    # A worker has the task, or nobody needs to. An attempt that began and ended in one event never had a task.
    if status in NOT_FOR_TAKING and StepStatus.CREATED not in statuses:
        rows.put("tasks", key, {"is_over": 1})


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
    if event.permits:
        cells["permits"], cells["permits_held"] = as_json(event.permits), 0
    if event.worker is not None:
        cells["worker"] = event.worker
    if event.answer is not None:
        cells["answer"] = event.answer
    if event.timeout_at_ms is not None:
        cells["timeout_at_ms"] = event.timeout_at_ms
    if event.lease_at_ms is not None:
        cells["lease_at_ms"] = event.lease_at_ms
    _set_by_status(cells, event, status)
    return cells


def _set_by_status(cells: Cells, event: c.StepChanged, status: StepStatus) -> None:
    if status in COMPLETE:
        cells["successors"] = as_json(event.successors) if event.successors else EMPTY
    if status in TERMINAL:
        cells["ended_at_ms"] = event.at_ms
    elif status is StepStatus.WAITING_FOR_PERMITS:
        cells["permits_at_ms"] = event.at_ms
    elif status is StepStatus.PAUSED:
        cells["paused_at_ms"] = event.at_ms


def _first_cells(event: c.StepChanged) -> Cells:
    if StepStatus.STARTING in event.statuses:
        return {"created_at_ms": event.at_ms, "started_at_ms": event.at_ms}
    return {"created_at_ms": event.at_ms}


def _breakpoints_changed(rows: Rows, at: At, event: c.BreakpointsChanged) -> None:
    cells: Cells = {"breakpoints": as_json(event.breakpoints) if event.breakpoints else None}
    rows.put("runs", (at.workflow_id, at.instance_id, event.run_id), cells)


def _permit_received(rows: Rows, at: At, event: c.PermitReceived) -> None:
    key = (at.workflow_id, at.instance_id, event.run_id, event.step_id, event.iteration, event.attempt)
    rows.put("attempts", key, {"permits_held": event.held})


def _limit_learned(_: Rows, __: At, ___: c.LimitLearned) -> None:
    """What a partition of the engine knows of a tag is of no interest to people."""


def _loop_entered(rows: Rows, at: At, event: c.LoopEntered) -> None:
    for step_id in event.steps:
        where: Cells = {"workflow_id": at.workflow_id, "instance_id": at.instance_id, "step_id": step_id}
        rows.erase("dependencies", where)
        rows.leaf((at.workflow_id, at.instance_id or 0, step_id), {"status": None})


def _dependencies_set(rows: Rows, at: At, event: c.DependenciesSet) -> None:
    for number, name in enumerate(event.names):
        rows.put("dependencies", (at.workflow_id, at.instance_id, event.step_id, number), {"name": name})


def _dependency_matched(rows: Rows, at: At, event: c.DependencyMatched) -> None:
    cells: Cells = {"name": event.name, "signal_id": event.signal_id, "sequence": event.sequence}
    rows.put("dependencies", (at.workflow_id, at.instance_id, event.step_id, event.index), cells)
    step_matched(rows, at.workflow_id, at.instance_id, event)


def _lease_renewed(rows: Rows, _: At, event: c.LeaseRenewed) -> None:
    cells: Cells = {"lease_at_ms": event.lease_at_ms, "changed_at_ms": event.at_ms}
    rows.amend("attempts", {"token": event.token}, cells)


def _step_logged(rows: Rows, _: At, event: c.StepLogged) -> None:
    rows.amend("attempts", {"token": event.token}, {"message": event.text, "changed_at_ms": event.at_ms})


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


OF_RUNS: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
    c.RunStarted: _run_started,
    c.StepChanged: _step_changed,
    c.LoopEntered: _loop_entered,
    c.LoopEnded: only_told,
    c.LeaseRenewed: _lease_renewed,
    c.StepLogged: _step_logged,
    c.DependenciesSet: _dependencies_set,
    c.DependencyMatched: _dependency_matched,
    c.ReportRefused: _report_refused,
    c.ActionTaken: only_told,
    c.RestartRequested: only_told,
    c.RunEnded: _run_ended,
    c.BreakpointsChanged: _breakpoints_changed,
    c.PermitReceived: _permit_received,
    c.LimitLearned: _limit_learned,
    **OF_CHILDREN,
    c.CommandSettled: command_settled,
    c.CommandRefused: command_refused,
}
