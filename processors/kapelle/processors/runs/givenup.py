"""The effects on a run when its decision is given up, because it ran out of time, memory or stack.

Work of the run itself: the run fails with the reason, and all its active steps are stopped. So its place in the run
strategy is free for the next one. A request of a person is refused, and the run goes on as it was: `OnDraft` sees to
that. Nothing here looks at the definition or evaluates an expression.
"""

from collections.abc import Iterable

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.runs import tasks
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.children import awaited, note_end
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.grants import waiting
from kapelle.processors.runs.processor import RunDraft, runs
from kapelle.processors.runs.restarts import Beginning
from kapelle.processors.runs.starts import run_started
from kapelle.processors.runs.tables import Runs
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, StepStatus

Effects = Iterable[Effect]


@runs.gives_up(c.StartRun)
def start_given_up(message: Message[c.StartRun], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run begins, and fails at once."""
    start, before = message.value, state.runs.get((message.key,))
    if before is not None and before.run_id >= start.run_id:
        return ()
    draft = RunDraft(runs, message.key, state)
    draft.emit(run_started(start, state, now_ms, timeout_ms=0, begins=Beginning()))
    Flow(draft, message.id, now_ms, BEHAVIOURS).end(InstanceStatus.FAILED, reason)
    return draft.effects


@runs.gives_up(c.MatchDependency, c.TerminateRun, c.ChangeBreakpoints, c.PassOnBreakpoints, TimerDue)
def run_given_up(message: Message[object], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails. A command that speaks of an earlier run changes nothing."""
    run, run_id = state.runs.get((message.key,)), getattr(message.value, "run_id", None)
    if run is None or run.status in INSTANCE_TERMINAL or run_id not in (None, run.run_id):
        return ()
    flow = Flow(RunDraft(runs, message.key, state), message.id, now_ms, BEHAVIOURS)
    flow.stop_all(Action.STOP, StepStatus.STOPPED, reason)
    flow.end_as(InstanceStatus.FAILED, reason)
    return flow.draft.effects


@runs.gives_up(c.GrantPermit)
def grant_given_up(message: Message[c.GrantPermit], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails, if one of its attempts waits for the permit. The end of the attempt returns it."""
    if waiting(message.value, message.key, state) is None:
        return ()
    return run_given_up(message, reason, state, now_ms)


@runs.gives_up(c.RecordChildStart)
def child_start_given_up(message: Message[c.RecordChildStart], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails, if it waits for the child."""
    if None in awaited(message.value, message.key, state):
        return ()
    return run_given_up(message, reason, state, now_ms)


@runs.gives_up(c.RecordChildEnd)
def child_end_given_up(message: Message[c.RecordChildEnd], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails. The end of the child counts all the same: else the run would wait for it for ever."""
    draft = RunDraft(runs, message.key, state)
    if note_end(message.value, draft, now_ms) is None:
        return ()
    flow = Flow(draft, message.id, now_ms, BEHAVIOURS)
    if flow.run.status not in INSTANCE_TERMINAL:
        flow.stop_all(Action.STOP, StepStatus.STOPPED, reason)
        flow.end_as(InstanceStatus.FAILED, reason)
    return draft.effects


@runs.gives_up(c.ReportTask)
def report_given_up(message: Message[c.ReportTask], reason: str, state: Runs, now_ms: int) -> Effects:
    """The run fails, unless the report was not to be taken anyway."""
    report = message.value
    run, row = state.runs.get((message.key,)), state.steps.get((message.key, report.step_id))
    refusal = tasks.refusal_of(report, run, row)
    if refusal is not None:
        return (Emit(tasks.refused(report, refusal, now_ms)),)
    return run_given_up(message, reason, state, now_ms)
