"""`foreach`: one iteration for each combination of the values in `loop_params`.

| an iteration ended as | further launches | what the step does |
|---|---|---|
| FAILED | stop | waits for those that run, then fails; FAIL_IMMEDIATELY stops those that run first |
| TIMED_OUT, STOPPED | go on | is at the end TIMED_OUT or STOPPED, in this order, unless one has failed |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kapelle.processors.definitions import LOOP_PARAMS, combination, iterations_of
from kapelle.processors.definitions.limits import ITERATIONS_MAX, TREE_ITERATIONS_MAX
from kapelle.processors.runs.composites import fan, identity
from kapelle.processors.runs.composites.child_values import loop_values
from kapelle.processors.runs.composites.fan import Keep, Planned
from kapelle.processors.runs.composites.inline import Block, Own, refusal_of_start
from kapelle.processors.runs.context import Params
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.tables import ChildRow
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray
from kapelle.processors.sel.values import json_text
from kapelle.schemas.contracts import ChildKind, RestartPolicy, StepStatus

ARRAYS: Final = (StringArray, LongArray, DoubleArray, BooleanArray)
Arrays = Mapping[str, Sequence[object]]
INCOMPLETE: Final = Restart(RestartPolicy.RESTART_FROM_INCOMPLETE)


def begin(flow: Flow, launch: Launch) -> None:
    """Plan one child for each combination, and launch the first ones."""
    arrays, wrong = _arrays(launch.params)
    total = iterations_of(len(array) for array in arrays.values())
    if wrong is None and total > ITERATIONS_MAX:
        wrong = f"Expected loop_params of at most {ITERATIONS_MAX:,} iterations, but found more"
    wrong = wrong or _too_many(identity.iterations_above(flow), total)
    restarted = fan.on_path(flow, launch.attempt.step_id)
    keep = Keep.SUCCEEDED if fan.is_resumed(flow, launch.attempt) else Keep.NOTHING
    if wrong is None and (restarted is not None or keep is not Keep.NOTHING):
        # Children are kept by number, so the new combinations must include the numbers of the kept ones.
        wrong = _shrunk(flow, launch.attempt.step_id, total)
    wrong = wrong or fan.is_too_deep(flow)
    if wrong is None and total:
        restart = INCOMPLETE if restarted is None else restarted[1]
        wrong = _refusal(flow, launch.step, launch.params, launch.params_json, restart=restart)
    if wrong is not None:
        fan.refuse(flow, launch, wrong)
        return
    if total == 0:
        flow.change(launch.attempt, (*launch.passed, StepStatus.RUNNING), params=launch.params_to_note)
        flow.finish(launch.step, launch.attempt, (StepStatus.FINISHING,), launch.params)
        return
    step = launch.step.step
    planned = Planned(ChildKind.FOREACH, total, step.concurrency or 0, step.strict_ordering)
    if restarted is not None:
        _begin_with(flow, launch, planned, restarted)
        return
    fan.begin(flow, launch, planned, keep)
    _launch(flow, launch.step, launch.params, arrays)


def _too_many(above: int, total: int) -> str | None:
    """Why a loop with this number of iterations may not run below the loops above it; None if it may."""
    if above * total <= TREE_ITERATIONS_MAX:
        return None
    return (
        f"Expected at most {TREE_ITERATIONS_MAX:,} iterations of loops inside each other, "
        f"but found {above * total:,}: {above:,} of the loops above, with {total:,} each"
    )


def _begin_with(flow: Flow, launch: Launch, planned: Planned, restarted: tuple[int, Restart]) -> None:
    """Run one iteration again, and then those that were never launched. All others are kept."""
    before = fan.fan_at(flow, launch.attempt.step_id)
    fan.begin(flow, launch, replace(planned, next=before.next), Keep.ALL)
    wrong = again(flow, launch.step, *restarted)
    if wrong is not None:
        fan.give_up(flow, launch.step, wrong)


def _shrunk(flow: Flow, step_id: str, total: int) -> str | None:
    """Why a restarted loop with this number of iterations cannot continue; None if it can."""
    before = flow.state.fans.get((flow.key, step_id))
    if before is None or before.is_discarded:
        return None
    rows = flow.state.children.range((flow.key, step_id, total + 1), (flow.key, step_id, ITERATIONS_MAX + 1))
    last = max((number for (_, _, number), row in rows if row.fan_run >= before.kept_since), default=0)
    return f"Expected at least {last:,} iterations as before, but found {total:,}" if last else None


def again(flow: Flow, step: StepPlan, number: int, restart: Restart) -> str | None:
    """Run an iteration again that has ended, whatever the window allows. Why it cannot be started, if it cannot."""
    step_id = step.step.id
    children = fan.fan_at(flow, step_id)
    params = fan.inputs_of(flow, step, children)
    wrong = _refusal(flow, step, params, fan.inputs_text(flow, step_id), restart=restart)
    if wrong is not None:
        return wrong
    fan.note_launch(flow, step_id, children, (number,), children.next)
    row = flow.state.children.get((flow.key, step_id, number))
    values = combination(_arrays(params)[0], number - 1)
    Block(flow, step, params).start(number, row, values, restart=restart)
    return None


def go_on(flow: Flow, step: StepPlan) -> None:
    """Launch the next iterations."""
    params = fan.inputs_of(flow, step, fan.fan_at(flow, step.step.id))
    _launch(flow, step, params, _arrays(params)[0])


def _launch(flow: Flow, step: StepPlan, params: Params, arrays: Arrays) -> None:
    # What a person has given for steps since the loop has begun is in the starts of further iterations.
    wrong = _refusal(flow, step, params, fan.inputs_text(flow, step.step.id), restart=INCOMPLETE)
    if wrong is not None:
        fan.give_up(flow, step, wrong)
        return
    block = Block(flow, step, params)
    policy = block.fan.downstream_policy
    resumed = INCOMPLETE if policy is None else Restart(policy)

    def start(number: int, row: ChildRow | None, *, is_resumed: bool) -> None:
        block.start(number, row, combination(arrays, number - 1), restart=resumed if is_resumed else None)

    fan.launch_children(flow, step, start, weight=block.weight)


def _refusal(flow: Flow, step: StepPlan, params: Params, inputs: str, *, restart: Restart) -> str | None:
    """Why the largest iteration cannot be started; None if it can."""

    def largest() -> str:
        longest = {
            name: max(array, key=lambda item: len(json_text(item))) for name, array in _arrays(params)[0].items()
        }
        return max(restart.params or "", loop_values(longest, ITERATIONS_MAX), key=len)

    return refusal_of_start(flow, step, params, Own(largest, 2 * len(inputs), restart))


def _arrays(params: Params) -> tuple[Arrays, str | None]:
    """The arrays to combine, or why there are none."""
    given = params.get(LOOP_PARAMS)
    arrays = given.value if given is not None else None
    if not isinstance(arrays, dict):
        return {}, "Expected loop_params as a map of arrays, but found none"
    for name, value in arrays.items():
        if not isinstance(value, ARRAYS):
            return {}, f"Expected an array for {name!r} in loop_params, but found a {type(value).__name__}"
    return arrays, None
