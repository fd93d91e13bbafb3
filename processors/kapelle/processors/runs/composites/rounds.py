"""`while`: rounds one after another while the condition holds. Each round gives its values to the next.

The condition sees the loop values, then the other parameters of the step, then those of the workflow. After a round
that has succeeded, a loop value is what a step of the round has in a parameter of the same name: of several steps, the
one that was created last. A value that no step has stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from kapelle.processors.definitions import CONDITION, LOOP_INDEX, LOOP_PARAMS
from kapelle.processors.definitions.limits import ITERATIONS_MAX
from kapelle.processors.params import ParamError
from kapelle.processors.params.stored import plain_json, values_of
from kapelle.processors.parents import read_back
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.composites import fan
from kapelle.processors.runs.composites.fan import Keep, Planned
from kapelle.processors.runs.composites.inline import Block, Own, refusal_of_start
from kapelle.processors.runs.context import Params
from kapelle.processors.runs.flow import DONE, Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import FanRow, StepRow
from kapelle.processors.sel import Value
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus, RestartPolicy, StepStatus

SCALARS: Final = (str, bool, int, float, Decimal)
Values = Mapping[str, Value]


def begin(flow: Flow, launch: Launch) -> None:
    """Run the first round, if the condition holds; or the round that a restart goes on with."""
    values, wrong = _first_values(launch.params)
    wrong = wrong or fan.is_too_deep(flow)
    if wrong is not None:
        fan.refuse(flow, launch, wrong)
        return
    # A round that is run again has the values that it had: the condition was true for them.
    again = _again(flow, launch.attempt)
    if again is None:
        try:
            holds = _holds(flow, launch.step, launch.attempt, launch.params, values)
        except ParamError as error:
            fan.refuse(flow, launch, str(error))
            return
        if not holds:
            flow.finish(launch.step, launch.attempt, (*launch.passed, *DONE), launch.params)
            return
    number, given, restart = again or (1, plain_json(values), _first_again(flow, launch.attempt.step_id))
    wrong = refusal_of_start(flow, launch.step, launch.params, _own(given, launch.params_json, restart))
    if wrong is not None:
        fan.refuse(flow, launch, wrong)
        return
    planned = Planned(ChildKind.WHILE, ITERATIONS_MAX, 1, values=given, next=number)
    fan.begin(flow, launch, planned, Keep.NOTHING)
    _launch(flow, launch.step, launch.params, given, restart=restart)


def _again(flow: Flow, attempt: Attempt) -> tuple[int, str, Restart] | None:
    """The round that a restart goes on with, its loop values as they were, and how it is restarted."""
    again = fan.on_path(flow, attempt.step_id)
    before = flow.state.fans.get((flow.key, attempt.step_id))
    # Only the first attempt of a restarted run resumes the last round: a retry begins with round 1.
    if again is None and before is not None and attempt.attempt == 1 and fan.is_resumed(flow, attempt):
        policy = fan.downstream(flow, attempt.step_id) or RestartPolicy.RESTART_FROM_INCOMPLETE
        again = (before.next - 1, Restart(policy))
    row = None if again is None else flow.state.children.get((flow.key, attempt.step_id, again[0]))
    return None if again is None or row is None else (again[0], row.given, again[1])


def _first_again(flow: Flow, step_id: str) -> Restart | None:
    """How the first round restarts, if somebody has restarted the step and has said how; else from the beginning."""
    policy = fan.downstream(flow, step_id)
    has_run = flow.state.children.get((flow.key, step_id, 1)) is not None
    return Restart(policy) if policy is not None and has_run and fan.is_named(flow, step_id) else None


def ended(flow: Flow, step: StepPlan, row: StepRow, children: FanRow, end: c.RecordChildEnd) -> None:
    """After a round that has succeeded: the next one, or the end of the step. Any other end ends the step."""
    if children.ending is not None or end.status is not InstanceStatus.SUCCEEDED:
        fan.finish(flow, step, row, children)
        return
    attempt = attempt_of(step.step.id, row)
    params, inputs = fan.inputs_of(flow, step, children), fan.inputs_text(flow, step.step.id)
    given = _carried(children.values, end.values)
    wrong: str | None
    try:
        if given is None:
            wrong = "Expected the values of the next round to fit into a record, but they are too large"
        elif not _holds(flow, step, attempt, params, {name: value.value for name, value in values_of(given).items()}):
            flow.finish(step, attempt, (StepStatus.FINISHING,), flow.inputs(step))
            return
        else:
            wrong = refusal_of_start(flow, step, params, _own(given, inputs))
            if children.next > children.total:
                wrong = f"Expected the condition to end the loop within {ITERATIONS_MAX:,} rounds, but it did not"
    except ParamError as error:
        wrong = str(error)
    if wrong is not None or given is None:
        flow.fail_for_good(step, attempt, StepStatus.FATALLY_FAILED, wrong or "")
        return
    _launch(flow, step, params, given)


def _carried(before: str, given_back: str) -> str | None:
    back = read_back(given_back)
    if back.is_too_large:
        return None
    return plain_json({**{name: value.value for name, value in values_of(before).items()}, **back.carried})


def _launch(flow: Flow, step: StepPlan, params: Params, given: str, *, restart: Restart | None = None) -> None:
    step_id = step.step.id
    children = fan.fan_at(flow, step_id)
    number = children.next
    flow.draft.emit(
        c.ChildrenLaunched(
            run_id=children.run_id,
            step_id=step_id,
            attempt=children.attempt,
            iteration=children.iteration,
            numbers=(number,),
            next=number + 1,
            values=given,
            at_ms=flow.now_ms,
        )
    )
    values = {name: value.value for name, value in values_of(given).items()}
    block = Block(flow, step, params, carries=tuple(values))
    row = flow.state.children.get((flow.key, step_id, number))
    block.start(number, row, {**values, CONDITION: True}, restart=restart)


def _own(given: str, inputs: str, restart: Restart | None = None) -> Own:
    values = max(given, (restart.params if restart is not None else None) or "", key=len)
    return Own(lambda: values, len(inputs) + len(values), restart)


def _first_values(params: Params) -> tuple[Values, str | None]:
    given = params.get(LOOP_PARAMS)
    values = given.value if given is not None else None
    if not isinstance(values, dict):
        return {}, "Expected loop_params as a map of values, but found none"
    for name, value in values.items():
        if not isinstance(value, SCALARS):
            return {}, f"Expected text, a number, true or false for {name!r} in loop_params, but found another value"
    return values, None


def _holds(flow: Flow, step: StepPlan, attempt: Attempt, params: Params, values: Values) -> bool:
    """Whether the condition is true. A `ParamError` if it has no value."""
    of_workflow = {name: evaluated.value for name, evaluated in flow.expressions.workflow.items()}
    of_step = {name: evaluated.value for name, evaluated in params.items() if name != LOOP_PARAMS}
    known = {**of_workflow, **of_step, **values, LOOP_INDEX: -1}
    return flow.expressions.is_true(step.step.condition or "false", attempt, known)
