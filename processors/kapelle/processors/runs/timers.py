"""The names of the timers of a run and its steps."""

from typing import Final

RUN_TIMEOUT: Final = "run-timeout"
CONTINUE: Final = "continue"
TIMEOUT: Final = "timeout"
DUE: Final = "due"
LEASE: Final = "lease"


def timeout_of(step_id: str) -> str:
    """The name of the timer that ends an attempt."""
    return f"{TIMEOUT}/{step_id}"


def due_of(step_id: str) -> str:
    """The name of the timer with which a step goes on: a retry, or the end of a sleep."""
    return f"{DUE}/{step_id}"


def lease_of(step_id: str) -> str:
    """The name of the timer that takes a task from a silent worker."""
    return f"{LEASE}/{step_id}"
