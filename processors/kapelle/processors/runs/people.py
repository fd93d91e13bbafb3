"""Decisions on requests of users: actions on a step, restarts of an instance or a step. Each request acts once.

| the request was | and arrives again |
|---|---|
| refused, or never made | it is decided on, as if for the first time |
| carried out on a step | it is settled: nothing else comes of it |
| passed on to `workflows` as a restart | `workflows` tells which run came of it, or decides if it had refused it |
| passed on by a child to its parent | the ancestor that acted tells its outcome; if it refused, it decides again |
"""

from typing import Final

import msgspec

from kapelle.processors.decisions import LATER, Done, unchanged
from kapelle.processors.definitions import StepKind
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.params import ParamError
from kapelle.processors.parents import INLINE
from kapelle.processors.refusals import conflict, invalid, not_found
from kapelle.processors.runs import dependencies, restarts
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.runs.composites.step_endings import fan_of, is_ending
from kapelle.processors.runs.context import Ending
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.pauses import check_not_paused_by, resume
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.restarted import By, restarted_params
from kapelle.processors.runs.restarts import WHOLE, Restart
from kapelle.processors.runs.states import ACTIVE, ENDS_AS, RESTARTABLE_IN_RUN, STEP_ACTIONS
from kapelle.processors.runs.tables import RunRow, StepRow
from kapelle.processors.runs.tree_restarts import acts_above, climb_to_home, restart_ended
from kapelle.processors.wiring import WORKFLOW_INTERNAL, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, RestartPolicy, StepStatus

# What can be asked for a step, besides restarting it.
TAKEN: Final = frozenset(ENDS_AS) | {Action.BYPASS, Action.RESUME}
# What can be asked for an iteration or a round, and the status that it has then.
STATUS_AFTER: Final = {Action.STOP: InstanceStatus.STOPPED, Action.KILL: InstanceStatus.FAILED}


@on_draft.carries_out(c.ActOnStep)
@acts_above
def act_on_step(request: c.ActOnStep, draft: RunDraft, now_ms: int) -> Done:
    """Stop, kill, skip, bypass or resume a step, if its state allows it."""
    run, row = draft.state.runs.get((draft.key,)), draft.state.steps.get((draft.key, request.step_id))
    if run is None:
        raise not_found("Expected an instance that has run, but there is none")
    if row is None:
        raise invalid(f"Expected step {request.step_id!r:.80} to have been created, but it was not")
    _check_action(request, run, row)
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    fan = fan_of(flow, request.step_id, row)
    if fan is not None and fan.ending is not None:
        raise conflict(f"Expected step {request.step_id!r} to be running, but it is ending as {fan.ending.status}")
    if is_ending(flow):  # nothing that a person asks of one step may begin new work in it
        raise conflict(f"{flow.key} is ending: act on its steps after it ends")
    if run.status in INSTANCE_TERMINAL:  # only SKIP is left: the run begins again behind the step
        restart = Restart(RestartPolicy.RESTART_FROM_SPECIFIC, request.step_id, skip_steps=(request.step_id,))
        return restart_ended(flow, request, restart, run.params)
    if request.action is Action.RESUME:
        resume(flow, request)
    else:
        flow.note(request, request.step_id)
        _act(flow, request, row)
        flow.go_on()
    return Done(instance_id=run.instance_id, run_id=run.run_id)


def _check_action(request: c.ActOnStep, run: RunRow, row: StepRow) -> None:
    if request.run_id is not None and request.run_id != run.run_id:
        raise not_found(f"Expected run {run.run_id}, which is the present one, but found {request.run_id}")
    if request.attempt is not None and request.attempt != row.attempt:
        raise not_found(
            f"Expected attempt {row.attempt} of step {request.step_id!r}, which is the present one, "
            f"but found {request.attempt}"
        )
    if request.action is not Action.RESUME and request.step_run_params != "{}":
        raise invalid(f"Expected step_run_params only for {Action.RESUME}, but found them for {request.action}")
    allowed = STEP_ACTIONS.get(row.status, frozenset())
    if request.action not in TAKEN or request.action not in allowed:
        names = ", ".join(sorted(allowed)) or "nothing"
        raise invalid(f"Expected {names} for a step that is {row.status}, but found {request.action}")
    is_over = run.status in INSTANCE_TERMINAL
    if not is_over and row.status not in ACTIVE and row.status not in RESTARTABLE_IN_RUN:
        raise invalid(f"Expected the instance to have ended, or the step to have failed, but it is {row.status}")


def _act(flow: Flow, request: c.ActOnStep, row: StepRow) -> None:
    step, attempt = flow.plan.steps[request.step_id], attempt_of(request.step_id, row)
    reason = request.reason or f"{request.author} asked for {request.action}"
    status = ENDS_AS.get(request.action, row.status)
    if not flow.take_back(request.step_id, row, Ending(request.action, status, reason)):
        return  # it ends when its children have ended
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


@on_draft.carries_out(c.TerminateInstance)
def terminate_instance(request: c.TerminateInstance, draft: RunDraft, now_ms: int) -> Done:
    """Stop or kill an iteration or a round. All other instances are in a queue: `workflows` ends them."""
    run = draft.state.runs.get((draft.key,))
    if run is None or not is_inline(run.workflow_id):
        raise not_found("Expected an iteration or a round that has run, but there is none")
    if request.action not in STATUS_AFTER:
        raise invalid(f"Expected STOP or KILL, but found {request.action}")
    if run.status is STATUS_AFTER[request.action]:
        return unchanged(f"The run is {run.status} already", instance_id=run.instance_id)
    if run.status in INSTANCE_TERMINAL:
        raise invalid(f"Expected {draft.key} to be running, but it is {run.status}")
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    reason = request.reason or f"{request.author} asked for {request.action}"
    stop = c.TerminateRun(
        request_id=request.request_id, author=request.author, run_id=run.run_id, action=request.action, reason=reason
    )
    flow.note(stop, None)
    flow.stop_all(request.action, ENDS_AS[request.action], reason)
    flow.go_on()
    return Done(instance_id=run.instance_id, run_id=run.run_id, count=1)


@on_draft.carries_out(c.RestartRun)
@acts_above
def restart_run(request: c.RestartRun, draft: RunDraft, now_ms: int) -> Done:
    """Restart an instance that has ended, or a step of one that has not."""
    run = draft.state.runs.get((draft.key,))
    refusal = restarts.downstream_refused(request)
    if refusal is not None:
        raise invalid(refusal)
    if run is None:
        return _restart_unknown(draft, request)
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    if request.from_inline_root:
        home, request = _home(flow, request)
        if home != flow.key:
            return climb_to_home(flow, request, home)
    if run.status not in INSTANCE_TERMINAL:
        return _restart_step(flow, request)
    refusal = restarts.refused(request, flow.plan, restarts.rows_of(draft.key, draft.state))
    refusal = refusal or _pointless(flow, request)
    if refusal is not None:
        raise invalid(refusal)
    try:
        given = parsed_object(request.run_params)
        params = restarted_params(flow, given, By(request.author, request.policy)) if given else run.params
        step_run_params = restarts.step_params(request.step_run_params, flow.plan)
        restarts.check_size(params, request.run_params, request.step_run_params)
    except ParamError as error:
        raise invalid(str(error)) from None
    step_id = request.step_id if request.policy is RestartPolicy.RESTART_FROM_SPECIFIC else None
    restart = Restart(request.policy, step_id, step_run_params, downstream_policy=request.downstream_policy)
    return restart_ended(flow, request, restart, params)


def _pointless(flow: Flow, request: c.RestartRun) -> str | None:
    """Why nothing can come of the policy for children; None if something can.

    The restart of a child is also about composite steps of its ancestors, which only they know.
    """
    if request.downstream_policy is None or flow.run.parent is not None or request.step_id is None:
        return None
    if restarts.has_composites(request.step_id, flow.plan):
        return None
    return (
        f"Expected {RestartPolicy.RESTART_FROM_SPECIFIC} for step {request.step_id!r}: neither it nor a step after it "
        f"has children that could restart by {request.downstream_policy}"
    )


def _restart_unknown(draft: RunDraft, request: c.RestartRun) -> Done:
    """An instance that never ran may have ended in the queue. `workflows` knows."""
    if request.policy is RestartPolicy.RESTART_FROM_SPECIFIC:
        raise invalid(f"Expected step {request.step_id!r:.80} to have been created, but the instance never ran")
    workflow_id, instance_id = ids_of(draft.key)
    restart = Restart(RestartPolicy.RESTART_FROM_BEGINNING).json()
    queued = c.QueueRun(
        request_id=request.request_id,
        author=request.author,
        instance_id=instance_id,
        restart=restart,
        params=None,
        run_params=request.run_params,
    )
    draft.send(WORKFLOW_INTERNAL, workflow_id, queued)
    return LATER


def _home(flow: Flow, request: c.RestartRun) -> tuple[str, c.RestartRun]:
    """The nearest ancestor that was pushed, and how it is restarted. What is given for steps reaches all iterations.

    While an iteration runs, its ancestor runs too and refuses the restart. The ancestor also knows a request that it
    has carried out, and which may be the reason why the iteration runs.
    """
    run, row = flow.run, flow.row(request.step_id or "")
    if request.policy not in WHOLE:
        raise invalid(f"Expected one of {', '.join(WHOLE)} as policy, but found {request.policy}")
    if run.status in INSTANCE_TERMINAL and request.step_id is not None and row is None:
        raise invalid(f"Expected step {request.step_id!r:.80} to have been created, but it was not")
    home = run.parent.home if run.parent is not None and run.parent.kind in INLINE else flow.key
    return home, msgspec.structs.replace(request, step_id=None, from_inline_root=False)


def _restart_step(flow: Flow, request: c.RestartRun) -> Done:
    """A new attempt at a step that has failed, while the others go on."""
    draft, run, now_ms = flow.draft, flow.run, flow.now_ms
    row = flow.state.steps.get((flow.key, request.step_id or ""))
    refusal = _step_restart_refused(flow, request, row)
    if refusal is not None or row is None or request.step_id is None:
        raise invalid(refusal or "")
    try:
        more = restarts.step_params(request.step_run_params, flow.plan)
        given = restarts.with_step_params(run.step_run_params, more)
        restarts.check_size(run.params, run.run_params, given)
    except ParamError as error:
        raise invalid(str(error)) from None
    if request.downstream_policy is not None or request.policy in WHOLE:
        check_not_paused_by(flow, request.step_id, row)
    draft.emit(
        c.ActionTaken(
            request_id=request.request_id,
            author=request.author,
            run_id=run.run_id,
            action=Action.RESTART,
            reason="",
            at_ms=now_ms,
            step_id=request.step_id,
            step_run_params=given if more else None,
        )
    )
    flow = Flow(draft, flow.cause, now_ms, BEHAVIOURS)  # one that knows the parameters
    flow.descends = Restart(request.policy, request.step_id, downstream_policy=request.downstream_policy)
    retries = {**row.retries, "manual": row.retries.get("manual", 0) + 1}
    attempt = msgspec.structs.replace(attempt_of(request.step_id, row), retries=retries)
    flow.try_again(flow.plan.steps[request.step_id], attempt)
    flow.go_on()
    return Done(instance_id=run.instance_id, run_id=run.run_id)


def _step_restart_refused(flow: Flow, request: c.RestartRun, row: StepRow | None) -> str | None:
    if request.step_id is None:
        return f"Expected the instance to have ended, but it is {flow.run.status}"
    if row is None:
        return f"Expected step {request.step_id!r:.80} to have been created, but it was not"
    if request.run_params != "{}":
        return f"Expected run_params only for an instance that has ended, but it is {flow.run.status}"
    if is_ending(flow):
        return "The run is ending: restart the instance after it ends"
    if row.status not in RESTARTABLE_IN_RUN:
        return f"Expected step {request.step_id!r} to have failed while the instance runs, but it is {row.status}"
    mode = flow.plan.steps[request.step_id].step.failure_mode
    if mode != "FAIL_AFTER_RUNNING":
        return f"Expected the failure mode FAIL_AFTER_RUNNING of step {request.step_id!r}, but it is {mode}"
    return (
        None if request.downstream_policy is None else _pointless_now(flow, request.step_id, request.downstream_policy)
    )


def _pointless_now(flow: Flow, step_id: str, policy: RestartPolicy) -> str | None:
    """Why nothing can come of the policy for children of a step that is tried again now; None if something can."""
    if flow.plan.steps[step_id].step.kind is StepKind.STEP:
        return (
            f"Expected {RestartPolicy.RESTART_FROM_SPECIFIC} for step {step_id!r} while the instance runs: it has no "
            f"children that could restart by {policy}"
        )
    if dependencies.is_waiting(flow, step_id):
        return f"Expected step {step_id!r} to have its signals, so that its children restart now, but it lacks some"
    return None
