"""The shapes of steps, and of what composite steps have started."""

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.breakpoints import Breakpoint
from kapelle.api.answers.common import AtMs, Members, Value
from kapelle.api.answers.instances import Rollup, RunPolicy, RuntimeOverview, StepCount, TimelineEntry
from kapelle.api.answers.permits import NeededPermit
from kapelle.schemas.contracts import InstanceStatus, StepStatus


class Transition(Struct, kw_only=True):
    """The steps that come after a step."""

    successors: Members


class StepRetry(Struct, kw_only=True):
    """The retries of a step, by what has failed."""

    error_retries: int
    platform_retries: int
    timeout_retries: int
    manual_retries: int
    next_retry_time: AtMs | None


class ForeachOverview(Struct, kw_only=True):
    """The iterations of a foreach step. The numbers are in `details`: a number, or an interval of first and last."""

    stats: dict[str, int]
    running_stats: dict[str, int]
    rollup: Rollup | None
    checkpoint: int | UnsetType = UNSET
    details: dict[str, list[int | tuple[int, int]]] | UnsetType = UNSET
    restart_info: list[int] | UnsetType = UNSET


class ForeachArtifact(Struct, kw_only=True):
    """What a foreach step has planned and launched."""

    foreach_workflow_id: str
    foreach_identity: str
    foreach_run_id: int
    run_policy: RunPolicy
    run_id: int
    ancestor_iteration_count: int | None
    total_loop_count: int
    next_loop_index: int
    foreach_overview: ForeachOverview
    pending_action: None


class WhileArtifact(Struct, kw_only=True):
    """What a while step has launched. `loop_param_values` are there for one step, not in lists."""

    loop_workflow_id: str
    loop_identity: str
    loop_run_id: int
    run_policy: RunPolicy
    run_id: int
    first_iteration: int
    last_iteration: int | None
    last_status: InstanceStatus | None
    last_overview: RuntimeOverview | None
    rollup: Rollup | None
    loop_param_values: dict[str, list[Value]] | UnsetType | None = UNSET


class SubworkflowOverview(Struct, kw_only=True):
    """The progress of a subworkflow. In lists only its leaves."""

    rollup_overview: Rollup | None
    total_step_count: int | UnsetType = UNSET
    steps: list[str] | UnsetType = UNSET
    step_overview: dict[str, StepCount] | UnsetType = UNSET
    run_status: InstanceStatus | UnsetType = UNSET


class SubworkflowArtifact(Struct, kw_only=True):
    """What a subworkflow step has started."""

    subworkflow_id: str
    subworkflow_version_id: int | None
    subworkflow_instance_id: int | None
    subworkflow_run_id: int | None
    subworkflow_uuid: str | None
    subworkflow_status: InstanceStatus | None
    subworkflow_overview: SubworkflowOverview


class Artifacts(Struct, kw_only=True):
    """What a composite step has started. Other steps have none."""

    maestro_foreach: ForeachArtifact | UnsetType = UNSET
    maestro_while: WhileArtifact | UnsetType = UNSET
    maestro_subworkflow: SubworkflowArtifact | UnsetType = UNSET


class Step(Struct, kw_only=True):
    """An attempt of a step. A paused one has `breakpoints`, one that waits for permits has `permits`."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    iteration: int
    status: StepStatus
    reason: str | None
    params: Members
    transition: Transition
    step_retry: StepRetry
    worker: str | None
    message: str | None
    waiting_for: str | None
    create_time: AtMs | None
    pause_time: AtMs | None
    wait_permit_time: AtMs | None
    start_time: AtMs | None
    end_time: AtMs | None
    timeout_time: AtMs | None
    lease_time: AtMs | None
    due_time: AtMs | None
    artifacts: Artifacts
    breakpoints: list[Breakpoint] | UnsetType = UNSET
    permits: list[NeededPermit] | UnsetType = UNSET


class DetailedStep(Step, kw_only=True):
    """An attempt of a step with its timeline."""

    timeline: list[TimelineEntry]
