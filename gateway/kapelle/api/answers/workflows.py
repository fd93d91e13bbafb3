"""The shapes of workflows, their versions and their properties."""

from enum import StrEnum
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import AtMs, Change, Members, Settled


class Valid(Struct, kw_only=True):
    """A push with this definition would be accepted."""

    valid: Literal[True]


class Workflow(Struct, kw_only=True):
    """A workflow in a list."""

    workflow_id: str
    name: str
    owner: str | None
    active_version_id: int | None
    latest_version_id: int
    create_time: AtMs
    modify_time: AtMs


class PropertiesSnapshot(Struct, kw_only=True):
    """The current properties of a workflow, as they were set, and who has changed them last."""

    workflow_id: str
    author: str
    create_time: AtMs


class WorkflowOverview(Workflow, kw_only=True):
    """A workflow on one page. `instances` has the number of its instances in each status."""

    default_version_id: int
    properties_snapshot: PropertiesSnapshot | None
    nonterminal_instances: dict[str, int]
    failed_instances: int
    instances: dict[str, int]
    latest_instance_id: int | None


class Metadata(Struct, kw_only=True):
    """Who has pushed a version and when, with the other members that the push gave."""

    workflow_id: str
    workflow_version_id: int
    create_time: AtMs
    version_author: str


class Enrichment(Struct, kw_only=True):
    """The times at which time triggers start the version next. Null: not armed, or no time to come."""

    next_execution_time: int | None
    next_execution_times: list[int | None]


class Version(Struct, kw_only=True):
    """A version of a workflow, with the current properties of the workflow."""

    metadata: Metadata
    workflow: Members
    properties_snapshot: PropertiesSnapshot | None
    is_active: bool
    activate_time: AtMs | None
    activated_by: str | None
    is_latest: bool
    is_default: bool
    modify_time: AtMs


class EnrichedVersion(Version, kw_only=True):
    """A version of a workflow. `enriched_extras` are there if they are asked for."""

    enriched_extras: Enrichment | UnsetType = UNSET


class PushStatus(StrEnum):
    """What a push did. DUPLICATED: the request was made before."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"


class Pushed(Version, kw_only=True):
    """A version that was pushed."""

    request_id: str
    status: PushStatus
    workflow_id: str
    workflow_version_id: int


class WorkflowTimeline(Struct, kw_only=True):
    """The changes of a workflow, latest first."""

    workflow_id: str
    timeline_events: list[Change]


class SettledAll(Settled, kw_only=True):
    """The outcome of an action on all instances of a workflow. `count` is the number of instances that were ended."""

    count: int | UnsetType = UNSET


class SettledProperties(Settled, kw_only=True):
    """The outcome of a change of properties, with the properties after it."""

    properties_snapshot: PropertiesSnapshot | None
