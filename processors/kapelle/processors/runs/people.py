"""What is decided on what people ask for: actions on a step, restarts of an instance or a step. Each request acts once.

| the request was | and is asked for again |
|---|---|
| refused, or never made | it is decided on, as if for the first time |
| carried out on a step | it is settled: nothing else comes of it |
| passed on to `workflows` as a restart | `workflows` tells which run came of it, or decides if it had refused it |
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kapelle.processors.draft import Draft
from kapelle.processors.effects import Effect
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.params import ParamError
from kapelle.processors.runs import dependencies, restarts
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.states import ACTIVE, ENDS_AS, RESTARTABLE_IN_RUN, STEP_ACTIONS
from kapelle.processors.runs.tables import RunRow, Runs, StepRow
from kapelle.processors.wiring import WORKFLOW_INTERNAL, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, CommandStatus, Refusal, RestartPolicy, StepStatus

Effects = Iterable[Effect]
Request = c.RestartRun | c.ActOnStep
# What can be asked for a step, besides restarting it.
TAKEN: Final = frozenset(ENDS_AS) | {Action.BYPASS}


def _is_repeated(request: Request, draft: Draft[Runs], now_ms: int) -> bool:
    """Whether the request was carried out before. If so it is answered, and there is nothing else to do."""
    answer = draft.state.answers.get((draft.key, request.request_id))
    if answer is None or answer.is_pending:
        return False
    workflow_id, instance_id = ids_of(draft.key)
    if answer.is_restart:
        again = Restart(RestartPolicy.RESTART_FROM_BEGINNING).json()  # it is known by its id: nobody looks at the rest
        draft.send(WORKFLOW_INTERNAL, workflow_id, c.QueueRun(request.request_id, request.author, instance_id, again))
        return True
    _settle(draft, request, answer.run_id, now_ms, unchanged_because="The request was carried out before")
    return True


def _settle(
    draft: Draft[Runs], request: Request, run_id: int, now_ms: int, *, unchanged_because: str | None = None
) -> None:
    """The outcome of a request that needs no new run: its last event."""
    workflow_id, instance_id = ids_of(draft.key)
    draft.emit(
        c.CommandSettled(
            request_id=request.request_id,
            command=type(request).__name__,
            status=CommandStatus.DONE if unchanged_because is None else CommandStatus.UNCHANGED,
            workflow_id=workflow_id,
            instance_id=instance_id,
            run_id=run_id,
            reason=unchanged_because or "",
            at_ms=now_ms,
        )
    )


@runs.decides(c.ActOnStep)
def act_on_step(message: Message[c.ActOnStep], state: Runs, now_ms: int) -> Effects:
    """Stop, kill or skip a step, if its state allows it."""
    request, draft = message.value, Draft(runs, message.key, state)
    if _is_repeated(request, draft, now_ms):
        return draft.effects
    run, row = state.runs.get((message.key,)), state.steps.get((message.key, request.step_id))
    refusal = _action_refused(request, run, row)
    if refusal is not None or run is None or row is None:
        return _refused(draft, request, refusal or (Refusal.NOT_FOUND, ""), now_ms)
    flow = Flow(draft, message.id, now_ms, BEHAVIOURS)
    if run.status in INSTANCE_TERMINAL:  # only SKIP is left: the run begins again behind the step
        restart = Restart(RestartPolicy.RESTART_FROM_SPECIFIC, request.step_id, skip_steps=(request.step_id,))
        _queue(flow, request, restart, run.params)
        return draft.effects
    flow.note(request, request.step_id)
    _act(flow, request, row)
    flow.go_on()
    _settle(draft, request, run.run_id, now_ms)
    return draft.effects


def _action_refused(request: c.ActOnStep, run: RunRow | None, row: StepRow | None) -> tuple[Refusal, str] | None:
    if run is None:
        return Refusal.NOT_FOUND, "Expected an instance that has run, but there is none"
    if row is None:
        return Refusal.INVALID, f"Expected step {request.step_id!r:.80} to have been created, but it was not"
    allowed = STEP_ACTIONS.get(row.status, frozenset())
    if request.action not in TAKEN or request.action not in allowed:
        names = ", ".join(sorted(allowed)) or "nothing"
        return Refusal.INVALID, f"Expected {names} for a step that is {row.status}, but found {request.action}"
    is_over = run.status in INSTANCE_TERMINAL
    if not is_over and row.status not in ACTIVE and row.status not in RESTARTABLE_IN_RUN:
        return Refusal.INVALID, f"Expected the instance to have ended, or the step to have failed: it is {row.status}"
    return None


def _act(flow: Flow, request: c.ActOnStep, row: StepRow) -> None:
    step, attempt = flow.plan.steps[request.step_id], attempt_of(request.step_id, row)
    reason = request.reason or f"{request.author} asked for {request.action}"
    flow.take_back(request.step_id, row, request.action, reason)
    if request.action is Action.SKIP:
        if row.status in ACTIVE:
            flow.skip(step, attempt, (), reason)
        else:
            flow.skip(step, flow.next_attempt(attempt), (StepStatus.CREATED,), reason)
    elif request.action is Action.BYPASS:
        dependencies.bypass(flow, request.step_id)
        flow.pass_on(request.step_id)
    elif request.action is Action.KILL:
        flow.fail_for_good(step, attempt, StepStatus.FATALLY_FAILED, reason)
    else:
        flow.change(attempt, (StepStatus.STOPPED,), reason=reason)


@runs.decides(c.RestartRun)
def restart_run(message: Message[c.RestartRun], state: Runs, now_ms: int) -> Effects:
    """Restart an instance that has ended, or a step of one that has not."""
    request, draft = message.value, Draft(runs, message.key, state)
    if _is_repeated(request, draft, now_ms):
        return draft.effects
    run = state.runs.get((message.key,))
    if run is None:
        return _restart_unknown(draft, request, now_ms)
    flow = Flow(draft, message.id, now_ms, BEHAVIOURS)
    if run.status not in INSTANCE_TERMINAL:
        return _restart_step(flow, request, message.id)
    rows = restarts.rows_of(message.key, state)
    refusal = restarts.refused(request, flow.plan, rows)
    if refusal is not None:
        return _refused(draft, request, (Refusal.INVALID, refusal), now_ms)
    try:
        given = parsed_object(request.run_params)
        params = restarts.restarted_params(run, flow.plan, given, request, now_ms) if given else run.params
        step_run_params = restarts.step_params(request.step_run_params, flow.plan)
        restarts.check_size(params, request.run_params, request.step_run_params)
    except ParamError as error:
        return _refused(draft, request, (Refusal.INVALID, str(error)), now_ms)
    step_id = request.step_id if request.policy is RestartPolicy.RESTART_FROM_SPECIFIC else None
    _queue(flow, request, Restart(request.policy, step_id, step_run_params), params)
    return draft.effects


def _queue(flow: Flow, request: Request, restart: Restart, params: str) -> None:
    """Ask `workflows` for a new run: its run strategy holds for restarts too."""
    run, text, request_id = flow.run, restart.json(), request.request_id
    if flow.state.answers.get((flow.key, request_id)) is None:
        asked = c.RestartRequested(request_id, request.author, run.run_id + 1, text, flow.now_ms)
        flow.draft.emit(asked)
    given = request.run_params if isinstance(request, c.RestartRun) else "{}"
    queued = c.QueueRun(request_id, request.author, run.instance_id, text, params, given)
    flow.draft.send(WORKFLOW_INTERNAL, run.workflow_id, queued)


def _restart_unknown(draft: Draft[Runs], request: c.RestartRun, now_ms: int) -> Effects:
    """An instance that never ran may have ended in the queue. `workflows` knows."""
    if request.policy is RestartPolicy.RESTART_FROM_SPECIFIC:
        text = f"Expected step {request.step_id!r:.80} to have been created, but the instance never ran"
        return _refused(draft, request, (Refusal.INVALID, text), now_ms)
    workflow_id, instance_id = ids_of(draft.key)
    restart = Restart(RestartPolicy.RESTART_FROM_BEGINNING).json()
    queued = c.QueueRun(request.request_id, request.author, instance_id, restart, None, request.run_params)
    draft.send(WORKFLOW_INTERNAL, workflow_id, queued)
    return draft.effects


def _restart_step(flow: Flow, request: c.RestartRun, cause: str) -> Effects:
    """A new attempt at a step that has failed, while the others go on."""
    draft, run, now_ms = flow.draft, flow.run, flow.now_ms
    row = flow.state.steps.get((flow.key, request.step_id or ""))
    refusal = _step_restart_refused(flow, request, row)
    if refusal is not None or row is None or request.step_id is None:
        return _refused(draft, request, (Refusal.INVALID, refusal or ""), now_ms)
    try:
        more = restarts.step_params(request.step_run_params, flow.plan)
        given = restarts.with_step_params(run.step_run_params, more)
        restarts.check_size(run.params, run.run_params, given)
    except ParamError as error:
        return _refused(draft, request, (Refusal.INVALID, str(error)), now_ms)
    draft.emit(
        c.ActionTaken(
            request.request_id,
            request.author,
            run.run_id,
            Action.RESTART,
            "",
            now_ms,
            step_id=request.step_id,
            step_run_params=given if more else None,
        )
    )
    flow = Flow(draft, cause, now_ms, BEHAVIOURS)  # one that knows the parameters
    retries = {**row.retries, "manual": row.retries.get("manual", 0) + 1}
    attempt = msgspec.structs.replace(attempt_of(request.step_id, row), retries=retries)
    flow.try_again(flow.plan.steps[request.step_id], attempt)
    flow.go_on()
    _settle(draft, request, run.run_id, now_ms)
    return draft.effects


def _step_restart_refused(flow: Flow, request: c.RestartRun, row: StepRow | None) -> str | None:
    if request.step_id is None:
        return f"Expected the instance to have ended, but it is {flow.run.status}"
    if row is None:
        return f"Expected step {request.step_id!r:.80} to have been created, but it was not"
    if request.run_params != "{}":
        return f"Expected run_params only for an instance that has ended, but it is {flow.run.status}"
    if row.status not in RESTARTABLE_IN_RUN:
        return f"Expected step {request.step_id!r} to have failed while the instance runs, but it is {row.status}"
    mode = flow.plan.steps[request.step_id].step.failure_mode
    if mode != "FAIL_AFTER_RUNNING":
        return f"Expected the failure mode FAIL_AFTER_RUNNING of step {request.step_id!r}, but it is {mode}"
    return None


def _refused(draft: Draft[Runs], request: Request, refusal: tuple[Refusal, str], now_ms: int) -> Effects:
    code, text = refusal
    draft.emit(c.CommandRefused(request.request_id, type(request).__name__, code, text, now_ms))
    return draft.effects
