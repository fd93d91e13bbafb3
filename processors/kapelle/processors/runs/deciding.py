"""What is decided on messages of other processors and of workers, and on time. What people ask for is in `people`."""

from collections.abc import Iterable
from typing import Final

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.params import BadNumber, duration_ms
from kapelle.processors.params.durations import DURATION_MS_DEFAULT
from kapelle.processors.params.stored import values_of
from kapelle.processors.runs import restarts, signalling, tasks
from kapelle.processors.runs.applying import CONTINUE, RUN_TIMEOUT
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.execution import Execution
from kapelle.processors.runs.giving import take_back
from kapelle.processors.runs.plan import Plan, digest_of, plan_of
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.restarts import Again, Restart
from kapelle.processors.runs.retries import Kind
from kapelle.processors.runs.states import (
    ENDS_AS,
    INSTANCE_TERMINAL,
    RETRYABLE,
)
from kapelle.processors.runs.tables import RunRow, Runs, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, RestartPolicy, StepStatus

Effects = Iterable[Effect]
NOTHING_DECIDED: Final[Effects] = ()


# Runs ---------------------------------------------------------------------------------------------------------------


@runs.decides(c.StartRun)
def start_run(message: Message[c.StartRun], state: Runs, now_ms: int) -> Effects:
    """Begin a run, and with it every step that waits for nothing."""
    start = message.value
    before = state.runs.get((message.key,))
    if before is not None and before.run_id >= start.run_id:
        return NOTHING_DECIDED  # it has begun already
    digest = digest_of(start.definition)
    plan = plan_of(digest, lambda: start.definition)
    restart = Restart.parse(start.restart) if start.restart is not None else None
    again = _again(restart, plan, message.key, state)
    given = restart.step_run_params if restart else {}
    draft = Draft(runs, message.key, state)
    draft.emit(
        c.RunStarted(
            workflow_id=start.workflow_id,
            instance_id=start.instance_id,
            run_id=start.run_id,
            request_id=start.request_id,
            version=start.version,
            digest=digest,
            definition=None if state.definitions.get((digest,)) else start.definition,
            initiator=start.initiator,
            params=start.params,
            run_params=start.run_params,
            step_run_params=restarts.with_step_params(start.step_run_params, given),
            run_properties=start.run_properties,
            correlation_id=start.correlation_id,
            restart=start.restart,
            author=start.author,
            timeout_at_ms=now_ms + _timeout_ms(plan, start.params),
            steps=again.steps if before is not None else (),
            arrived=again.arrived,
            satisfied=again.satisfied,
            iterations=again.iterations,
            pending=again.pending,
            again=again.again,
            at_ms=now_ms,
        )
    )
    execution = Execution(draft, message.id, now_ms)
    execution.skipped = frozenset(restart.skip_steps) if restart else frozenset()
    execution.ready.extend(again.ready)
    execution.go_on()
    return draft.effects


def _again(restart: Restart | None, plan: Plan, key: str, state: Runs) -> Again:
    if restart is None or restart.policy is RestartPolicy.RESTART_FROM_BEGINNING:
        return restarts.from_the_beginning(plan)
    rows = restarts.rows_of(key, state)
    iterations = {header: row.iteration for (_, header), row in state.loops.prefix((key,))}
    wanted = [restart.step_id] if restart.step_id is not None else restarts.incomplete(plan, rows)
    return restarts.again_from([one for one in wanted if one in plan.steps], plan, rows, iterations)


def _timeout_ms(plan: Plan, params: str) -> int:
    values = values_of(params)
    try:
        return duration_ms(plan.workflow.timeout, lambda name: values[name].value)
    except BadNumber:
        return DURATION_MS_DEFAULT


def _take_up(execution: Execution, first: str) -> None:
    """Continue all steps that a full decision left over: the first one first, the others in order of creation."""
    rows = execution.state.steps.prefix((execution.key,))
    left = [(step_id != first, row.sequence, step_id) for (_, step_id), row in rows if _is_left(row, execution.run)]
    execution.ready.extend(step_id for *_, step_id in sorted(left))
    execution.in_parts()
    execution.go_on()


def _is_left(row: StepRow, run: RunRow) -> bool:
    return row.run_id == run.run_id and row.status is StepStatus.CREATED


@runs.decides(c.EndQueuedRun)
def end_queued_run(message: Message[c.EndQueuedRun], state: Runs, now_ms: int) -> Effects:
    """A restart never got out of the queue: the instance has another run, and its steps are as they were."""
    run, ended = state.runs.get((message.key,)), message.value
    if run is None or run.run_id >= ended.run_id:
        return NOTHING_DECIDED
    draft = Draft(runs, message.key, state)
    draft.emit(
        c.RunEnded(run.workflow_id, run.instance_id, ended.run_id, ended.status, ended.status, ended.reason, now_ms)
    )
    return draft.effects


@runs.decides(c.TerminateRun)
def terminate_run(message: Message[c.TerminateRun], state: Runs, now_ms: int) -> Effects:
    """Stop or kill all that is active, and with it the run."""
    run, request = state.runs.get((message.key,)), message.value
    if run is None or run.run_id != request.run_id or run.status in INSTANCE_TERMINAL:
        return NOTHING_DECIDED  # it has ended by itself meanwhile
    execution = Execution(Draft(runs, message.key, state), message.id, now_ms)
    execution.note(request, None)
    execution.stop_all(request.action, ENDS_AS[request.action], request.reason)
    execution.go_on()
    return execution.draft.effects


# Workers ------------------------------------------------------------------------------------------------------------


@runs.decides(c.ReportTask)
def report_task(message: Message[c.ReportTask], state: Runs, now_ms: int) -> Effects:
    """Take a worker's word, or record why not."""
    report, draft = message.value, Draft(runs, message.key, state)
    run, row = state.runs.get((message.key,)), state.steps.get((message.key, report.step_id))
    refusal = tasks.refusal_of(report, run, row)
    if refusal is not None or row is None:
        draft.emit(tasks.refused(report, refusal or "", now_ms))
        return draft.effects
    execution = Execution(draft, message.id, now_ms)
    tasks.take(execution, report, row)
    execution.go_on()
    return draft.effects


@runs.decides(c.MatchDependency)
def match_dependency(message: Message[c.MatchDependency], state: Runs, now_ms: int) -> Effects:
    """A signal is there that a step may wait for."""
    run = state.runs.get((message.key,))
    if run is None or run.run_id != message.value.run_id or run.status in INSTANCE_TERMINAL:
        return NOTHING_DECIDED
    execution = Execution(Draft(runs, message.key, state), message.id, now_ms)
    signalling.matched(execution, message.value)
    execution.go_on()
    return execution.draft.effects


# Time ---------------------------------------------------------------------------------------------------------------


@runs.timer_due
def timer_due(message: Message[TimerDue], state: Runs, now_ms: int) -> Effects:
    """A run or an attempt takes too long, a worker is silent, or a step goes on by itself."""
    execution = Execution(Draft(runs, message.key, state), message.id, now_ms)
    kind, _, step_id = message.value.name.partition("/")
    if kind == RUN_TIMEOUT:
        _run_timed_out(execution)
        return execution.draft.effects
    if kind == CONTINUE:
        _take_up(execution, step_id.partition("/")[2])
        return execution.draft.effects
    row = state.steps.get((message.key, step_id))
    if row is None:
        raise ValueError(f"Expected step {step_id!r} of {message.key!r} to have a timer, but there is no such step")
    STEP_TIMERS[kind](execution, step_id, row)
    execution.go_on()
    return execution.draft.effects


def _run_timed_out(execution: Execution) -> None:
    reason = "The run took longer than its time-out"
    execution.stop_all(Action.TIME_OUT, StepStatus.TIMED_OUT, reason)
    execution.end(InstanceStatus.TIMED_OUT, reason)


def _step_timed_out(execution: Execution, step_id: str, row: StepRow) -> None:
    reason = f"Attempt {row.attempt} took longer than its time-out"
    take_back(execution, step_id, row, Action.TIME_OUT, reason)
    execution.fail(execution.plan.steps[step_id], row, Kind.TIMEOUT, reason)


def _lease_lost(execution: Execution, step_id: str, row: StepRow) -> None:
    """Its lease was the waiting: another worker gets the task at once."""
    reason = f"Nothing was heard of {row.worker!r} for as long as its lease"
    take_back(execution, step_id, row, Action.STOP, reason)
    execution.fail(execution.plan.steps[step_id], row, Kind.PLATFORM, reason, at_once=True)


def _goes_on(execution: Execution, step_id: str, row: StepRow) -> None:
    step, attempt = execution.plan.steps[step_id], attempt_of(step_id, row)
    if row.status in RETRYABLE:
        execution.try_again(step, attempt)
        return
    known = execution.state.inputs.get((execution.key, step_id))
    params = execution.expressions.restored(step, known.text) if known else {}
    execution.finish(step, attempt, (StepStatus.FINISHING,), params)


STEP_TIMERS: Final = {"timeout": _step_timed_out, "lease": _lease_lost, "due": _goes_on}
