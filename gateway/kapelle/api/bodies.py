"""What requests may hold. Every body is checked as a whole: all that is wrong with it is told at once.

Parts that are the engine's to judge (parameters, initiators, tags) are only looked at in outline here and handed on as
they were written, so that no number loses a digit.
"""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=256)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1, strict=True)]
RequestId = Annotated[str | None, Field(min_length=1, max_length=256)]
Reason = Annotated[str, Field(max_length=16_384)]


class Body(BaseModel):
    """What is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StartBody(Body):
    """Start an instance."""

    initiator: dict[str, Any] | None = None
    request_id: RequestId = None
    runtime_tags: list[Any] | None = None
    run_params: dict[str, Any] | None = None
    step_run_params: dict[str, Any] | None = None
    artifacts: dict[str, Any] | None = None
    correlation_id: Annotated[str | None, Field(max_length=1_000)] = None
    persist_failed_run: bool = False


class Word(StrEnum):
    """One of a few words, written in any case."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class Policy(Word):
    """Which steps of an instance run again."""

    RESTART_FROM_BEGINNING = "RESTART_FROM_BEGINNING"
    RESTART_FROM_INCOMPLETE = "RESTART_FROM_INCOMPLETE"
    RESTART_FROM_SPECIFIC = "RESTART_FROM_SPECIFIC"


class UpstreamMode(Word):
    """Where a step of a loop is restarted. There are no loops of their own instances yet."""

    RESTART_FROM_STEP = "RESTART_FROM_STEP"


class RestartBody(Body):
    """Run an instance again."""

    restart_policy: Policy = Policy.RESTART_FROM_INCOMPLETE
    request_id: RequestId = None
    run_params: dict[str, Any] | None = None


class StepRestartBody(Body):
    """Run an instance again from a step, or try a step of a running one again."""

    restart_policy: Policy = Policy.RESTART_FROM_SPECIFIC
    upstream_restart_mode: UpstreamMode = UpstreamMode.RESTART_FROM_STEP
    request_id: RequestId = None
    step_run_params: dict[str, Any] | None = None


class ActionBody(Body):
    """Why something is done."""

    reason: Reason = ""
    request_id: RequestId = None


class PollBody(Body):
    """What a worker can take."""

    worker: Name
    types: Annotated[list[Name], Field(min_length=1, max_length=100)]
    max: Annotated[int, Field(ge=1, le=100)] = 1
    wait_ms: Annotated[int, Field(ge=0, le=30_000)] = 0


class ReportKind(StrEnum):
    """What a worker can say of a task that it has."""

    HEARTBEAT = "HEARTBEAT"
    SUCCEEDED = "SUCCEEDED"
    USER_ERROR = "USER_ERROR"
    PLATFORM_ERROR = "PLATFORM_ERROR"
    FATAL_ERROR = "FATAL_ERROR"
    STOPPED = "STOPPED"
    RETURNED = "RETURNED"


class ReportBody(Body):
    """What a worker says of one task."""

    token: Name
    workflow_id: Name
    instance_id: Id
    step_id: Name
    report: ReportKind
    message: Annotated[str, Field(max_length=16_384)] = ""
    log: Annotated[str, Field(max_length=16_384)] = ""
    outputs: dict[str, Any] | None = None
    signals: Annotated[list[dict[str, Any]] | None, Field(max_length=100)] = None


class ReportsBody(Body):
    """What a worker says of its tasks."""

    worker: Name
    reports: Annotated[list[ReportBody], Field(max_length=100)]


class OutputBody(Body):
    """What a step made, told by somebody other than its worker."""

    workflow_id: Name
    workflow_instance_id: Id
    step_id: Name
    token: Name
    params: dict[str, Any]
