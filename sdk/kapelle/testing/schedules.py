"""Schedules and backfills in tests: which ticks have come, pausing them, and filling a period.

engine.push(Workflow("etl").at("0 5 * * *", timezone="Europe/Berlin"))
engine.advance(days=3)                                   # three ticks, without waiting
[first, second, third] = engine.schedules("etl").ticks()
backfill = engine.backfill("etl", "2026-01-01", "2026-01-31", concurrency=8)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol, TypedDict

import msgspec

from kapelle.client.parameters import params_json
from kapelle.processors.calendar import Schedule, schedule_of, times_of
from kapelle.processors.moments import utc_text
from kapelle.processors.periods import ZONE_DEFAULT, on_the_clock, period_asked, schedule_asked
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.processors.workflows.slots import backfill_id_of
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.testing.breakpoints import Request

Moment = int | str  # milliseconds since 1970, an ISO date or an ISO date-time


class Scheduled(Protocol):
    """The engine, as far as schedules need it."""

    author: str

    def request(self, stream: Stream, key: str, command: Request) -> None: ...

    def request_id(self) -> str: ...

    def events(self, stream: Stream, key: str | None = None) -> list[Contract]: ...

    def state(self, processor: str, key: str) -> WorkflowTables: ...


class Tick(msgspec.Struct, frozen=True):
    """A scheduled time that was decided on: the instance that it has started, or the reason why it has none."""

    scheduled_at_ms: int
    instance_id: int | None = None
    reason: str = ""

    @property
    def time(self) -> str:
        """The scheduled time in UTC: `2026-03-29T01:00:00Z`."""
        return utc_text(self.scheduled_at_ms)


class Schedules:
    """The time triggers of a workflow."""

    def __init__(self, engine: Scheduled, workflow_id: str) -> None:
        self.engine = engine
        self.workflow_id = workflow_id

    @property
    def armed(self) -> dict[str, Schedule]:
        """The time triggers that are armed, by their ids."""
        rows = self.engine.state("workflows", self.workflow_id).schedules.prefix((self.workflow_id,))
        return {trigger_id: schedule_of(row.schedule) for (_, trigger_id), row in rows}

    def ticks(self, trigger_id: str | None = None) -> list[Tick]:
        """The ticks that were started or refused, in their order: of one time trigger, or of all."""
        found = [tick for event in self._ticked(trigger_id) for tick in event.ticks]
        return [Tick(tick.scheduled_at_ms, tick.instance_id, tick.reason) for tick in found]

    def passed_over(self, trigger_id: str | None = None) -> int:
        """How many ticks the catch-up policy did not start."""
        return sum(event.passed_over for event in self._ticked(trigger_id))

    def upcoming(self, count: int = 5, trigger_id: str | None = None) -> list[str]:
        """The next scheduled times in UTC: of one time trigger, or of all."""
        rows = self.engine.state("workflows", self.workflow_id).schedules.prefix((self.workflow_id,))
        found: list[int] = []
        for (_, armed_id), row in rows:
            times, at_ms = times_of(schedule_of(row.schedule)), row.after_ms
            for _ in range(count if trigger_id in (None, armed_id) else 0):
                next_ms = times.next_after(at_ms)
                if next_ms is None:
                    break
                found.append(at_ms := next_ms)
        return [utc_text(at_ms) for at_ms in sorted(found)[:count]]

    def pause(self, trigger_id: str | None = None, reason: str = "") -> None:
        """Start no ticks until the resumption: of one time trigger, or of the workflow. Raises `Refused`."""
        self._send(c.PauseSchedules(self.engine.request_id(), self.engine.author, trigger_id, reason))

    def resume(self, trigger_id: str | None = None) -> None:
        """Start ticks again, from now on. Raises `Refused`."""
        self._send(c.ResumeSchedules(self.engine.request_id(), self.engine.author, trigger_id))

    def _send(self, command: c.PauseSchedules | c.ResumeSchedules) -> None:
        self.engine.request(WORKFLOW_COMMANDS, self.workflow_id, command)

    def _ticked(self, trigger_id: str | None) -> list[c.ScheduleTicked]:
        events = self.engine.events(WORKFLOW_EVENTS, self.workflow_id)
        ticked = [event for event in events if isinstance(event, c.ScheduleTicked)]
        return [event for event in ticked if trigger_id in (None, event.trigger_id)]


class BackfillOptions(TypedDict, total=False):
    """Options of a backfill. Without `every`, `cron` and `trigger_id`, the times are those of the only time trigger."""

    every: str | int
    cron: str
    trigger_id: str
    timezone: str
    params: Mapping[str, object]
    concurrency: int
    is_newest_first: bool
    is_rerun: bool
    backfill_id: str


class BackfillHandle:
    """A backfill."""

    def __init__(self, engine: Scheduled, workflow_id: str, backfill_id: str) -> None:
        self.engine = engine
        self.workflow_id = workflow_id
        self.id = backfill_id

    @property
    def status(self) -> c.BackfillStatus:
        """RUNNING, PAUSED, CANCELLED or COMPLETED."""
        row = self.engine.state("workflows", self.workflow_id).backfills.get((self.workflow_id, self.id))
        if row is None:
            raise AssertionError(f"Expected the backfill {self.id!r} of {self.workflow_id!r} to exist, but it does not")
        return row.status

    @property
    def instances(self) -> list[int]:
        """The numbers of the instances that it has started, in the order of their starts."""
        events = self.engine.events(WORKFLOW_EVENTS, self.workflow_id)
        return [one.instance_id for one in events if isinstance(one, c.InstanceCreated) and one.backfill_id == self.id]

    def slots(self) -> list[Tick]:
        """The scheduled times that were decided on, in the order of the decisions."""
        events = self.engine.events(WORKFLOW_EVENTS, self.workflow_id)
        mine = [one for one in events if isinstance(one, c.BackfillProgressed) and one.backfill_id == self.id]
        return [Tick(slot.scheduled_at_ms, slot.instance_id, slot.reason) for one in mine for slot in one.slots]

    def pause(self, reason: str = "") -> None:
        """Start no more instances. Raises `Refused`."""
        self._act(c.BackfillAction.PAUSE, reason)

    def resume(self) -> None:
        """Continue after a pause. Raises `Refused`."""
        self._act(c.BackfillAction.RESUME)

    def cancel(self, reason: str = "", *, stop_running: bool = False) -> None:
        """End it; with `stop_running`, stop its instances too. Raises `Refused`."""
        self._act(c.BackfillAction.CANCEL, reason, is_stopping=stop_running)

    def _act(self, action: c.BackfillAction, reason: str = "", *, is_stopping: bool = False) -> None:
        request_id, author = self.engine.request_id(), self.engine.author
        command = c.ActOnBackfill(request_id, author, self.id, action=action, is_stopping=is_stopping, reason=reason)
        self.engine.request(WORKFLOW_COMMANDS, self.workflow_id, command)


def start_backfill(
    engine: Scheduled, workflow_id: str, first: Moment, last: Moment, options: BackfillOptions
) -> BackfillHandle:
    """Start a backfill, or continue the one that has this id."""
    armed = Schedules(engine, workflow_id).armed
    schedule, trigger_id, period = _times(armed, (first, last), options)
    command = c.StartBackfill(
        request_id=engine.request_id(),
        author=engine.author,
        backfill_id=options.get("backfill_id", ""),
        schedule=schedule.json(),
        trigger_id=trigger_id,
        from_ms=period[0],
        to_ms=period[1],
        is_newest_first=options.get("is_newest_first", False),
        concurrency=options.get("concurrency", 1),
        is_rerun=options.get("is_rerun", False),
        run_params=json.dumps(params_json(options.get("params", {}))),
    )
    if not command.backfill_id:
        command = msgspec.structs.replace(command, backfill_id=backfill_id_of(workflow_id, command))
    engine.request(WORKFLOW_COMMANDS, workflow_id, command)
    return BackfillHandle(engine, workflow_id, command.backfill_id)


def _times(
    armed: Mapping[str, Schedule], period: tuple[Moment, Moment], of: BackfillOptions
) -> tuple[Schedule, str | None, tuple[int, int]]:
    if "every" in of or "cron" in of:
        zone = of.get("timezone", ZONE_DEFAULT)
        from_ms, to_ms = period_asked(*period, zone)
        schedule = schedule_asked(of.get("cron"), of.get("every"), zone, anchor_ms=from_ms)
        return on_the_clock(schedule), None, (from_ms, to_ms)
    trigger_id = of.get("trigger_id") or (next(iter(armed)) if len(armed) == 1 else "")
    if trigger_id not in armed:
        names = ", ".join(armed) or "none"
        raise AssertionError(f"Expected every, cron or one time trigger ({names}), but found {trigger_id!r}")
    schedule = armed[trigger_id]
    return schedule, trigger_id, period_asked(*period, of.get("timezone", schedule.timezone))
