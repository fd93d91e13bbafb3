"""The shapes of time triggers, previews and backfills."""

from enum import StrEnum
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from kapelle.api.answers.common import AtMs, Members, Outcome, Settled
from kapelle.api.bodies import Order
from kapelle.processors.calendar import ScheduleType
from kapelle.processors.definitions.models import CatchUp
from kapelle.schemas.contracts import BackfillStatus, InstanceStatus


class Schedule(Struct, kw_only=True):
    """A schedule: a cron text or an interval, on the clock of a zone."""

    type: ScheduleType
    cron: str | None
    interval: str | None
    interval_ms: int | None
    anchor_at: AtMs | None
    start_at: AtMs | None
    timezone: str


class PauseScope(StrEnum):
    """What was paused: all time triggers of the workflow, or one of them."""

    WORKFLOW = "WORKFLOW"
    TRIGGER = "TRIGGER"


class SchedulePause(Struct, kw_only=True):
    """Who has paused a time trigger, when and why."""

    by: str
    at: AtMs
    reason: str | None
    scope: PauseScope


class NextTick(Struct, kw_only=True):
    """A tick to come: its scheduled time, and the time at which the instance starts."""

    scheduled_at: AtMs
    due_at: AtMs


class TickFate(StrEnum):
    """The outcome of ticks."""

    STARTED = "STARTED"
    REFUSED = "REFUSED"
    PASSED_OVER = "PASSED_OVER"
    NOT_ARMED = "NOT_ARMED"


class PastTick(Struct, kw_only=True):
    """The outcome of a tick, or of several that were not started, from the first to the last."""

    fate: TickFate
    scheduled_at: AtMs | None
    due_at: AtMs | None
    workflow_instance_id: int | None
    status: InstanceStatus | None
    started_at: AtMs | None
    late_ms: int | None
    reason: str | None
    decided_at: AtMs
    count: int
    first: AtMs | None = field(name="from")
    last: AtMs | None = field(name="to")


class ScheduleState(StrEnum):
    """The state of a time trigger."""

    ARMED = "ARMED"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"
    INACTIVE = "INACTIVE"
    ENDED = "ENDED"


class TimeTrigger(Schedule, kw_only=True):
    """A time trigger: its times, its state, its next and last ticks, and the number of ticks by fate."""

    workflow_id: str
    trigger_id: str
    workflow_version_id: int | None
    catch_up: CatchUp
    fuzzy_max_delay_ms: int
    state: ScheduleState
    paused: SchedulePause | None
    armed_at: AtMs | None
    disarmed_at: AtMs | None
    next: list[NextTick]
    last: list[PastTick]
    started: int
    refused: int
    passed_over: int
    not_armed: int


class TimeTriggers(Struct, kw_only=True):
    """The time triggers of a workflow."""

    workflow_id: str
    schedules: list[TimeTrigger]


class SettledSchedules(Settled, kw_only=True):
    """The outcome of a pause or a resumption. Without `trigger_id` it is about all time triggers of the workflow."""

    trigger_id: str | None


class PreviewedTime(Struct, kw_only=True):
    """A time of a schedule. `note` says what a change of the clock means for it."""

    scheduled_at: AtMs
    utc: str
    local: str
    note: str | None


class Preview(Schedule, kw_only=True):
    """The next times of a schedule."""

    since: AtMs = field(name="from")
    times: list[PreviewedTime]


# Backfills ------------------------------------------------------------------------------------------------------------


class RefusedSlot(Struct, kw_only=True):
    """A slot whose start was refused."""

    scheduled_at: AtMs
    reason: str


class Backfill(Struct, kw_only=True):
    """A backfill: what was asked for, how far it is, and the number of its instances in each status."""

    workflow_id: str
    backfill_id: str
    status: BackfillStatus
    reason: str | None
    by: str
    started_at: AtMs
    ended_at: AtMs | None
    modified_at: AtMs
    modified_by: str | None
    since: AtMs = field(name="from")
    to: AtMs
    order: Order
    rerun: bool
    concurrency: int
    trigger_id: str | None
    schedule: Schedule
    params: Members
    total: int
    decided: int
    started: int
    existing: int
    refused: int
    slots_left: int
    position: AtMs | None
    counts: dict[str, int]
    refusals: list[RefusedSlot]


class ChangedBackfill(Backfill, kw_only=True):
    """A backfill that a write was about, and the outcome of the write."""

    request_id: str
    outcome: Literal["DONE"]


class UnchangedBackfill(Backfill, kw_only=True):
    """A backfill that a write has left as it was, and why."""

    request_id: str
    outcome: Literal["UNCHANGED"]
    message: str | None


class BackfillAnswer(Backfill, kw_only=True):
    """A backfill after an action, and the outcome of the action. `message` says why nothing has changed."""

    request_id: str
    outcome: Outcome
    message: str | UnsetType | None = UNSET


class BackfillSlot(Struct, kw_only=True):
    """A slot of a backfill. One that exists has an instance, and gets no other."""

    scheduled_at: AtMs
    local: str
    is_existing: bool
    workflow_instance_id: int | None


class BackfillPlan(Struct, kw_only=True):
    """What a backfill would start: the first and the last slots, in the order in which they start."""

    workflow_id: str
    backfill_id: str
    total: int
    existing: int
    slots: list[BackfillSlot]
