"""The table of step kinds that the flow uses, and the kinds that the engine executes itself.

| kind | begin | resume | take back | timers |
|---|---|---|---|---|
| NoOp | is done | | | |
| Sleep | sets a timer | | | `due`: is done |
| foreach | starts iterations | | stops them, and waits | |
| while | starts a round | | stops it, and waits | |
| subworkflow | starts an instance | | stops it, and waits | |
| any other | gives a task to a worker | the worker reports | the worker is told | `lease`: another worker gets it |

What all kinds have in common is not here: gates before the work begins, retries (the timer `due` of an attempt that has
failed) and time-outs belong to the flow.
"""

from collections.abc import Mapping
from typing import Final

from kapelle.processors.runs import dispatch, tasks
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.composites import foreach, rounds, step_endings, subworkflow
from kapelle.processors.runs.context import Params
from kapelle.processors.runs.dispatch import wait_ms
from kapelle.processors.runs.flow import DONE, TASK, Behaviour, Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.tables import StepRow
from kapelle.processors.runs.timers import DUE, LEASE
from kapelle.schemas.contracts import StepStatus

SLEEP_PARAM: Final = "sleep_seconds"
SLEEP_S_DEFAULT: Final = 3


def do_nothing(flow: Flow, launch: Launch) -> None:
    """A NoOp is done as soon as it begins."""
    flow.finish(launch.step, launch.attempt, (*launch.passed, *DONE), launch.params)


def fall_asleep(flow: Flow, launch: Launch) -> None:
    """Sleep, if there is anything to sleep: a timer must lie ahead."""
    sleep_ms = _sleep_ms(launch.params)
    if sleep_ms == 0:
        do_nothing(flow, launch)
        return
    flow.change(
        launch.attempt,
        (*launch.passed, StepStatus.RUNNING),
        params=launch.params_to_note,
        due_at_ms=flow.now_ms + sleep_ms,
        timeout_at_ms=flow.timeout_at_ms(launch.step),
    )


def wake_up(flow: Flow, step: StepPlan, row: StepRow) -> None:
    """The sleep is over."""
    flow.finish(step, attempt_of(step.step.id, row), (StepStatus.FINISHING,), flow.inputs(step))


def _sleep_ms(params: Params) -> int:
    given = params.get(SLEEP_PARAM)
    return wait_ms(SLEEP_S_DEFAULT if given is None else int(given.value))


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "NOOP": Behaviour(begin=do_nothing),
    "SLEEP": Behaviour(begin=fall_asleep, timer_due={DUE: wake_up}),
    "FOREACH": Behaviour(begin=foreach.begin, take_back=step_endings.take_back),
    "WHILE": Behaviour(begin=rounds.begin, take_back=step_endings.take_back),
    "SUBWORKFLOW": Behaviour(begin=subworkflow.begin, take_back=step_endings.take_back),
    TASK: Behaviour(
        begin=tasks.begin,
        resume=tasks.resume,
        take_back=dispatch.take_back,
        timer_due={LEASE: tasks.lease_lost},
    ),
}
