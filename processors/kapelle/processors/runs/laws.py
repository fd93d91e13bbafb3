"""What holds of the tables of runs after every event. `kapelle verify` checks it."""

from collections.abc import Iterator

from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.states import TERMINAL
from kapelle.processors.runs.tables import Runs
from kapelle.schemas.contracts import StepStatus


@runs.law
def an_attempt_that_is_over_holds_nothing(state: Runs) -> Iterator[str]:
    """And one that has started holds a permit of everything that it needs one for."""
    for (key, step_id), row in state.steps.prefix(()):
        subject = f"step {step_id!r} of {key}/run {row.run_id}, attempt {row.attempt}"
        if row.status is StepStatus.WAITING_FOR_PERMITS:
            continue
        needed = 0 if row.status in TERMINAL else len(row.permits)
        if row.held != needed or (row.permits and not needed):
            yield f"{subject} is {row.status}, but holds {row.held} of {len(row.permits)} permits"
