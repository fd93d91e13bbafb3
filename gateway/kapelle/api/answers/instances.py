"""The shapes of instances, their runs, and what was started or ended."""

from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from kapelle.api.answers.common import SCHEMAS, AtMs, Members, Settled, Value
from kapelle.processors.runs.timeline import EntryType
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, StepStatus

# Of an instance or of a step. msgspec makes no union of two enumerations.
_EITHER: Final = [{"$ref": SCHEMAS.format(name=kind.__name__)} for kind in (InstanceStatus, StepStatus)]
AnyStatus: TypeAlias = Annotated[Value, Meta(extra_json_schema={"anyOf": _EITHER})]


class RunPolicy(StrEnum):
    """Which steps a run has to do: all, or those of a restart."""

    START_FRESH_NEW_RUN = "START_FRESH_NEW_RUN"
    RESTART_FROM_BEGINNING = "RESTART_FROM_BEGINNING"
    RESTART_FROM_INCOMPLETE = "RESTART_FROM_INCOMPLETE"
    RESTART_FROM_SPECIFIC = "RESTART_FROM_SPECIFIC"


class RunConfig(Struct, kw_only=True):
    """What was asked of a run."""

    policy: RunPolicy
    restart_config: Members | None
    runtime_tags: list[Value]


class Parent(Struct, kw_only=True):
    """The step that an instance is a child of. `root` is the instance at the top of the tree."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    number: int
    kind: ChildKind
    sync: bool
    root: str
    depth: int


class Run(Struct, kw_only=True):
    """A run of an instance. `status` is that of the instance, `run_status` that of the run."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    workflow_version_id: int
    status: InstanceStatus
    run_status: InstanceStatus
    reason: str | None
    correlation_id: str | None
    author: str
    initiator: Members
    backfill_id: str | None
    scheduled_at: AtMs | None
    run_config: RunConfig
    params: Members
    run_params: Members
    step_run_params: Members
    artifacts: Members
    create_time: AtMs
    start_time: AtMs | None
    end_time: AtMs | None
    timeout_time: AtMs | None
    parent: Parent | None


class StepView(Struct, kw_only=True):
    """The state of a step after all runs. A step that no run has created has no run and no attempt."""

    workflow_run_id: int | None
    step_attempt_id: int | None
    status: StepStatus
    start_time: AtMs | None
    end_time: AtMs | None


class AggregatedInfo(Struct, kw_only=True):
    """The state of an instance after all runs up to one of them."""

    workflow_instance_status: InstanceStatus
    step_aggregated_views: dict[str, StepView]


class LeafCount(Struct, kw_only=True):
    """The number of leaves in a status. `ref` names some: workflow and run → instance, step and attempt."""

    cnt: int
    ref: dict[str, list[str]] | UnsetType = UNSET


class Rollup(Struct, kw_only=True):
    """The leaves of a tree of instances, by the status of the step."""

    total_leaf_count: int
    overview: dict[str, LeafCount]


class StepCount(Struct, kw_only=True):
    """The steps in a status. Each has its place in the run, its start and its end."""

    cnt: int
    steps: list[tuple[int | None, int | None, int | None]]


class RuntimeOverview(Struct, kw_only=True):
    """The progress of a run: the steps that it has to do, and the number of steps in each status."""

    total_step_count: int
    steps: list[str]
    step_overview: dict[str, StepCount]
    rollup_overview: Rollup | None
    run_status: InstanceStatus


class DetailedRun(Run, kw_only=True):
    """A run of an instance, with what was asked for by `aggregated` and `enriched`."""

    aggregated_info: AggregatedInfo | UnsetType = UNSET
    runtime_overview: RuntimeOverview | UnsetType = UNSET


class InstanceCounts(Struct, kw_only=True):
    """The number of instances in each status."""

    total_count: int
    counts: dict[str, int]


class MatrixRow(Struct, kw_only=True):
    """An instance with the state of each step after all its runs."""

    workflow_instance_id: int
    workflow_run_id: int
    workflow_version_id: int
    status: InstanceStatus
    create_time: AtMs
    start_time: AtMs | None
    end_time: AtMs | None
    steps: dict[str, StepView]


class Matrix(Struct, kw_only=True):
    """The newest instances of a workflow with their steps. `steps` names all of them."""

    workflow_id: str
    steps: list[str]
    instances: list[MatrixRow]


class TimelineEntry(Struct, kw_only=True):
    """An entry of a timeline. It has the members that it speaks of."""

    timestamp: AtMs
    type: EntryType
    workflow_run_id: int | UnsetType = UNSET
    step_id: str | UnsetType = UNSET
    step_attempt_id: int | UnsetType = UNSET
    iteration: int | UnsetType = UNSET
    status: AnyStatus | UnsetType = UNSET
    statuses: list[StepStatus] | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    author: str | UnsetType = UNSET
    worker: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    signal_id: str | UnsetType = UNSET
    restart: str | UnsetType = UNSET
    children: int | UnsetType = UNSET


class InstanceTimeline(Struct, kw_only=True):
    """The status changes, actions and messages of an instance and its steps, in order."""

    workflow_id: str
    workflow_instance_id: int
    elements: list[TimelineEntry]


# What was started or ended --------------------------------------------------------------------------------------------


class StartStatus(StrEnum):
    """The outcome of a start. DUPLICATED: the request was made before. STOPPED, FAILED: it could not run."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


class Started(Struct, kw_only=True):
    """A run that was started. `message` says why it ended before it could run."""

    request_id: str
    workflow_id: str
    workflow_version_id: int | None
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    status: StartStatus
    message: str | UnsetType = UNSET


class SettledRun(Settled, kw_only=True):
    """The outcome of an action on a run."""

    workflow_instance_id: int
    workflow_run_id: int | None


class SettledInstance(Settled, kw_only=True):
    """The outcome of an action on an instance. `workflow_status` is its status after it was stopped or killed."""

    workflow_status: InstanceStatus | UnsetType | None = UNSET
