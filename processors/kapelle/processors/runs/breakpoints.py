"""Which attempts a breakpoint pauses.

`workflows` sends a run the breakpoints that are for it: by workflow, version, instance and run. What is left to compare
is the step and the attempt. A run without breakpoints compares nothing.
"""

from kapelle.processors.moments import utc_text
from kapelle.schemas.contracts import Breakpoint


def matching(breakpoints: tuple[Breakpoint, ...], step_id: str, attempt: int) -> Breakpoint | None:
    """The first breakpoint that an attempt matches; None if there is none."""
    return next((each for each in breakpoints if matches(each, step_id, attempt)), None)


def matches(breakpoint_: Breakpoint, step_id: str, attempt: int) -> bool:
    """Whether an attempt of this run matches a breakpoint."""
    return breakpoint_.step_id == step_id and breakpoint_.attempt in (None, attempt)


def reason_of(breakpoint_: Breakpoint) -> str:
    """Who has set the breakpoint at which an attempt is paused, and when."""
    return f"Paused at the breakpoint that {breakpoint_.author} set at {utc_text(breakpoint_.at_ms)}"
