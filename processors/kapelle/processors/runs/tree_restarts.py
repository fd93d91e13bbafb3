"""Restarts in a tree of instances: up to the first ancestor that still runs, and down again.

| the instance | what a restart of one of its children does |
|---|---|
| has ended, and has a parent | it climbs: the parent is asked |
| has ended, and has none | it becomes a new run, which follows the path down |
| runs, and its foreach step runs | the iteration is run again in its place, while the others go on |
| runs, and its step has failed | the step gets another attempt, which follows the path down |

Whatever is on the path begins with the step that the path names. The instance at its end is restarted as it was asked.
A refusal answers the request wherever it is found.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kapelle.processors.decisions import LATER, CarryOut, Done
from kapelle.processors.definitions import FailureMode
from kapelle.processors.draft import Draft
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.params import ParamError
from kapelle.processors.parents import INLINE, child_end
from kapelle.processors.refusals import Refused, conflict, invalid, not_found
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.composites import counts, foreach
from kapelle.processors.runs.composites.step_endings import fan_of, is_ending
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.pauses import check_not_paused_by
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.restarted import By, restarted_params
from kapelle.processors.runs.restarts import Hop, Restart
from kapelle.processors.runs.states import RESTARTABLE_IN_RUN
from kapelle.processors.runs.tables import ChildRow, RunRow, Runs, StepRow
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, Parent, RestartPolicy

Request = c.RestartRun | c.ActOnStep | c.RestartBelow
R = TypeVar("R", c.RestartRun, c.ActOnStep, c.RestartBelow)


def restart_ended(flow: Flow, request: Request, restart: Restart, params: str) -> Done:
    """Restart an instance that has ended: its parent is asked, or `workflows` for a new run."""
    parent = flow.run.parent
    if parent is None:
        return _queue(flow, request, restart, params)
    # Parameters go up only if the request changes them. Otherwise the parent gives its present ones on the way down.
    changed = params if params != flow.run.params else restart.params
    up = msgspec.structs.replace(restart, params=restart.params if restart.path else changed)
    _note(flow, request, up)
    if parent.kind in INLINE:
        return _climb(flow.draft, request, parent, up)
    # By way of `workflows`, like the end of the child: the parent must hear of the end first.
    _send_to_workflows(flow, request, up)
    return LATER


def _note(flow: Flow, request: Request, restart: Restart) -> None:
    """The request is passed on: if it comes again, it is known."""
    if flow.state.answers.get((flow.key, request.request_id)) is None:
        requested = c.RestartRequested(
            request_id=request.request_id,
            author=request.author,
            run_id=flow.run.run_id + 1,
            restart=restart.json(),
            at_ms=flow.now_ms,
        )
        flow.draft.emit(requested)


def _climb(
    draft: Draft[Runs], request: Request, parent: Parent, restart: Restart, *, is_repeated: bool = False
) -> Done:
    below = c.RestartBelow(
        request_id=request.request_id,
        author=request.author,
        step_id=parent.step_id,
        number=parent.number,
        child=draft.key,
        restart=restart.json(),
        is_repeated=is_repeated,
    )
    draft.send(RUN_INTERNAL, parent.key, below)
    return LATER


def climb_to_home(flow: Flow, request: c.RestartRun, home: str) -> Done:
    """The nearest ancestor that was pushed is asked."""
    _note(flow, request, Restart(request.policy))
    flow.draft.send(RUN_INTERNAL, home, request)
    return LATER


def acts_above(carry_out: CarryOut[R, RunDraft]) -> CarryOut[R, RunDraft]:
    """Decides on requests that may climb. If this instance has passed a request on, only its ancestors know what came
    of it, and the instance or one above it may run by now. Then they are asked, and nothing is done here.

    A request that was refused there is decided on again as long as this instance is in a state to be restarted.
    """

    def decide(request: R, draft: RunDraft, now_ms: int) -> Done:
        answer = draft.state.answers.get((draft.key, request.request_id))
        run = draft.state.runs.get((draft.key,))
        # A child never asks `workflows` itself: what is pending was asked of its parent.
        if answer is None or not answer.is_pending or run is None or run.parent is None:
            return carry_out(request, draft, now_ms)
        is_repeated = isinstance(request, c.RestartBelow) and request.is_repeated
        if run.status in INSTANCE_TERMINAL and not is_repeated:
            try:
                return carry_out(request, draft, now_ms)
            except Refused:
                if draft.effects:
                    raise
        if isinstance(request, c.RestartRun) and request.from_inline_root and run.parent.kind in INLINE:
            whole = msgspec.structs.replace(request, step_id=None, from_inline_root=False)
            draft.send(RUN_INTERNAL, run.parent.home, whole)
            return LATER
        nothing = Restart(RestartPolicy.RESTART_FROM_BEGINNING)  # nobody looks at it
        return _climb(draft, request, run.parent, nothing, is_repeated=True)

    return decide


def _queue(flow: Flow, request: Request, restart: Restart, params: str) -> Done:
    """Ask `workflows` for a new run: its run strategy holds for restarts too."""
    _note(flow, request, restart)
    given = request.run_params if isinstance(request, c.RestartRun) else "{}"
    _send_to_workflows(flow, request, restart, params=params, run_params=given)
    return LATER


def _send_to_workflows(
    flow: Flow, request: Request, restart: Restart, *, params: str | None = None, run_params: str = "{}"
) -> None:
    run = flow.run
    queued = c.QueueRun(
        request_id=request.request_id,
        author=request.author,
        instance_id=run.instance_id,
        restart=restart.json(),
        params=params,
        run_params=run_params,
    )
    flow.draft.send(WORKFLOW_INTERNAL, run.workflow_id, queued)


# Up -----------------------------------------------------------------------------------------------------------------


@on_draft.carries_out(c.RestartBelow)
@acts_above
def restart_below(request: c.RestartBelow, draft: RunDraft, now_ms: int) -> Done:
    """Restart a child of a step of this instance, or something further down."""
    run, row = draft.state.runs.get((draft.key,)), draft.state.steps.get((draft.key, request.step_id))
    child = draft.state.children.get((draft.key, request.step_id, request.number))
    if run is None or row is None or child is None:
        raise not_found(f"Step {request.step_id!r} of {draft.key} has no child {request.number}")
    if request.is_repeated:  # it is not known here: it was refused
        raise conflict(f"Expected {request.child} to have ended, but it runs")
    _check_child(request, draft, child)
    below = Restart.parse(request.restart)
    restart = msgspec.structs.replace(below, path=(Hop(request.step_id, request.number), *below.path))
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    if run.status in INSTANCE_TERMINAL:
        return restart_ended(flow, request, restart, run.params)
    if child.status not in INSTANCE_TERMINAL:
        raise conflict(f"Expected child {request.number} of step {request.step_id!r} to have ended, but it runs")
    _check_running(flow, request, row)
    draft.emit(
        c.ActionTaken(
            request_id=request.request_id,
            author=request.author,
            run_id=run.run_id,
            action=Action.RESTART,
            reason=f"Child {request.number} is restarted",
            at_ms=now_ms,
            step_id=request.step_id,
        )
    )
    step = flow.plan.steps[request.step_id]
    if row.status in RESTARTABLE_IN_RUN:
        check_not_paused_by(flow, request.step_id, row)
        flow.descends = restart
        retries = {**row.retries, "manual": row.retries.get("manual", 0) + 1}
        flow.try_again(step, msgspec.structs.replace(attempt_of(request.step_id, row), retries=retries))
    else:
        wrong = foreach.again(flow, step, request.number, below)
        if wrong is not None:
            raise invalid(wrong)
    flow.go_on()
    return Done(instance_id=run.instance_id, run_id=run.run_id)


def _check_child(request: c.RestartBelow, draft: RunDraft, child: ChildRow) -> None:
    """Refuse to restart a child that the step had in an earlier run or turn, and does not have now."""
    fan, where = draft.state.fans.get((draft.key, request.step_id)), f"step {request.step_id!r} of {draft.key}"
    if fan is not None and fan.kind is ChildKind.SUBWORKFLOW and child.child != request.child:
        actual = f"{child.child} is" if "/" in child.child else "it has none now"
        raise invalid(f"Expected {request.child} to be the child of {where}, but {actual}")
    if not counts.belongs(fan, request.number, child):
        what = "iteration" if fan is not None and fan.kind is ChildKind.FOREACH else "round"
        raise invalid(f"Expected {what} {request.number} to have been launched in this run of {where}, but it was not")


def _check_running(flow: Flow, request: c.RestartBelow, row: StepRow) -> None:
    """Refuse to restart a child of a step that neither has failed nor is a foreach that runs."""
    if is_ending(flow):
        raise conflict(f"{flow.key} is ending: restart it after it ends")
    mode = flow.plan.steps[request.step_id].step.failure_mode
    fan = fan_of(flow, request.step_id, row)
    # A step that ends tells its children in order of their numbers: one that began again behind that place would not
    # be told.
    is_in_place = fan is not None and fan.kind is ChildKind.FOREACH and fan.ending is None
    if is_in_place:
        if mode == FailureMode.FAIL_IMMEDIATELY:
            raise invalid(f"Expected any failure mode but {mode} of step {request.step_id!r}, but found it")
        return
    if row.status not in RESTARTABLE_IN_RUN:
        raise invalid(
            f"Expected step {request.step_id!r} of {flow.key} to be a foreach that runs, or to have failed, "
            f"but it is {row.status}"
        )
    if mode != FailureMode.FAIL_AFTER_RUNNING:
        raise invalid(
            f"Expected the failure mode {FailureMode.FAIL_AFTER_RUNNING} of step {request.step_id!r}, but it is {mode}"
        )


# Down ---------------------------------------------------------------------------------------------------------------


@on_draft.decides(c.RestartChild)
def restart_child(command: c.RestartChild, draft: RunDraft, now_ms: int) -> None:
    """The parent runs this instance again. `workflows` is asked for the run, and answers the parent."""
    run = draft.state.runs.get((draft.key,))
    workflow_id, instance_id = ids_of(draft.key)
    restart, params = Restart.parse(command.restart), None
    try:
        if run is None:  # it ended before it ran
            params = None if restart.path else restart.params
            restart = Restart(RestartPolicy.RESTART_FROM_BEGINNING)
        else:
            params = _params_of_child(command, restart, run, draft, now_ms)
    except Refused as refused:
        # Run 0, because no run exists: it answers a parent whatever run it waits for.
        draft.send(
            RUN_INTERNAL, command.parent.key, child_end(command.parent, 0, InstanceStatus.FAILED, refused.message)
        )
        return
    draft.send(
        WORKFLOW_INTERNAL,
        workflow_id,
        c.QueueRun(
            request_id=command.request_id,
            author=command.author,
            instance_id=instance_id,
            restart=restart.json(),
            params=params,
            run_params=command.run_params,
            parent=command.parent,
        ),
    )


@on_draft.decides(c.EndChild)
def end_child(command: c.EndChild, draft: RunDraft, _: int) -> None:
    """The step that this instance is a child of ends. `workflows` knows whether the instance is queued or runs."""
    draft.send(WORKFLOW_INTERNAL, ids_of(draft.key)[0], command)


def _params_of_child(command: c.RestartChild, restart: Restart, run: RunRow, draft: RunDraft, now_ms: int) -> str:
    """The parameters of the new run: what a person gives for it, or else what its parent gives now."""
    if run.status not in INSTANCE_TERMINAL:
        raise conflict(f"Expected {draft.key} to have ended, but it is {run.status}")
    if restart.params is not None and not restart.path:
        return restart.params
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    given = parsed_object(command.run_params)
    if not given:
        return run.params
    try:
        by = By(command.author, restart.policy, is_parent=True)
        return restarted_params(flow, given, by)
    except ParamError as error:
        raise invalid(str(error)) from None
