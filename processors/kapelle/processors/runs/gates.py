"""The gates between created and started, in this order: signals, parameters, breakpoints, permits.

    CREATED ─▶ INITIALIZED ─▶ signals ─▶ parameters ─▶ breakpoints ─▶ permits ─▶ STARTING

A gate is a function. It lets the attempt pass (True), makes it wait (False), or fails it (it raises a `ParamError`).
A gate that makes an attempt wait changes its state, and `GATES_AFTER` lists the gates that remain for each such state.
So an attempt passes each gate once, however long it waits at one of them.

An attempt that is paused has its parameters, so that people can look at them, and neither a permit nor a worker.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.processors.runs import dependencies
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.breakpoints import matching, reason_of
from kapelle.processors.runs.context import Params, RunContext, Statuses
from kapelle.processors.runs.params import checked_json
from kapelle.processors.runs.permits import ask, needed
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
    is_noted: bool = False  # an earlier event of the attempt has its parameters

    @property
    def params_to_note(self) -> str | None:
        """The parameters, unless an earlier event of the attempt has them."""
        return None if self.is_noted else self.params_json


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


def breakpoints(context: RunContext, launch: Launch) -> bool:
    """Pause at a breakpoint until a person resumes the attempt or deletes the breakpoint."""
    if not context.run.breakpoints:
        return True
    attempt = launch.attempt
    hit = matching(context.run.breakpoints, attempt.step_id, attempt.attempt)
    if hit is None:
        return True
    statuses = (*launch.passed, StepStatus.PAUSED)
    context.change(attempt, statuses, params=launch.params_to_note, reason=reason_of(hit))
    return False


def permits(context: RunContext, launch: Launch) -> bool:
    """Wait until the attempt has a permit of everything that limits it."""
    launch.passed = (*launch.passed, StepStatus.WAITING_FOR_PERMITS)
    keys = needed(context, launch.step, launch.attempt, launch.params)
    if not keys:
        return True
    context.change(launch.attempt, launch.passed, params=launch.params_to_note, permits=keys)
    ask(context, launch.attempt.step_id)
    return False


GATES: Final[tuple[Gate, ...]] = (signals, parameters, breakpoints, permits)
# By the state of an attempt that waits at a gate: the gates that it has yet to pass.
GATES_AFTER: Final[Mapping[StepStatus, tuple[Gate, ...]]] = {
    StepStatus.WAITING_FOR_SIGNALS: GATES[GATES.index(signals) + 1 :],
    StepStatus.PAUSED: GATES[GATES.index(breakpoints) + 1 :],
    StepStatus.WAITING_FOR_PERMITS: GATES[GATES.index(permits) + 1 :],
}
# For an attempt that is resumed with other parameters: it has met its breakpoint, and is not paused again.
GATES_WITH_OTHER_PARAMS: Final[tuple[Gate, ...]] = (parameters, permits)
# The states in which an attempt has its parameters, and waits.
HAS_PARAMS: Final = frozenset({StepStatus.PAUSED, StepStatus.WAITING_FOR_PERMITS})
