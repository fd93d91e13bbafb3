"""The states of steps, their transitions, and what each of them means. Every other module of this package uses these.

`NEXT` is the law: `RunContext.change` refuses a change that it does not allow. `docs/states.md` is drawn from it.

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

# How an attempt may end whatever it is about: a person or a failed sibling stops it, a person kills it (which
# `failure_mode` may ignore) or skips it, the run times out, or a condition behind it has no value.
_ENDED: Final = frozenset(
    {S.STOPPED, S.FATALLY_FAILED, S.COMPLETED_WITH_ERROR, S.SKIPPED, S.TIMED_OUT, S.INTERNALLY_FAILED}
)
# The work has failed, and there is another attempt.
_RETRIED: Final = frozenset({S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED})

# What may follow each state within one run. A step that leads back to CREATED gets a new attempt. A restart of the run
# and the next iteration of a loop take the row away, so the step begins at NOT_CREATED again.
NEXT: Final[Mapping[StepStatus, frozenset[StepStatus]]] = {
    S.NOT_CREATED: frozenset({S.CREATED}),
    S.CREATED: _ENDED | {S.UNSATISFIED, S.INITIALIZED},
    S.INITIALIZED: _ENDED | {S.WAITING_FOR_SIGNALS},
    S.WAITING_FOR_SIGNALS: _ENDED | {S.EVALUATING_PARAMS},
    S.EVALUATING_PARAMS: _ENDED | {S.PAUSED, S.WAITING_FOR_PERMITS},
    # The parameters are evaluated again if a person changes them while the attempt is paused.
    S.PAUSED: _ENDED | {S.EVALUATING_PARAMS, S.WAITING_FOR_PERMITS},
    S.WAITING_FOR_PERMITS: _ENDED | {S.STARTING},
    # A worker may fail, or say nothing until the time-out, before it has said that it has the task.
    S.STARTING: _ENDED | _RETRIED | {S.RUNNING},
    S.RUNNING: _ENDED | _RETRIED | {S.FINISHING},
    # The result is taken, so there is no retry; but conditions and signals that are made of it may have no value.
    S.FINISHING: _ENDED | {S.SUCCEEDED},
    # Complete: the steps behind it count on what it has decided, so only a restart of the run comes back to it.
    **dict.fromkeys((S.DISABLED, S.UNSATISFIED, S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR), frozenset()),
    # Before the next attempt begins, the last one can still be ended for good.
    **dict.fromkeys((S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED), _ENDED | {S.CREATED}),
    # Failed for good: a person may restart the step, or skip it by an attempt that does nothing.
    **dict.fromkeys((S.FATALLY_FAILED, S.INTERNALLY_FAILED, S.STOPPED, S.TIMED_OUT), frozenset({S.CREATED})),
    S.OTHER: frozenset(),  # what a reader sees that does not know a later state; nothing is decided on it
}

COMPLETE: Final = frozenset({S.DISABLED, S.UNSATISFIED, S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR})
RETRYABLE: Final = _RETRIED
FAILED: Final = frozenset({S.FATALLY_FAILED, S.INTERNALLY_FAILED}) | RETRYABLE
TERMINAL: Final = COMPLETE | FAILED | {S.STOPPED, S.TIMED_OUT}
ACTIVE: Final = (frozenset(S) - TERMINAL - {S.NOT_CREATED, S.OTHER}) | RETRYABLE
# Over for good, and the run cannot make up for it by itself: somebody may restart it while the run goes on.
RESTARTABLE_IN_RUN: Final = TERMINAL - COMPLETE - RETRYABLE
# The work is out of the engine's hands.
GIVEN_OUT: Final = frozenset({S.STARTING, S.RUNNING})

# What an attempt passes through before the first gate, and until its signals are there.
UP_TO_GATES: Final = (S.CREATED, S.INITIALIZED)
UP_TO_SIGNALS: Final = (*UP_TO_GATES, S.WAITING_FOR_SIGNALS)

_END: Final = frozenset({Action.STOP, Action.KILL})
_END_OR_SKIP: Final = _END | {Action.SKIP}
_AGAIN: Final = frozenset({Action.RESTART, Action.SKIP})

# What people may do to a step.
STEP_ACTIONS: Final[Mapping[StepStatus, frozenset[Action]]] = {
    S.CREATED: _END,
    S.INITIALIZED: _END_OR_SKIP,
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
