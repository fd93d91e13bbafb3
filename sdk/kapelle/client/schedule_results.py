"""The results of calls about schedules and backfills. Times are milliseconds since 1970."""

from typing import Final

import msgspec

from kapelle.client.results import TERMINAL, Object

OVER: Final = frozenset({"COMPLETED", "CANCELLED"})  # the statuses of backfills that have ended


class Paused(msgspec.Struct, frozen=True):
    """The pause of a time trigger. `scope` is WORKFLOW or TRIGGER: all time triggers are paused, or this one."""

    by: object = None
    at: int | None = None
    reason: str | None = None
    scope: str | None = None


class NextTick(msgspec.Struct, frozen=True):
    """A tick to come: the time that the schedule names, and the time at which its instance starts."""

    scheduled_at: int
    due_at: int


class PastTick(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """A tick that has come. `fate` is STARTED, REFUSED, PASSED_OVER or NOT_ARMED. `status` is that of its instance now.

    Ticks in a row that were not started are one entry, with their count and their times from `from_` to `to`.
    """

    fate: str
    scheduled_at: int | None = None
    due_at: int | None = None
    workflow_instance_id: int | None = None
    status: str | None = None
    started_at: int | None = None
    late_ms: int | None = None
    reason: str | None = None
    decided_at: int | None = None
    count: int = 1
    from_: int | None = None
    to: int | None = None


class ScheduleRecord(msgspec.Struct, frozen=True):
    """A time trigger, its next ticks, and its last ticks with the outcome of each.

    `type` is CRON or INTERVAL. `state` is ARMED, PAUSED, DISABLED, INACTIVE or ENDED.
    """

    trigger_id: str
    type: str
    timezone: str
    state: str
    workflow_id: str = ""
    workflow_version_id: int | None = None
    cron: str | None = None
    interval: str | None = None
    interval_ms: int | None = None
    anchor_at: int | None = None
    start_at: int | None = None
    catch_up: str = "LATEST"
    fuzzy_max_delay_ms: int = 0
    paused: Paused | None = None
    armed_at: int | None = None
    disarmed_at: int | None = None
    next: list[NextTick] = []
    last: list[PastTick] = []
    started: int = 0
    refused: int = 0
    passed_over: int = 0
    not_armed: int = 0

    @property
    def times(self) -> str:
        """The times as text: a cron expression, or an interval."""
        return self.cron or f"every {self.interval}"


class ScheduleList(msgspec.Struct, frozen=True):
    """The time triggers of a workflow, in the order of the definition."""

    workflow_id: str
    schedules: list[ScheduleRecord]


class ScheduleChange(msgspec.Struct, frozen=True):
    """The outcome of a pause or a resumption. UNCHANGED: it was so before."""

    request_id: str
    workflow_id: str
    status: str
    trigger_id: str | None = None
    message: str | None = None


class PreviewedTime(msgspec.Struct, frozen=True):
    """A time of a schedule, in UTC and in its own zone. `note` says if a change of the clock has moved it."""

    scheduled_at: int
    utc: str
    local: str
    note: str | None = None


class Preview(msgspec.Struct, frozen=True):
    """The next times of a schedule."""

    timezone: str
    times: list[PreviewedTime]
    type: str | None = None
    cron: str | None = None
    interval: str | None = None


class Slot(msgspec.Struct, frozen=True):
    """A scheduled time of a backfill. `is_existing`: it has an instance, so none is started."""

    scheduled_at: int
    local: str = ""
    is_existing: bool = False
    workflow_instance_id: int | None = None


class BackfillPlan(msgspec.Struct, frozen=True):
    """What a backfill would start. `slots` are the first and the last of them.

    `existing` is None if there are too many to examine each.
    """

    backfill_id: str
    total: int
    slots: list[Slot]
    existing: int | None = None
    workflow_id: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """A scheduled time of a backfill whose start was refused, and why."""

    scheduled_at: int
    reason: str | None = None


class BackfillRecord(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """A backfill: its period, its schedule, and its progress. `counts` are its instances by status.

    `status` is RUNNING, PAUSED, CANCELLED or COMPLETED. `decided` is the number of scheduled times that were started,
    were refused, or had an instance before. Answers to changes have an `outcome`: UNCHANGED if it was so before.
    """

    workflow_id: str
    backfill_id: str
    status: str
    total: int
    from_: int
    to: int
    reason: str | None = None
    by: object = None
    started_at: int | None = None
    ended_at: int | None = None
    modified_at: int | None = None
    modified_by: object = None
    order: str = "oldest"
    concurrency: int = 1
    rerun: bool = False
    trigger_id: str | None = None
    schedule: Object = {}
    params: Object | None = None
    decided: int = 0
    started: int = 0
    existing: int = 0
    refused: int = 0
    slots_left: int = 0
    position: int | None = None
    counts: dict[str, int] = {}
    refusals: list[Refusal] = []
    request_id: str | None = None
    outcome: str | None = None
    message: str | None = None

    @property
    def timezone(self) -> str:
        """The zone of its times."""
        return str(self.schedule.get("timezone") or "UTC")

    @property
    def is_over(self) -> bool:
        """Whether the backfill has ended."""
        return self.status in OVER

    @property
    def ended(self) -> int:
        """How many scheduled times need no more work: existing before, refused, or with an instance that has ended."""
        ended = self.existing + self.refused + sum(self.counts.get(status, 0) for status in TERMINAL)
        return min(ended, self.total)  # when it is run again, its own instances existed before

    @property
    def unsuccessful(self) -> int:
        """How many scheduled times were refused, or have an instance that has ended otherwise than SUCCEEDED."""
        return self.refused + sum(self.counts.get(status, 0) for status in TERMINAL if status != "SUCCEEDED")
