"""The shapes of health and readiness."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from kapelle.topology.journal import Mode


class ViewHealth(Struct, kw_only=True):
    """The records that the view has not read yet, and the number of those that it could not read. Null: not known."""

    lag: int | None
    unreadable: int | UnsetType = UNSET


class HealthStatus(StrEnum):
    """Whether the view and the engine run."""

    OK = "ok"
    FAILED = "failed"


class ReadyStatus(StrEnum):
    """Whether the node can take requests."""

    READY = "ready"
    NOT_READY = "not ready"


class Health(Struct, kw_only=True):
    """The health of a node. `detail` says what has failed."""

    status: HealthStatus
    version: str
    mode: Mode
    views: ViewHealth
    detail: str | UnsetType = UNSET


class Readiness(Struct, kw_only=True):
    """The readiness of a node. `detail` says why it is not ready."""

    status: ReadyStatus
    version: str
    mode: Mode
    views: ViewHealth
    detail: str | UnsetType = UNSET
