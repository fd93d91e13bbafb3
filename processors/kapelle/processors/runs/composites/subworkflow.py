"""`subworkflow`: one instance of another workflow, in that workflow's own queue.

| | the step is done | a stop reaches the child | the child's end |
|---|---|---|---|
| sync | when the child has ended | yes | FAILED: FATALLY_FAILED; STOPPED and TIMED_OUT: the same |
| async | when the child has been created | no | nobody waits for it |

A step that is restarted restarts the child that it has, if there is one.
"""

from __future__ import annotations

from kapelle.processors.definitions import SUBWORKFLOW_ID, SUBWORKFLOW_VERSION, handed_down
from kapelle.processors.params import definition_json
from kapelle.processors.params.outputs import frozen
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.composites import fan, identity, sizes
from kapelle.processors.runs.composites.fan import Keep, Planned
from kapelle.processors.runs.context import Params
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.permits import tags_below
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import StepRow
from kapelle.processors.sel import Value
from kapelle.processors.sel.values import json_text
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus, RestartPolicy, StepStatus


def begin(flow: Flow, launch: Launch) -> None:
    """Ask the other workflow for an instance."""
    wrong = fan.is_too_deep(flow) or _name_wrong(launch.params)
    if wrong is not None:
        fan.refuse(flow, launch, wrong)
        return
    step, attempt = launch.step, launch.attempt
    workflow_id, run_params = str(launch.params[SUBWORKFLOW_ID].value), _run_params(flow, step, launch.params)
    again = _again(flow, attempt, workflow_id)  # must come before `begin`, which replaces the plan
    if again is not None and not _is_of(again[0], workflow_id):
        expected = f"{ids_of(again[0])[0]!r} as subworkflow_id, because {again[0]} is to be restarted"
        fan.refuse(flow, launch, f"Expected {expected}, but found {workflow_id!r:.80}")
        return
    wrong = _too_large(flow, attempt.step_id, run_params, again)
    if wrong is not None:
        fan.refuse(flow, launch, wrong)
        return
    fan.begin(flow, launch, Planned(ChildKind.SUBWORKFLOW, 1, is_sync=step.step.sync), Keep.NOTHING)
    children = fan.fan_at(flow, attempt.step_id)
    flow.draft.emit(
        c.ChildrenLaunched(
            run_id=children.run_id,
            step_id=attempt.step_id,
            attempt=children.attempt,
            iteration=children.iteration,
            numbers=(1,),
            next=2,
            child=workflow_id,
            at_ms=flow.now_ms,
        )
    )
    parent = identity.parent_of(
        flow,
        attempt,
        ChildKind.SUBWORKFLOW,
        is_sync=step.step.sync,
        asks=flow.plan.asks.get(attempt.step_id, ()),
        tags=tags_below(flow, step, attempt, launch.params),
    )
    flow.sent += 1
    request_id, author = identity.request_of(flow, attempt, 1), flow.run.author
    if again is not None:
        child, restart = again
        flow.draft.send(
            RUN_INTERNAL,
            child,
            c.RestartChild(
                request_id=request_id, author=author, parent=parent, restart=restart.json(), run_params=run_params
            ),
        )
        return
    flow.draft.send(
        WORKFLOW_INTERNAL,
        workflow_id,
        c.StartChild(
            request_id=request_id,
            author=author,
            parent=parent,
            version=str(launch.params[SUBWORKFLOW_VERSION].value),
            initiator=identity.initiator_text(flow, parent),
            run_params=run_params,
            correlation_id=flow.run.correlation_id,
        ),
    )


def _again(flow: Flow, attempt: Attempt, workflow_id: str) -> tuple[str, Restart] | None:
    """The child that a restart runs again, and how; None if the step starts another one."""
    row = flow.state.children.get((flow.key, attempt.step_id, 1))
    if row is None or "/" not in row.child:
        return None
    on_path = fan.on_path(flow, attempt.step_id)
    if on_path is not None:
        return row.child, on_path[1]
    if not _is_of(row.child, workflow_id):
        return None
    if fan.is_resumed(flow, attempt) and row.status is not InstanceStatus.SUCCEEDED:
        policy = fan.downstream(flow, attempt.step_id) or RestartPolicy.RESTART_FROM_INCOMPLETE
        return row.child, Restart(policy)
    is_restarted = flow.run.restart is not None and fan.is_first_of_run(flow, attempt.step_id)
    if is_restarted or attempt.attempt > 1:
        return row.child, Restart(RestartPolicy.RESTART_FROM_BEGINNING)
    return None


def _is_of(child: str, workflow_id: str) -> bool:
    return child.startswith(f"{workflow_id}/")


def _name_wrong(params: Params) -> str | None:
    given = params.get(SUBWORKFLOW_ID)
    workflow_id = given.value if given is not None else None
    if not isinstance(workflow_id, str) or not workflow_id or "/" in workflow_id:
        return f"Expected the id of a workflow as subworkflow_id, but found {workflow_id!r:.80}"
    return None


def _too_large(flow: Flow, step_id: str, run_params: str, again: tuple[str, Restart] | None) -> str | None:
    parts = {"parameters": [run_params], "the rest": [flow.run.initiator, "" if again is None else again[1].json()]}
    return sizes.too_large(f"the start of the child of step {step_id!r}", parts)


def started(flow: Flow, step: StepPlan, row: StepRow) -> None:
    """The child exists. A step that does not wait for it is done."""
    if not step.step.sync:
        flow.finish(step, attempt_of(step.step.id, row), (StepStatus.FINISHING,), flow.inputs(step))


def _run_params(flow: Flow, step: StepPlan, params: Params) -> str:
    """The parameters that the child is started with: those of the step, and unless it says otherwise the workflow's."""
    given: dict[str, Value] = {}
    if not step.step.explicit_params:
        given.update({name: one.value for name, one in flow.expressions.workflow.items()})
    names = handed_down(step.step)
    given.update({name: one.value for name, one in params.items() if name in names})
    definitions = {name: frozen(value) for name, value in given.items() if value is not None}
    return json_text({name: definition_json(one) for name, one in definitions.items()})
