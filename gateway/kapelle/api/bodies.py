"""The bodies of requests. Each body is checked as a whole, and all its problems are reported at once.

The engine checks parameters, initiators and tags. Here only their outline is checked, and the text is passed on as it
was written, so that numbers keep all their digits.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=256)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1, strict=True)]
RequestId = Annotated[str | None, Field(min_length=1, max_length=256)]
Reason = Annotated[str, Field(max_length=16_384)]


class Body(BaseModel):
    """A body that refuses unknown members."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StartBody(Body):
    """Start an instance."""

    initiator: dict[str, object] | None = None
    request_id: RequestId = None
    runtime_tags: list[object] | None = None
    run_params: dict[str, object] | None = None
    step_run_params: dict[str, object] | None = None
    artifacts: dict[str, object] | None = None
    correlation_id: Annotated[str | None, Field(max_length=1_000)] = None
    persist_failed_run: bool = False


class CaselessEnum(StrEnum):
    """An enumeration that is read in any case."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class Policy(CaselessEnum):
    """Which steps of an instance a restart runs again."""

    RESTART_FROM_BEGINNING = "RESTART_FROM_BEGINNING"
    RESTART_FROM_INCOMPLETE = "RESTART_FROM_INCOMPLETE"
    RESTART_FROM_SPECIFIC = "RESTART_FROM_SPECIFIC"


class UpstreamMode(CaselessEnum):
    """What the restart of a step runs again: the step, or the nearest ancestor that is no iteration and no round."""

    RESTART_FROM_STEP = "RESTART_FROM_STEP"
    RESTART_FROM_INLINE_ROOT = "RESTART_FROM_INLINE_ROOT"


class RestartBody(Body):
    """Restart an instance."""

    restart_policy: Policy = Policy.RESTART_FROM_INCOMPLETE
    request_id: RequestId = None
    run_params: dict[str, object] | None = None


class StepRestartBody(Body):
    """Restart an ended instance from a step, or retry a step of a running instance."""

    restart_policy: Policy | None = None
    upstream_restart_mode: UpstreamMode = UpstreamMode.RESTART_FROM_STEP
    request_id: RequestId = None
    step_run_params: dict[str, object] | None = None


class ActionBody(Body):
    """An action, with its reason."""

    reason: Reason = ""
    request_id: RequestId = None


class ResumeBody(Body):
    """Resume a paused step, optionally with other parameters."""

    reason: Reason = ""
    request_id: RequestId = None
    step_run_params: dict[str, object] | None = None


class BreakpointBody(Body):
    """Set a breakpoint on a step. What is not given matches everything."""

    workflow_id: Name
    step_id: Name
    workflow_version_id: Id | None = None
    workflow_instance_id: Id | None = None
    workflow_run_id: Id | None = None
    step_attempt_id: Annotated[int | None, Field(ge=1, le=2**31 - 1, strict=True)] = None
    request_id: RequestId = None


class LimitBody(BaseModel):
    """Limit how many steps with a tag run at the same time. All other members are kept, and shown with the limit."""

    model_config = ConfigDict(extra="allow", frozen=True)

    tag: Name
    max_allowed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
    request_id: RequestId = None


class PauseBody(Body):
    """Pause the time triggers of a workflow, or one of them."""

    trigger_id: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    reason: Reason = ""
    request_id: RequestId = None


class ResumeSchedulesBody(Body):
    """Resume the time triggers of a workflow, or one of them."""

    trigger_id: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    reason: Reason = ""
    request_id: RequestId = None


class Order(StrEnum):
    """The order in which a backfill starts its instances."""

    OLDEST = "oldest"
    NEWEST = "newest"


# An ISO date, an ISO date-time, or milliseconds since 1970.
Moment = Annotated[
    Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)] | Annotated[str, Field(min_length=1, max_length=64)],
    Field(description="An ISO date, an ISO date-time, or milliseconds since 1970."),
]


class BackfillBody(Body):
    """Start one instance for each scheduled time of a period.

    The times are `every` interval, those of a `cron` text or those of the time trigger `trigger_id`. Without any of
    them, they are those of the only time trigger of the workflow.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    since: Annotated[Moment, Field(alias="from")]
    to: Moment
    every: Annotated[str | int | None, Field(description="An interval: `1d`, `90m`, or seconds.")] = None
    cron: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    trigger_id: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    timezone: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    params: dict[str, object] | None = None
    concurrency: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    order: Order = Order.OLDEST
    backfill_id: Annotated[str | None, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] = None
    rerun: Annotated[bool, Field(description="Start also the times that have an instance.")] = False
    dry_run: Annotated[bool, Field(description="Only show what would be started.")] = False
    request_id: RequestId = None


class BackfillActionBody(Body):
    """Pause, resume or cancel a backfill."""

    reason: Reason = ""
    stop_running: Annotated[bool, Field(description="Also stop its instances. Only for `cancel`.")] = False
    request_id: RequestId = None


class PollBody(Body):
    """A worker, and the types of tasks that it can run."""

    worker: Name
    types: Annotated[list[Name], Field(min_length=1, max_length=100)]
    max: Annotated[int, Field(ge=1, le=100)] = 1
    wait_ms: Annotated[int, Field(ge=0, le=30_000)] = 0


class ReportKind(StrEnum):
    """The kind of a report: a heartbeat, or the result of a task."""

    HEARTBEAT = "HEARTBEAT"
    SUCCEEDED = "SUCCEEDED"
    USER_ERROR = "USER_ERROR"
    PLATFORM_ERROR = "PLATFORM_ERROR"
    FATAL_ERROR = "FATAL_ERROR"
    STOPPED = "STOPPED"
    RETURNED = "RETURNED"


class ReportBody(Body):
    """A report on one task."""

    token: Name
    workflow_id: Name
    instance_id: Id
    step_id: Name
    report: ReportKind
    message: Annotated[str, Field(max_length=16_384)] = ""
    log: Annotated[str, Field(max_length=16_384)] = ""
    outputs: dict[str, object] | None = None
    signals: Annotated[list[dict[str, object]] | None, Field(max_length=100)] = None


class ReportsBody(Body):
    """Reports of one worker on its tasks."""

    worker: Name
    reports: Annotated[list[ReportBody], Field(max_length=100)]


class OutputBody(Body):
    """The outputs of a step, reported by a system other than its worker."""

    workflow_id: Name
    workflow_instance_id: Id
    step_id: Name
    token: Name
    params: dict[str, object]
