"""The records of schedules and backfills, as people read them. Times are in milliseconds since 1970."""

from typing import Final, TypedDict

ARMED: Final = "ARMED"
PAUSED: Final = "PAUSED"
DISABLED: Final = "DISABLED"
INACTIVE: Final = "INACTIVE"
ENDED: Final = "ENDED"

OF_WORKFLOW: Final = "WORKFLOW"
OF_TRIGGER: Final = "TRIGGER"


class PauseRecord(TypedDict):
    """Who has paused a time trigger. `scope` is WORKFLOW or TRIGGER."""

    by: str
    at: int
    reason: str | None
    scope: str


class NextTickRecord(TypedDict):
    """A tick to come: the time that the schedule names, and the time at which the instance starts."""

    scheduled_at: int
    due_at: int


PastTickRecord = TypedDict(
    "PastTickRecord",
    {
        "fate": str,  # STARTED, REFUSED, PASSED_OVER or NOT_ARMED
        "scheduled_at": int | None,  # null for several ticks
        "due_at": int | None,
        "workflow_instance_id": int | None,
        "status": str | None,  # of the instance, now
        "started_at": int | None,
        "late_ms": int | None,
        "reason": str | None,
        "decided_at": int,
        "count": int,  # of ticks that were not started, from the first to the last
        "from": int | None,
        "to": int | None,
    },
)


class TimesRecord(TypedDict):
    """A schedule. Its type is CRON or INTERVAL; an interval is text such as 90m."""

    type: str
    cron: str | None
    interval: str | None
    interval_ms: int | None
    anchor_at: int | None
    start_at: int | None
    timezone: str


class ScheduleRecord(TimesRecord):
    """A time trigger: its times, its state, and its next and last ticks."""

    workflow_id: str
    trigger_id: str
    workflow_version_id: int | None
    catch_up: str
    fuzzy_max_delay_ms: int
    state: str  # ARMED, PAUSED, DISABLED, INACTIVE or ENDED
    paused: PauseRecord | None
    armed_at: int | None
    disarmed_at: int | None
    next: list[NextTickRecord]
    last: list[PastTickRecord]
    started: int
    refused: int
    passed_over: int
    not_armed: int


class ScheduleListRecord(TypedDict):
    """The time triggers of a workflow, in the order of the definition."""

    workflow_id: str
    schedules: list[ScheduleRecord]


BackfillRecord = TypedDict(
    "BackfillRecord",
    {
        "workflow_id": str,
        "backfill_id": str,
        "status": str,  # RUNNING, PAUSED, CANCELLED or COMPLETED
        "reason": str | None,  # of the last change of the status
        "by": str,
        "started_at": int,
        "ended_at": int | None,
        "modified_at": int,
        "modified_by": str | None,
        "from": int,
        "to": int,
        "order": str,  # oldest or newest
        "rerun": bool,
        "concurrency": int,
        "trigger_id": str | None,
        "schedule": TimesRecord,
        "params": object,
        "total": int,
        "decided": int,  # slots that were started, refused, or had an instance before
        "started": int,
        "existing": int,
        "refused": int,
        "slots_left": int,
        "position": int | None,  # the last slot that was decided on
        "counts": dict[str, int],  # instances of the backfill by their status now
        "refusals": list[dict[str, object]],  # the last ones: scheduled_at, reason
    },
)


class SlotRecord(TypedDict):
    """A slot of a backfill that would be started. One that exists would not: it has an instance."""

    scheduled_at: int
    local: str
    is_existing: bool
    workflow_instance_id: int | None


class PlanRecord(TypedDict):
    """What a backfill would do. `slots` are the first and the last ones, in the order in which they start."""

    workflow_id: str
    backfill_id: str
    total: int
    existing: int
    slots: list[SlotRecord]
