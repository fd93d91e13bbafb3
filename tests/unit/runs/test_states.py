"""Every state of a step is in exactly the classes that the table of states gives it."""

import pytest

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.runs.states import (
    ACTIVE,
    COMPLETE,
    FAILED,
    INSTANCE_ACTIONS,
    RESTARTABLE_IN_RUN,
    RETRYABLE,
    STEP_ACTIONS,
    TERMINAL,
)
from kapelle.schemas.contracts import Action, StepStatus
from tests.unit.runs.flows import I, S

CLASSES = {
    # state: terminal, complete, retryable, active, restartable while the run goes on
    S.NOT_CREATED: ".....",
    S.CREATED: "...a.",
    S.INITIALIZED: "...a.",
    S.PAUSED: "...a.",
    S.WAITING_FOR_SIGNALS: "...a.",
    S.EVALUATING_PARAMS: "...a.",
    S.WAITING_FOR_PERMITS: "...a.",
    S.STARTING: "...a.",
    S.RUNNING: "...a.",
    S.FINISHING: "...a.",
    S.DISABLED: "tc...",
    S.UNSATISFIED: "tc...",
    S.SKIPPED: "tc...",
    S.SUCCEEDED: "tc...",
    S.COMPLETED_WITH_ERROR: "tc...",
    S.USER_FAILED: "t.ra.",
    S.PLATFORM_FAILED: "t.ra.",
    S.TIMEOUT_FAILED: "t.ra.",
    S.FATALLY_FAILED: "t...i",
    S.INTERNALLY_FAILED: "t...i",
    S.STOPPED: "t...i",
    S.TIMED_OUT: "t...i",
    S.OTHER: ".....",
}


@pytest.mark.parametrize("status", list(StepStatus))
def test_a_state_is_in_the_classes_that_the_table_gives_it(status: StepStatus) -> None:
    sets = {"t": TERMINAL, "c": COMPLETE, "r": RETRYABLE, "a": ACTIVE, "i": RESTARTABLE_IN_RUN}

    found = "".join(letter if status in members else "." for letter, members in sets.items())

    assert found == CLASSES[status]


def test_a_failed_state_is_one_that_makes_the_run_fail() -> None:
    assert {S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED, S.FATALLY_FAILED, S.INTERNALLY_FAILED} == FAILED


def test_every_state_that_a_step_can_be_in_says_what_may_be_done() -> None:
    assert set(STEP_ACTIONS) == set(StepStatus) - {S.NOT_CREATED, S.OTHER}


ALLOWED_ON_INSTANCES = {
    I.CREATED: {Action.STOP, Action.KILL},
    I.IN_PROGRESS: {Action.STOP, Action.KILL},
    I.PAUSED: {Action.STOP, Action.KILL},
    I.TIMED_OUT: {Action.RESTART},
    I.STOPPED: {Action.RESTART},
    I.FAILED: {Action.RESTART, Action.UNBLOCK},
    I.SUCCEEDED: {Action.RESTART},
}


def test_what_may_be_done_to_an_instance_is_what_the_table_says() -> None:
    assert INSTANCE_ACTIONS == ALLOWED_ON_INSTANCES
    assert {I.TIMED_OUT, I.STOPPED, I.FAILED, I.SUCCEEDED} == INSTANCE_TERMINAL
