"""The shapes of breakpoints and of paused attempts."""

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import AtMs, Outcome


class Precision(Struct, kw_only=True):
    """What a breakpoint is limited to. Null: not limited."""

    step_id: str
    workflow_version_id: int | None
    workflow_instance_id: int | None
    workflow_run_id: int | None
    step_attempt_id: int | None


class Breakpoint(Precision, kw_only=True):
    """A breakpoint of a run."""

    create_time: AtMs
    created_by: str


class WorkflowBreakpoint(Breakpoint, kw_only=True):
    """A breakpoint of a workflow."""

    workflow_id: str


class ChangedBreakpoint(Precision, kw_only=True):
    """The breakpoint that a write is about, and the outcome of the write."""

    workflow_id: str
    request_id: str
    status: Outcome
    message: str | UnsetType = UNSET


class SetBreakpoint(ChangedBreakpoint, kw_only=True):
    """A breakpoint that was set. Its author and time are absent if it was deleted since."""

    create_time: AtMs | UnsetType = UNSET
    created_by: str | UnsetType = UNSET


class DeletedBreakpoint(ChangedBreakpoint, kw_only=True):
    """A breakpoint that was deleted. `resume`: the attempts that it paused were resumed."""

    resume: bool


class PausedAttempt(Struct, kw_only=True):
    """An attempt that is paused. `home_workflow_id` is the workflow that an iteration or a round belongs to."""

    workflow_id: str
    workflow_version_id: int | None
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    iteration: int
    create_time: AtMs
    reason: str | None
    home_workflow_id: str
    home_instance_id: int
    breakpoints: list[Breakpoint]
