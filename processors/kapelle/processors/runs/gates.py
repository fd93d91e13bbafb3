"""The gates between created and started, in this order: signals, then parameters.

    CREATED ─▶ INITIALIZED ─▶ signals ─▶ parameters ─▶ STARTING

A gate is a function. It lets the attempt pass (True), makes it wait (False), or fails it (it raises a `ParamError`).
A gate that makes an attempt wait changes its state, and `GATES_AFTER` lists the gates that remain for each such state.
So an attempt passes each gate once, however long it waits at one of them.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.processors.runs import dependencies
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.context import Params, RunContext, Statuses
from kapelle.processors.runs.params import checked_json
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.states import UP_TO_GATES, UP_TO_SIGNALS
from kapelle.schemas.contracts import StepStatus


class Launch(msgspec.Struct):
    """An attempt on its way to its work: the states that it has passed in this decision, and its parameters."""

    step: StepPlan
    attempt: Attempt
    passed: Statuses = UP_TO_GATES
    params: Params = {}
    params_json: str = "{}"


Gate = Callable[[RunContext, Launch], bool]


def signals(context: RunContext, launch: Launch) -> bool:
    """Wait until every dependency has a signal. Parameters come later, because they may ask for what it says."""
    step = launch.step
    if step.step.signal_dependencies and not dependencies.are_there(context, step, launch.attempt):
        return False
    launch.passed = UP_TO_SIGNALS
    return True


def parameters(context: RunContext, launch: Launch) -> bool:
    """Evaluate the parameters, as late as possible: an attempt that has waited sees the time at which it continues."""
    launch.passed = (*launch.passed, StepStatus.EVALUATING_PARAMS)
    launch.params = context.expressions.params(launch.step, launch.attempt)
    launch.params_json = checked_json(launch.attempt.step_id, launch.params)
    return True


GATES: Final[tuple[Gate, ...]] = (signals, parameters)
# By the state of an attempt that waits at a gate: the gates that it has yet to pass.
GATES_AFTER: Final[Mapping[StepStatus, tuple[Gate, ...]]] = {
    StepStatus.WAITING_FOR_SIGNALS: GATES[GATES.index(signals) + 1 :],
}
