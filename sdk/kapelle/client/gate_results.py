"""The results of calls about breakpoints and permits. Times are milliseconds since 1970."""

from typing import Any

import msgspec

Object = dict[str, Any]  # the JSON of the API, for callers to read


class HeldBy(msgspec.Struct, frozen=True):
    """A breakpoint that matches an attempt, and who set it. None matches everything."""

    step_id: str
    created_by: str
    create_time: int
    workflow_version_id: int | None = None
    workflow_instance_id: int | None = None
    workflow_run_id: int | None = None
    step_attempt_id: int | None = None


class BreakpointRecord(msgspec.Struct, frozen=True):
    """A breakpoint on a step, and who set it. None matches everything."""

    workflow_id: str
    step_id: str
    workflow_version_id: int | None = None
    workflow_instance_id: int | None = None
    workflow_run_id: int | None = None
    step_attempt_id: int | None = None
    create_time: int | None = None
    created_by: str | None = None


class BreakpointChange(BreakpointRecord, frozen=True, kw_only=True):
    """The outcome of a change of a breakpoint. UNCHANGED: the same request was made before."""

    request_id: str
    status: str
    message: str | None = None
    resume: bool | None = None


class PausedAttempt(msgspec.Struct, frozen=True):
    """An attempt that is paused since `create_time`, and the breakpoints that match it now.

    An iteration or a round has ids of its own. `home_workflow_id` and `home_instance_id` name the instance around it.
    """

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    create_time: int
    workflow_version_id: int | None = None
    iteration: int = 1
    reason: str | None = None
    home_workflow_id: str = ""
    home_instance_id: int = 0
    breakpoints: list[HeldBy] = []


class PermitNeeded(msgspec.Struct, frozen=True):
    """A permit that a step needs. `status` is HELD, WAITING or NOT_REQUESTED: it asks for one after the other."""

    limited: str
    status: str
    since: int | None = None
    max_allowed: int | None = None
    held: int | None = None
    waiting: int | None = None
    place: int | None = None


class LimitChange(msgspec.Struct, frozen=True):
    """The outcome of a change of the limit of a tag. UNCHANGED: it was so before."""

    tag: str
    request_id: str
    status: str
    max_allowed: int | None = None
    message: str | None = None


class LimitEvent(msgspec.Struct, frozen=True):
    """A change of a limit, and its author."""

    author: str
    log: str
    timestamp: int


class LimitRecord(msgspec.Struct, frozen=True):
    """A limit of what `limited` names: tag/…, workflow/… or tree/…. The answer to `get` has its last changes."""

    limited: str
    kind: str
    max_allowed: int
    held: int
    waiting: int
    oldest_wait_time: int | None = None
    modify_time: int | None = None
    author: str | None = None
    extra_info: Object = {}
    timeline: list[LimitEvent] = []

    @property
    def name(self) -> str:
        """The tag, the id of the workflow, or the root of the tree."""
        return self.limited.partition("/")[2]


class PermitHolder(msgspec.Struct, frozen=True):
    """An attempt that holds a permit, and how long it has waited for it."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    criticality: str
    granted_time: int
    waited_ms: int = 0
    iteration: int = 1
    root_workflow_id: str = ""
    queued_time: int | None = None


class PermitWaiter(msgspec.Struct, frozen=True):
    """An attempt that waits for a permit. The place is None far behind in a long queue."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    criticality: str
    queued_time: int
    waiting_ms: int
    place: int | None = None
    iteration: int = 1
    root_workflow_id: str = ""
