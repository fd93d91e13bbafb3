"""The shapes of tasks, and of the results of reports on them."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import AtMs, Members
from kapelle.schemas.contracts import Criticality


class Task(Struct, kw_only=True):
    """A task of a worker, under a lease."""

    token: str
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt: int
    iteration: int
    type: str
    sub_type: str | None
    params: Members
    idempotency_key: str
    criticality: Criticality
    lease_ms: int
    deadline_at_ms: AtMs


class Tasks(Struct, kw_only=True):
    """The tasks that were assigned, and the tokens of earlier ones that were taken back."""

    tasks: list[Task]
    cancelled: list[str]


class ReportResult(Struct, kw_only=True):
    """Whether the engine accepted a report. Null: not known yet."""

    token: str
    accepted: bool | None
    reason: str | UnsetType = UNSET


class ReportResults(Struct, kw_only=True):
    """The results of reports, in their order, and the tokens of tasks that were taken back."""

    results: list[ReportResult]
    cancelled: list[str]


class OutputTaken(Struct, kw_only=True):
    """An attempt that was ended with outputs."""

    request_id: str
    status: Literal["DONE"]
    token: str
    message: str | UnsetType = UNSET
