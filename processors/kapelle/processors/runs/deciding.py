"""The decisions of `runs`. This module has those on messages of other processors and of workers, and on timers.

| module | decides on |
|---|---|
| here | `StartRun`, `EndQueuedRun`, `TerminateRun`, `ReportTask`, `MatchDependency`, and timers that are due |
| `people` | the requests `ActOnStep`, `RestartRun` and, for iterations and rounds, `TerminateInstance` |
| `pauses` | `ChangeBreakpoints` and `PassOnBreakpoints`, with which a run learns of breakpoints |
| `grants` | `GrantPermit` and `LearnLimit`, with which `permits` answers |
| `terminations` | `TerminateChildren` and `UnblockInstances`, which are for all iterations of a step |
| `children` | `RecordChildStart` and `RecordChildEnd`, with which children answer |
| `tree_restarts` | `RestartBelow`, `RestartChild` and `EndChild`, which bring a restart or a stop through a tree |
| `givenup` | what follows when one of these decisions is given up |
| `flow`, `behaviours` | what a run does by itself, and what each kind of step does |

They are made on a draft and may be refused: the second shape of `kapelle.processors.decisions`.
"""

import msgspec

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import TimerDue
from kapelle.processors.params import BadNumber, duration_ms
from kapelle.processors.params.durations import DURATION_MS_DEFAULT, DURATION_MS_MAX
from kapelle.processors.params.stored import values_of
from kapelle.processors.runs import (  # six of them only register what they decide
    children,
    dependencies,
    givenup,  # noqa: F401
    grants,  # noqa: F401
    pauses,  # noqa: F401
    people,  # noqa: F401
    restarts,
    tasks,
    terminations,  # noqa: F401
    tree_restarts,  # noqa: F401
)
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.composites.applying import CHILDREN, step_of
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.plan import Plan, digest_of, plan_of
from kapelle.processors.runs.processor import RunDraft, on_draft, runs
from kapelle.processors.runs.restarts import Beginning, Restart
from kapelle.processors.runs.starts import run_started
from kapelle.processors.runs.states import ENDS_AS, RETRYABLE
from kapelle.processors.runs.tables import RunRow, Runs, StepRow
from kapelle.processors.runs.timers import CONTINUE, DUE, RUN_TIMEOUT, TIMEOUT
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, RestartPolicy, StepStatus

runs.in_background(CONTINUE)
runs.in_background(CHILDREN, turns_named=True)


# Runs ---------------------------------------------------------------------------------------------------------------


@on_draft.decides(c.StartRun)
def start_run(start: c.StartRun, draft: RunDraft, now_ms: int) -> None:
    """Begin a run, and with it every step that waits for nothing."""
    before = draft.state.runs.get((draft.key,))
    if before is not None and before.run_id >= start.run_id:
        return  # it has begun already
    plan = plan_of(digest_of(start.definition), lambda: start.definition)
    restart = Restart.parse(start.restart) if start.restart is not None else None
    beginning = _beginning(restart, plan, draft.key, draft.state)
    begins = msgspec.structs.replace(
        beginning,
        steps=beginning.steps if before is not None else (),  # a first run has no rows to take away
        step_run_params=restart.step_run_params if restart and not restart.path else {},
    )
    draft.emit(run_started(start, draft.state, now_ms, timeout_ms=_timeout_ms(plan, start), begins=begins))
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    flow.skipped = frozenset(restart.skip_steps) if restart and not restart.path else frozenset()
    flow.ready.extend(beginning.ready)
    flow.go_on()


def _beginning(restart: Restart | None, plan: Plan, key: str, state: Runs) -> Beginning:
    if restart is None or (restart.policy is RestartPolicy.RESTART_FROM_BEGINNING and not restart.path):
        return restarts.from_the_beginning(plan)
    rows = restarts.rows_of(key, state)
    iterations = {header: row.iteration for (_, header), row in state.loops.prefix((key,))}
    wanted = restarts.incomplete(plan, rows) if restart.first_step is None else [restart.first_step]
    wanted = [step_id for step_id in wanted if step_id in plan.steps]
    if not wanted:  # a parent may restart a child that is complete: a run that runs nothing would have failed
        return restarts.from_the_beginning(plan)
    beginning = restarts.beginning_at(wanted, plan, rows, iterations)
    resumes = restarts.resumed(plan, beginning.steps, rows, restart)
    return msgspec.structs.replace(beginning, resumes=resumes)


def _timeout_ms(plan: Plan, start: c.StartRun) -> int:
    if is_inline(start.workflow_id):
        return DURATION_MS_MAX  # an iteration has no time-out of its own: that of the run around it counts
    values = values_of(start.params)
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


@on_draft.decides(c.EndQueuedRun)
def end_queued_run(ended: c.EndQueuedRun, draft: RunDraft, now_ms: int) -> None:
    """A restart never got out of the queue: the instance has another run, and its steps are as they were."""
    run = draft.state.runs.get((draft.key,))
    if run is None or run.run_id >= ended.run_id:
        return
    draft.emit(
        c.RunEnded(
            workflow_id=run.workflow_id,
            instance_id=run.instance_id,
            run_id=ended.run_id,
            status=ended.status,
            run_status=ended.status,
            reason=ended.reason,
            at_ms=now_ms,
        )
    )


@on_draft.decides(c.TerminateRun)
def terminate_run(request: c.TerminateRun, draft: RunDraft, now_ms: int) -> None:
    """Stop or kill all that is active, and with it the run."""
    run = draft.state.runs.get((draft.key,))
    if run is None or run.run_id != request.run_id or run.status in INSTANCE_TERMINAL:
        return  # it has ended by itself meanwhile
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    flow.note(request, None)
    flow.stop_all(request.action, ENDS_AS[request.action], request.reason)
    if request.is_from_above:
        flow.end_as(InstanceStatus.STOPPED, request.reason)
    else:
        flow.go_on()


# Workers ------------------------------------------------------------------------------------------------------------


@on_draft.decides(c.ReportTask)
def report_task(report: c.ReportTask, draft: RunDraft, now_ms: int) -> None:
    """Act on the report of a worker, or refuse it."""
    run, row = draft.state.runs.get((draft.key,)), draft.state.steps.get((draft.key, report.step_id))
    refusal = tasks.refusal_of(report, run, row)
    if refusal is not None or row is None:
        draft.emit(tasks.refused(report, refusal or "", now_ms))
        return
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    step = flow.plan.steps[report.step_id]
    resume = flow.behaviour(step).resume
    if resume is None:
        raise ValueError(f"Expected a kind of step that workers report on, but {step.step.id!r} is a {step.step.type}")
    resume(flow, step, row, report)
    flow.go_on()


@on_draft.decides(c.MatchDependency)
def match_dependency(matched: c.MatchDependency, draft: RunDraft, now_ms: int) -> None:
    """A signal is there that a step may wait for."""
    run = draft.state.runs.get((draft.key,))
    if run is None or run.run_id != matched.run_id or run.status in INSTANCE_TERMINAL:
        return
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    if dependencies.match(flow, matched):
        flow.pass_on(matched.step_id)
    flow.go_on()


# Time ---------------------------------------------------------------------------------------------------------------


@on_draft.decides(TimerDue)
def timer_due(timer: TimerDue, draft: RunDraft, now_ms: int) -> None:
    """A run or an attempt takes too long, a worker is silent, or a step goes on by itself."""
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    kind, _, step_id = timer.name.partition("/")
    if kind == CHILDREN:
        if children.timer_due(flow, step_of(timer.name)):
            flow.go_on()
        return
    if kind == RUN_TIMEOUT:
        _run_timed_out(flow)
        return
    if kind == CONTINUE:
        _take_up(flow, step_id.partition("/")[2])
        return
    row = draft.state.steps.get((draft.key, step_id))
    if row is None:
        raise ValueError(f"Expected step {step_id!r} of {draft.key!r} to have a timer, but there is no such step")
    _step_timer(flow, kind, step_id, row)
    flow.go_on()


def _run_timed_out(flow: Flow) -> None:
    reason = "The run took longer than its time-out"
    flow.stop_all(Action.TIME_OUT, StepStatus.TIMED_OUT, reason)
    flow.end_as(InstanceStatus.TIMED_OUT, reason)


def _step_timer(flow: Flow, name: str, step_id: str, row: StepRow) -> None:
    """A retry and a time-out are the same for all kinds of steps; what else can be due, each kind knows itself."""
    step = flow.plan.steps[step_id]
    if name == TIMEOUT:
        flow.time_out(step_id, row)
    elif name == DUE and row.status in RETRYABLE:
        flow.try_again(step, attempt_of(step_id, row))
    else:
        flow.behaviour(step).timer_due[name](flow, step, row)
