"""The tables of `workflows`, by workflow id: the definition, the instances, and which are queued, running or failed.

Two rows are read and written by nearly every decision, `workflows` and `counts`, and both are small. What is large (a
definition, parameters) has rows of its own, which are read only when a run is launched. So are breakpoints, if the
counts say that there are any. Whatever is in the queue is
found by its place, with all that its launch needs in one row, so a queue of a million costs what a queue of ten does.
"""

from typing import Final

import msgspec

from kapelle.processors.tables import Tables, table
from kapelle.schemas.contracts import Action, BackfillStatus, CatchUp, InstanceStatus, Parent

ALL: Final = ""  # stands for all time triggers of a workflow


class Workflow(msgspec.Struct, frozen=True):
    """Which versions there are. A deleted workflow keeps its row, because its instances are counted on."""

    latest_version: int = 0
    active_version: int = 0  # 0 if none
    snapshot: int = 0  # the number of the latest properties
    first_instance_id: int = 1  # instances before it belong to a workflow of this id that was deleted
    is_deleted: bool = False


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many instances there are, and in which state."""

    latest_instance_id: int = 0
    queued: int = 0
    running: int = 0
    failed: int = 0  # neither unblocked nor restarted
    displaced: int = 0  # of those that are queued: they are ended, and nothing is launched until they are
    generation: int = 0  # how often a queue was displaced that one decision could not end
    breakpoints: int = 0
    breakpoints_generation: int = 0  # how often the breakpoints have changed, those of deleted workflows included


class Version(msgspec.Struct, frozen=True):
    """A workflow as JSON, as it was pushed."""

    definition: str


class Snapshot(msgspec.Struct, frozen=True):
    """All properties as JSON, as they were from one change to the next."""

    text: str


class Request(msgspec.Struct, frozen=True):
    """The run that a request to start or restart has made."""

    instance_id: int
    run_id: int


class Answer(msgspec.Struct, frozen=True):
    """That a request was carried out, and which version it was about."""

    version: int = 0


class Instance(msgspec.Struct, frozen=True):
    """The latest run of an instance. CREATED is queued, IN_PROGRESS is launched."""

    run_id: int
    status: InstanceStatus


class Origin(msgspec.Struct, frozen=True):
    """What all runs of an instance share. `params` is kept until the first launch: later ones bring their own."""

    request_id: str
    version: int
    snapshot: int
    initiator: str
    run_params: str
    step_run_params: str
    runtime_tags: str
    correlation_id: str
    params: str | None
    parent: Parent | None = None  # the step that the instance is a child of


class Queued(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that waits. What is None is the same as at the instance's origin."""

    request_id: str
    params: str | None = None
    run_params: str | None = None
    restart: str | None = None
    generation: int = 0  # that of the queue when the run came
    origin: Origin | None = None  # of a first run: it has no row of its own before the run leaves the queue
    author: str = ""
    parent: Parent | None = None  # the step that the instance is a child of
    backfill_id: str | None = None  # the backfill that launches it


class Running(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that was launched and has not ended, and what it was told to do."""

    run_id: int
    action: Action | None = None
    backfill_id: str | None = None  # the backfill in whose lane it runs


class Failed(msgspec.Struct, frozen=True):
    """A run that holds up a strictly sequential workflow."""

    run_id: int


class Armed(msgspec.Struct, frozen=True):
    """A signal trigger that is armed, and the version that it was armed for."""

    version: int


class ScheduleRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time trigger that is armed. All ticks up to `after_ms` are decided on; the timer is set to `next_due_ms`."""

    schedule: str
    catch_up: CatchUp
    fuzzy_max_delay_ms: int
    after_ms: int
    next_at_ms: int | None = None
    next_due_ms: int | None = None


class Pause(msgspec.Struct, frozen=True):
    """Who paused a time trigger, or all of a workflow, and why."""

    author: str
    reason: str
    at_ms: int


class BackfillRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A backfill: what was asked for, the last slot that was decided on, and how many of its instances run."""

    author: str
    schedule: str
    from_ms: int
    to_ms: int
    run_params: str
    concurrency: int
    position_ms: int
    status: BackfillStatus = BackfillStatus.RUNNING
    trigger_id: str | None = None
    is_newest_first: bool = False
    is_rerun: bool = False
    is_exhausted: bool = False  # no slot is left
    running: int = 0
    turn: int = 0  # of its timer


class Breakpoint(msgspec.Struct, frozen=True):
    """Who set a breakpoint, and when."""

    author: str
    at_ms: int


class WorkflowTables(Tables):
    """The tables of one partition."""

    workflows = table("workflows", key=tuple[str], row=Workflow)
    counts = table("counts", key=tuple[str], row=Counts)
    versions = table("versions", key=tuple[str, int], row=Version)  # by version
    properties = table("properties", key=tuple[str, int], row=Snapshot)  # by number
    requests = table("requests", key=tuple[str, str], row=Request)  # by request id
    answers = table("answers", key=tuple[str, str], row=Answer)  # by request id
    instances = table("instances", key=tuple[str, int], row=Instance)  # by instance id, as all that follow
    origins = table("origins", key=tuple[str, int], row=Origin)
    queue = table("queue", key=tuple[str, int, int], row=Queued)  # and by run id: this is the order of launches
    running = table("running", key=tuple[str, int], row=Running)
    armed = table("armed", key=tuple[str, str], row=Armed)  # by trigger id
    failed = table("failed", key=tuple[str, int], row=Failed)
    schedules = table("schedules", key=tuple[str, str], row=ScheduleRow)  # by trigger id
    pauses = table("pauses", key=tuple[str, str], row=Pause)  # by trigger id; "" for all of the workflow
    backfills = table("backfills", key=tuple[str, str], row=BackfillRow)  # by backfill id
    # By step, version, instance id, run id and attempt; 0 for all of them.
    breakpoints = table("breakpoints", key=tuple[str, str, int, int, int, int], row=Breakpoint)
