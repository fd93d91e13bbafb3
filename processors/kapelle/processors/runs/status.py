"""The status of a run, derived from its steps, and the status of an instance, derived from its runs."""

from collections.abc import Callable

from kapelle.processors.keys import run_key
from kapelle.processors.runs.plan import Plan
from kapelle.processors.runs.states import FAILED
from kapelle.processors.runs.tables import ProgressRow, RunRow, Runs
from kapelle.schemas.contracts import InstanceStatus, StepStatus


def run_status(progress: ProgressRow) -> InstanceStatus:
    """The state of a run that is over: the worst of its steps decides. A run that ran nothing has failed."""
    if progress.failed or progress.sequence == 0:
        return InstanceStatus.FAILED
    if progress.timed_out:
        return InstanceStatus.TIMED_OUT
    return InstanceStatus.STOPPED if progress.stopped else InstanceStatus.SUCCEEDED


def instance_status(of_run: InstanceStatus, run: RunRow, state: Runs, plan: Callable[[], Plan]) -> InstanceStatus:
    """The state of the instance: that of its run, unless a restart succeeded and left other steps as they were."""
    if run.restart is None or of_run is not InstanceStatus.SUCCEEDED:
        return of_run
    statuses = [row.status for _, row in state.steps.prefix((run_key(run.workflow_id, run.instance_id),))]
    if any(status in FAILED for status in statuses):
        return InstanceStatus.FAILED
    if StepStatus.TIMED_OUT in statuses:
        return InstanceStatus.TIMED_OUT
    if StepStatus.STOPPED in statuses:
        return InstanceStatus.STOPPED
    if len(statuses) < len(plan().steps):
        return run.baseline or of_run
    return InstanceStatus.SUCCEEDED
