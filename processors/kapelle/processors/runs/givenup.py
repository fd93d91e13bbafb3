"""What becomes of a run whose decision was given up, because it ran out of time, memory or stack.

Work of the run itself: the run fails with the reason, and all its active steps are stopped. So its place in the run
strategy is free for the next one. What people ask for: the request is refused, and the run goes on as it was. Nothing
here looks at the definition or evaluates an expression.
"""

from collections.abc import Iterable
from typing import Any

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Effect, Emit
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.runs import tasks
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.restarts import Again
from kapelle.processors.runs.starts import run_started
from kapelle.processors.runs.tables import Runs
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Refusal, StepStatus

Effects = Iterable[Effect]


@runs.gives_up(c.StartRun)
def start_given_up(message: Message[c.StartRun], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run begins, and fails at once."""
    start, before = message.value, state.runs.get((message.key,))
    if before is not None and before.run_id >= start.run_id:
        return ()
    draft = Draft(runs, message.key, state)
    draft.emit(run_started(start, state, now_ms, timeout_ms=0, begins=Again()))
    Flow(draft, message.id, now_ms, BEHAVIOURS).end(InstanceStatus.FAILED, reason)
    return draft.effects


@runs.gives_up(c.MatchDependency, c.TerminateRun, TimerDue)
def run_given_up(message: Message[Any], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails. A command that speaks of an earlier run changes nothing."""
    run, run_id = state.runs.get((message.key,)), getattr(message.value, "run_id", None)
    if run is None or run.status in INSTANCE_TERMINAL or run_id not in (None, run.run_id):
        return ()
    flow = Flow(Draft(runs, message.key, state), message.id, now_ms, BEHAVIOURS)
    flow.stop_all(Action.STOP, StepStatus.STOPPED, reason)
    flow.end(InstanceStatus.FAILED, reason)
    return flow.draft.effects


@runs.gives_up(c.ReportTask)
def report_given_up(message: Message[c.ReportTask], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails, unless the report was not to be taken anyway."""
    report = message.value
    run, row = state.runs.get((message.key,)), state.steps.get((message.key, report.step_id))
    refusal = tasks.refusal_of(report, run, row)
    if refusal is not None:
        return (Emit(tasks.refused(report, refusal, now_ms)),)
    return run_given_up(message, reason, state, now_ms)


@runs.gives_up(c.ActOnStep, c.RestartRun)
def request_given_up(message: Message[c.ActOnStep | c.RestartRun], reason: str, _: Runs, now_ms: int) -> Effects:
    """The request is refused."""
    request = message.value
    return (
        Emit(
            c.CommandRefused(
                request_id=request.request_id,
                command=type(request).__name__,
                refusal=Refusal.UNPROCESSABLE,
                message=reason,
                errors=(),
                at_ms=now_ms,
            )
        ),
    )
