"""The states of instances and steps, and what each of them means. Everything else in this package asks these tables.

    NOT_CREATED → CREATED ┬→ UNSATISFIED            no condition towards it was true
                          ├→ SKIPPED                somebody asked for it
                          └→ INITIALIZED → WAITING_FOR_SIGNALS → EVALUATING_PARAMS → WAITING_FOR_PERMITS
                                → STARTING → RUNNING → FINISHING → SUCCEEDED

    STARTING   the work is given out; no worker has said yet that it has it
    RUNNING    a worker has it, under a lease; or it runs in the engine

A state of a step is

    terminal     the attempt is over
    complete     over, and what comes after it may be looked at
    retryable    over, and another attempt follows by itself
    active       the run is not done as long as a step is in it: not terminal, or retryable
"""

from collections.abc import Mapping
from typing import Final

from kapelle.schemas.contracts import Action, InstanceStatus, StepStatus

S = StepStatus

COMPLETE: Final = frozenset({S.DISABLED, S.UNSATISFIED, S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR})
RETRYABLE: Final = frozenset({S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED})
FAILED: Final = frozenset({S.FATALLY_FAILED, S.INTERNALLY_FAILED}) | RETRYABLE
TERMINAL: Final = COMPLETE | FAILED | {S.STOPPED, S.TIMED_OUT}
ACTIVE: Final = (frozenset(S) - TERMINAL - {S.NOT_CREATED, S.OTHER}) | RETRYABLE
# Over for good, and the run cannot make up for it by itself: somebody may restart it while the run goes on.
RESTARTABLE_IN_RUN: Final = TERMINAL - COMPLETE - RETRYABLE
# The work is out of the engine's hands.
GIVEN_OUT: Final = frozenset({S.STARTING, S.RUNNING})

# What an attempt passes through before the first gate, until its signals are there, and behind the last gate.
UP_TO_GATES: Final = (S.CREATED, S.INITIALIZED)
UP_TO_SIGNALS: Final = (*UP_TO_GATES, S.WAITING_FOR_SIGNALS)
UP_TO_START: Final = (S.WAITING_FOR_PERMITS, S.STARTING)

_END: Final = frozenset({Action.STOP, Action.KILL})
_END_OR_SKIP: Final = _END | {Action.SKIP}
_AGAIN: Final = frozenset({Action.RESTART, Action.SKIP})

# What people may do to a step.
STEP_ACTIONS: Final[Mapping[StepStatus, frozenset[Action]]] = {
    S.CREATED: _END | {Action.PAUSE},
    S.INITIALIZED: _END_OR_SKIP | {Action.PAUSE},
    S.PAUSED: _END_OR_SKIP | {Action.RESUME},
    S.WAITING_FOR_SIGNALS: _END_OR_SKIP | {Action.BYPASS},
    **dict.fromkeys((S.EVALUATING_PARAMS, S.WAITING_FOR_PERMITS, S.STARTING, S.RUNNING, S.FINISHING), _END_OR_SKIP),
    **dict.fromkeys((S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED), _END_OR_SKIP),
    **dict.fromkeys((S.DISABLED, S.UNSATISFIED), frozenset({Action.RESTART})),
    **dict.fromkeys((S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR), _AGAIN),
    **dict.fromkeys((S.FATALLY_FAILED, S.INTERNALLY_FAILED, S.STOPPED, S.TIMED_OUT), _AGAIN),
}
# What an action makes of a step that is active.
ENDS_AS: Final[Mapping[Action, StepStatus]] = {
    Action.STOP: S.STOPPED,
    Action.KILL: S.FATALLY_FAILED,
    Action.SKIP: S.SKIPPED,
    Action.TIME_OUT: S.TIMED_OUT,
}

INSTANCE_TERMINAL: Final = frozenset(
    {InstanceStatus.TIMED_OUT, InstanceStatus.STOPPED, InstanceStatus.FAILED, InstanceStatus.SUCCEEDED}
)
# What people may do to an instance.
INSTANCE_ACTIONS: Final[Mapping[InstanceStatus, frozenset[Action]]] = {
    InstanceStatus.CREATED: _END,
    InstanceStatus.IN_PROGRESS: _END,
    InstanceStatus.PAUSED: _END,
    InstanceStatus.TIMED_OUT: frozenset({Action.RESTART}),
    InstanceStatus.STOPPED: frozenset({Action.RESTART}),
    InstanceStatus.FAILED: frozenset({Action.RESTART, Action.UNBLOCK}),
    InstanceStatus.SUCCEEDED: frozenset({Action.RESTART}),
}
