"""The shapes of limits, and of those that hold a permit or wait for one."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import AtMs, Change, Members, Outcome
from kapelle.schemas.contracts import Criticality


class Kind(StrEnum):
    """What is limited: the steps with a tag, the steps of a workflow, or the steps of a tree of instances."""

    TAG = "tag"
    WORKFLOW = "workflow"
    TREE = "tree"


class Limit(Struct, kw_only=True):
    """A limit, with the members that its author added. One of `tag`, `workflow_id` and `root` says what is limited."""

    limited: str
    kind: Kind
    tag: str | UnsetType = UNSET
    workflow_id: str | UnsetType = UNSET
    root: str | UnsetType = UNSET
    max_allowed: int
    held: int
    waiting: int
    oldest_wait_time: AtMs | None
    modify_time: AtMs | None
    author: str | None
    extra_info: Members


class DetailedLimit(Limit, kw_only=True):
    """A limit with its last changes."""

    timeline: list[Change]


class RemovedLimit(Struct, kw_only=True):
    """The limit that a write has removed, and the outcome of the write."""

    request_id: str
    status: Outcome
    tag: str
    message: str | UnsetType = UNSET


class ChangedLimit(RemovedLimit, kw_only=True):
    """The limit that a write has set, and the outcome of the write."""

    max_allowed: int


class PermitRequest(Struct, kw_only=True):
    """An attempt that has asked for a permit."""

    workflow_id: str
    workflow_instance_id: int | None
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    iteration: int
    root_workflow_id: str
    criticality: Criticality
    ticket: int
    turn: int | None
    queued_time: AtMs | None


class PermitHolder(PermitRequest, kw_only=True):
    """An attempt that holds a permit."""

    granted_time: AtMs
    waited_ms: int


class PermitWaiter(PermitRequest, kw_only=True):
    """An attempt that waits for a permit. A place that is too far back to be counted is null."""

    place: int | None
    waiting_ms: int


class PermitStatus(StrEnum):
    """Whether an attempt has a permit that it needs."""

    HELD = "HELD"
    WAITING = "WAITING"
    NOT_REQUESTED = "NOT_REQUESTED"


class NeededPermit(Struct, kw_only=True):
    """A permit that an attempt needs. The one that it waits for has `since`, and the rest once it is visible."""

    limited: str
    status: PermitStatus
    since: AtMs | UnsetType | None = UNSET
    max_allowed: int | UnsetType = UNSET
    held: int | UnsetType = UNSET
    waiting: int | UnsetType = UNSET
    place: int | UnsetType | None = UNSET
