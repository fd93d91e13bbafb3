"""The results of calls. Times are milliseconds since 1970; None if it has not happened yet."""

from typing import Any, Final, Generic, TypeVar

import msgspec

from kapelle.client.gate_results import HeldBy, PermitNeeded

T = TypeVar("T")

TERMINAL: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"})
Object = dict[str, Any]  # the JSON of the API, for callers to read


class PageInfo(msgspec.Struct, frozen=True):
    """The position of a page in its list."""

    start_cursor: str | None = None
    end_cursor: str | None = None
    has_previous_page: bool = False
    has_next_page: bool = False
    start_index: int | None = 0  # None: there are more before it than are counted


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list. Get the next one with `cursor=page.page_info.end_cursor`."""

    page_info: PageInfo
    total_count: int | None  # None: there are more than are counted
    elements: list[T]


class WorkflowEntry(msgspec.Struct, frozen=True):
    """A workflow in a list."""

    workflow_id: str
    owner: object = None
    name: str | None = None
    active_version_id: int | None = None
    latest_version_id: int | None = None
    create_time: int | None = None
    modify_time: int | None = None


class Overview(msgspec.Struct, frozen=True):
    """An overview of a workflow."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int | None = None
    default_version_id: int | None = None
    properties_snapshot: Object | None = None
    nonterminal_instances: dict[str, int] = {}
    failed_instances: int = 0
    instances: dict[str, int] = {}
    latest_instance_id: int | None = None


class VersionMetadata(msgspec.Struct, frozen=True):
    """The metadata of a version."""

    workflow_id: str
    workflow_version_id: int
    create_time: int | None = None
    version_author: object = None
    git_info: object = None


class Version(msgspec.Struct, frozen=True):
    """A version of a workflow."""

    metadata: VersionMetadata
    workflow: Object = {}
    properties_snapshot: Object | None = None
    is_active: bool = False
    is_latest: bool = False
    is_default: bool = False
    activate_time: int | None = None
    modify_time: int | None = None


class Pushed(Version, frozen=True, kw_only=True):
    """The outcome of a push. DUPLICATED: the same request was made before."""

    workflow_id: str
    workflow_version_id: int
    status: str
    request_id: str


class Done(msgspec.Struct, frozen=True):
    """The outcome of a change. UNCHANGED: there was nothing to do; `message` has the reason."""

    request_id: str
    workflow_id: str
    status: str
    message: str | None = None
    workflow_version_id: int | None = None
    workflow_instance_id: int | None = None
    workflow_run_id: int | None = None
    workflow_status: str | None = None
    count: int | None = None
    properties_snapshot: Object | None = None


class Started(msgspec.Struct, frozen=True):
    """The outcome of a start or restart. DUPLICATED: the same request was made before."""

    request_id: str
    workflow_id: str
    workflow_instance_id: int
    status: str
    workflow_run_id: int | None = None
    workflow_version_id: int | None = None
    workflow_uuid: str | None = None
    message: str | None = None


class RunConfig(msgspec.Struct, frozen=True):
    """The cause of a run."""

    policy: str = ""
    restart_config: Object | None = None
    runtime_tags: list[object] = []


class StepView(msgspec.Struct, frozen=True):
    """The state of a step after all runs. Without a run, no run has created it."""

    status: str
    workflow_run_id: int | None = None
    step_attempt_id: int | None = None
    start_time: int | None = None
    end_time: int | None = None


class AggregatedInfo(msgspec.Struct, frozen=True):
    """An instance after all its runs."""

    workflow_instance_status: str
    step_aggregated_views: dict[str, StepView]


class MatrixRow(msgspec.Struct, frozen=True):
    """An instance with its steps."""

    workflow_instance_id: int
    workflow_run_id: int
    status: str
    steps: dict[str, StepView]
    workflow_version_id: int | None = None
    create_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None


class Matrix(msgspec.Struct, frozen=True):
    """The last instances of a workflow and their steps."""

    workflow_id: str
    steps: list[str]
    instances: list[MatrixRow]


class Parent(msgspec.Struct, frozen=True):
    """The step that an instance is a child of. `kind` is FOREACH, WHILE or SUBWORKFLOW, `root` the top of the tree."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    number: int
    kind: str
    root: str
    depth: int
    sync: bool = True


class InstanceRecord(msgspec.Struct, frozen=True):
    """A run of an instance, with what all its runs share."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    status: str
    workflow_version_id: int | None = None
    workflow_uuid: str | None = None
    run_status: str | None = None
    reason: str | None = None
    correlation_id: str | None = None
    author: object = None
    initiator: Object = {}
    run_config: RunConfig = RunConfig()
    params: Object = {}
    run_params: Object = {}
    step_run_params: Object = {}
    artifacts: Object = {}
    create_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    timeout_time: int | None = None
    aggregated_info: AggregatedInfo | None = None
    runtime_overview: Object | None = None
    parent: Parent | None = None
    backfill_id: str | None = None
    scheduled_at: int | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL


class TimelineEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a timeline. `type` is STATUS, ACTION or LOG. `children` is how many a composite step has launched."""

    timestamp: int
    type: str
    workflow_run_id: int | None = None
    step_id: str | None = None
    step_attempt_id: int | None = None
    iteration: int | None = None
    status: str | None = None
    statuses: list[str] | None = None
    action: str | None = None
    author: object = None
    worker: str | None = None
    message: str | None = None
    reason: str | None = None
    children: int | None = None


class Timeline(msgspec.Struct, frozen=True):
    """The timeline of an instance, in order."""

    workflow_id: str
    workflow_instance_id: int
    elements: list[TimelineEntry]


class StepRecord(msgspec.Struct, frozen=True):
    """An attempt of a step."""

    step_id: str
    step_attempt_id: int
    workflow_run_id: int
    status: str
    workflow_id: str = ""
    workflow_instance_id: int = 0
    iteration: int | None = None
    reason: str | None = None
    message: str | None = None
    params: Object = {}
    transition: Object = {}
    step_retry: Object = {}
    worker: str | None = None
    waiting_for: str | None = None
    breakpoints: list[HeldBy] = []
    permits: list[PermitNeeded] = []
    create_time: int | None = None
    pause_time: int | None = None
    wait_permit_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    timeout_time: int | None = None
    lease_time: int | None = None
    due_time: int | None = None
    artifacts: Object = {}
    timeline: list[TimelineEntry] = []


class EventRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event with its position in the log. `event` has its fields; a tail continues after `id`."""

    type: str
    time: int
    stream: str
    partition: int
    offset: int
    key: str
    event: Object
    workflow_id: str | None = None
    workflow_instance_id: int | None = None
    id: str | None = None


class History(msgspec.Struct, frozen=True):
    """The events of an instance, in order. `is_cut`: there are older events."""

    workflow_id: str
    workflow_instance_id: int
    elements: list[EventRecord]
    is_cut: bool = False


class Counts(msgspec.Struct, frozen=True):
    """The number of instances in each status."""

    total_count: int
    counts: dict[str, int]


class Health(msgspec.Struct, frozen=True):
    """The health of a server."""

    status: str
    version: str
    mode: str
    views: Object = {}
    detail: str | None = None


class Valid(msgspec.Struct, frozen=True):
    """A definition that can be pushed."""

    valid: bool
