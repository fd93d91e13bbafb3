"""Schedules through the client: each call as data, and the same methods for both kinds of clients."""

from datetime import date
from typing import TypedDict, Unpack

from kapelle.client import schedule_results as r
from kapelle.client.calls import Call, members, read, write
from kapelle.client.signals import AsyncSender, Sender

Moment = int | str | date  # milliseconds since 1970, an ISO date or date-time, or a date or a datetime


class PreviewOptions(TypedDict, total=False):
    """The times of a preview: a cron expression, or an interval such as `90m`."""

    cron: str
    every: str | int
    timezone: str


# Calls ----------------------------------------------------------------------------------------------------------------


def moment(given: Moment | None) -> int | str | None:
    """A moment as the API reads it."""
    return given.isoformat() if isinstance(given, date) else given


def _list(workflow_id: str, *, with_disarmed: bool) -> Call[r.ScheduleList]:
    flag = "true" if with_disarmed else None
    return read(r.ScheduleList, "workflows", workflow_id, "schedules", with_disarmed=flag)


def _get(workflow_id: str, trigger_id: str, upcoming: int | None, last: int | None) -> Call[r.ScheduleRecord]:
    return read(r.ScheduleRecord, "workflows", workflow_id, "schedules", trigger_id, next=upcoming, last=last)


def _act(
    workflow_id: str, action: str, trigger_id: str | None, *, reason: str = "", key: str | None
) -> Call[r.ScheduleChange]:
    path = ("workflows", workflow_id, "schedules", "actions", action)
    body = members(trigger_id=trigger_id, reason=reason or None) or None
    return write("PUT", r.ScheduleChange, *path, body=body, key=key)


def _preview(since: Moment | None, count: int | None, options: PreviewOptions) -> Call[r.Preview]:
    return read(
        r.Preview,
        "schedules",
        "preview",
        cron=options.get("cron"),
        interval=options.get("every"),
        timezone=options.get("timezone"),
        count=count,
        **{"from": moment(since)},
    )


class Schedules:
    """Time triggers of workflows: their ticks, and pausing them."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def list(self, workflow_id: str, *, with_disarmed: bool = False) -> r.ScheduleList:
        """The time triggers of a workflow, with the next five and the last five ticks of each.

        They are those of the active version, or else of the latest. `with_disarmed` adds those of earlier versions.
        """
        return self._client.send(_list(workflow_id, with_disarmed=with_disarmed))

    def get(
        self, workflow_id: str, trigger_id: str, *, upcoming: int | None = None, last: int | None = None
    ) -> r.ScheduleRecord:
        """A time trigger, with this many ticks to come and this many last ticks."""
        return self._client.send(_get(workflow_id, trigger_id, upcoming, last))

    def pause(
        self, workflow_id: str, trigger_id: str | None = None, *, reason: str = "", request_id: str | None = None
    ) -> r.ScheduleChange:
        """Start no ticks of one time trigger, or of the whole workflow with its later versions, until the resumption.

        Ticks that come in between are not caught up. A backfill can start them.
        """
        return self._client.send(_act(workflow_id, "pause", trigger_id, reason=reason, key=request_id))

    def resume(
        self, workflow_id: str, trigger_id: str | None = None, *, request_id: str | None = None
    ) -> r.ScheduleChange:
        """Start ticks again, from now on."""
        return self._client.send(_act(workflow_id, "resume", trigger_id, key=request_id))

    def preview(
        self, *, since: Moment | None = None, count: int | None = None, **of: Unpack[PreviewOptions]
    ) -> r.Preview:
        """The next times of a cron expression or an interval. Nothing is scheduled."""
        return self._client.send(_preview(since, count, of))


class AsyncSchedules:
    """The same as `Schedules`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def list(self, workflow_id: str, *, with_disarmed: bool = False) -> r.ScheduleList:
        """The time triggers of a workflow, with the next five and the last five ticks of each.

        They are those of the active version, or else of the latest. `with_disarmed` adds those of earlier versions.
        """
        return await self._client.send(_list(workflow_id, with_disarmed=with_disarmed))

    async def get(
        self, workflow_id: str, trigger_id: str, *, upcoming: int | None = None, last: int | None = None
    ) -> r.ScheduleRecord:
        """A time trigger, with this many ticks to come and this many last ticks."""
        return await self._client.send(_get(workflow_id, trigger_id, upcoming, last))

    async def pause(
        self, workflow_id: str, trigger_id: str | None = None, *, reason: str = "", request_id: str | None = None
    ) -> r.ScheduleChange:
        """Start no ticks of one time trigger, or of the whole workflow with its later versions, until the resumption.

        Ticks that come in between are not caught up. A backfill can start them.
        """
        return await self._client.send(_act(workflow_id, "pause", trigger_id, reason=reason, key=request_id))

    async def resume(
        self, workflow_id: str, trigger_id: str | None = None, *, request_id: str | None = None
    ) -> r.ScheduleChange:
        """Start ticks again, from now on."""
        return await self._client.send(_act(workflow_id, "resume", trigger_id, key=request_id))

    async def preview(
        self, *, since: Moment | None = None, count: int | None = None, **of: Unpack[PreviewOptions]
    ) -> r.Preview:
        """The next times of a cron expression or an interval. Nothing is scheduled."""
        return await self._client.send(_preview(since, count, of))
