"""What is decided on messages of other processors and of workers, and on time. What people ask for is in `people`."""

from collections.abc import Iterable
from typing import Final

import msgspec

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Effect
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.params import BadNumber, duration_ms
from kapelle.processors.params.durations import DURATION_MS_DEFAULT
from kapelle.processors.params.stored import values_of
from kapelle.processors.runs import dependencies, restarts, tasks
from kapelle.processors.runs.applying import CONTINUE, DUE, RUN_TIMEOUT, TIMEOUT
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.plan import Plan, digest_of, plan_of
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.restarts import Again, Restart
from kapelle.processors.runs.starts import run_started
from kapelle.processors.runs.states import ENDS_AS, RETRYABLE
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
    plan = plan_of(digest_of(start.definition), lambda: start.definition)
    restart = Restart.parse(start.restart) if start.restart is not None else None
    again = _again(restart, plan, message.key, state)
    begins = msgspec.structs.replace(
        again,
        steps=again.steps if before is not None else (),  # a first run has no rows to take away
        step_run_params=restart.step_run_params if restart else {},
    )
    draft = Draft(runs, message.key, state)
    draft.emit(run_started(start, state, now_ms, timeout_ms=_timeout_ms(plan, start.params), begins=begins))
    flow = Flow(draft, message.id, now_ms, BEHAVIOURS)
    flow.skipped = frozenset(restart.skip_steps) if restart else frozenset()
    flow.ready.extend(again.ready)
    flow.go_on()
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


def _take_up(flow: Flow, first: str) -> None:
    """Continue all steps that a full decision left over: the first one first, the others in order of creation."""
    rows = flow.state.steps.prefix((flow.key,))
    left = [(step_id != first, row.sequence, step_id) for (_, step_id), row in rows if _is_left(row, flow.run)]
    flow.ready.extend(step_id for *_, step_id in sorted(left))
    flow.in_parts()
    flow.go_on()


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
    flow = Flow(Draft(runs, message.key, state), message.id, now_ms, BEHAVIOURS)
    flow.note(request, None)
    flow.stop_all(request.action, ENDS_AS[request.action], request.reason)
    flow.go_on()
    return flow.draft.effects


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
    flow = Flow(draft, message.id, now_ms, BEHAVIOURS)
    step = flow.plan.steps[report.step_id]
    resume = flow.behaviour(step).resume
    if resume is None:
        raise ValueError(f"Expected a kind of step that workers report on, but {step.step.id!r} is a {step.step.type}")
    resume(flow, step, row, report)
    flow.go_on()
    return draft.effects


@runs.decides(c.MatchDependency)
def match_dependency(message: Message[c.MatchDependency], state: Runs, now_ms: int) -> Effects:
    """A signal is there that a step may wait for."""
    run = state.runs.get((message.key,))
    if run is None or run.run_id != message.value.run_id or run.status in INSTANCE_TERMINAL:
        return NOTHING_DECIDED
    flow = Flow(Draft(runs, message.key, state), message.id, now_ms, BEHAVIOURS)
    if dependencies.match(flow, message.value):
        flow.pass_on(message.value.step_id)
    flow.go_on()
    return flow.draft.effects


# Time ---------------------------------------------------------------------------------------------------------------


@runs.timer_due
def timer_due(message: Message[TimerDue], state: Runs, now_ms: int) -> Effects:
    """A run or an attempt takes too long, a worker is silent, or a step goes on by itself."""
    flow = Flow(Draft(runs, message.key, state), message.id, now_ms, BEHAVIOURS)
    kind, _, step_id = message.value.name.partition("/")
    if kind == RUN_TIMEOUT:
        _run_timed_out(flow)
        return flow.draft.effects
    if kind == CONTINUE:
        _take_up(flow, step_id.partition("/")[2])
        return flow.draft.effects
    row = state.steps.get((message.key, step_id))
    if row is None:
        raise ValueError(f"Expected step {step_id!r} of {message.key!r} to have a timer, but there is no such step")
    _step_timer(flow, kind, step_id, row)
    flow.go_on()
    return flow.draft.effects


def _run_timed_out(flow: Flow) -> None:
    reason = "The run took longer than its time-out"
    flow.stop_all(Action.TIME_OUT, StepStatus.TIMED_OUT, reason)
    flow.end(InstanceStatus.TIMED_OUT, reason)


def _step_timer(flow: Flow, name: str, step_id: str, row: StepRow) -> None:
    """A retry and a time-out are the same for all kinds of steps; what else can be due, each kind knows itself."""
    step = flow.plan.steps[step_id]
    if name == TIMEOUT:
        flow.time_out(step_id, row)
    elif name == DUE and row.status in RETRYABLE:
        flow.try_again(step, attempt_of(step_id, row))
    else:
        flow.behaviour(step).timer_due[name](flow, step, row)
