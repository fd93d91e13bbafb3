"""Backfills through the client: each call as data, and the same methods for both kinds of clients.

started = kapelle.backfills.start("etl", "2026-01-01", "2026-03-31", every="1d", concurrency=8)
for now in kapelle.backfills.watch("etl", started.backfill_id):
    print(now.ended, "of", now.total)
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal, TypedDict, Unpack

from kapelle.client.calls import Call, Params, members, read, write
from kapelle.client.errors import TimedOut
from kapelle.client.parameters import params_json
from kapelle.client.results import Page
from kapelle.client.schedule_results import BackfillPlan, BackfillRecord
from kapelle.client.schedules import Moment, moment
from kapelle.client.signals import AsyncSender, Sender

Period = tuple[Moment, Moment]

PAUSE_MIN_S: Final = 0.1
PAUSE_MAX_S: Final = 2.0


class BackfillOptions(TypedDict, total=False):
    """Options of a backfill.

    The times are `every` interval, or those of a `cron` expression, or of a time trigger of the workflow. Without any,
    they are those of its only time trigger. With the same `backfill_id`, a backfill is continued.
    """

    every: str | int
    cron: str
    trigger_id: str
    timezone: str
    params: Params
    concurrency: int
    order: Literal["oldest", "newest"]
    backfill_id: str
    rerun: bool  # start also what the schedule, or another backfill, has started before


# Calls ----------------------------------------------------------------------------------------------------------------


def _start(workflow_id: str, period: Period, of: BackfillOptions, key: str | None) -> Call[BackfillRecord]:
    return write("POST", BackfillRecord, *_all(workflow_id), body=_body(period, of), key=key)


def _plan(workflow_id: str, period: Period, of: BackfillOptions) -> Call[BackfillPlan]:
    return write("POST", BackfillPlan, *_all(workflow_id), body={**_body(period, of), "dry_run": True})


def _body(period: Period, of: BackfillOptions) -> dict[str, object]:
    given: dict[str, object] = {name: value for name, value in of.items() if name != "params"}
    params = params_json(of["params"]) if of.get("params") else None
    first, last = period
    return members(**{"from": moment(first)}, to=moment(last), params=params, **given)


def _list(workflow_id: str, limit: int | None, cursor: str | None) -> Call[Page[BackfillRecord]]:
    return read(Page[BackfillRecord], *_all(workflow_id), limit=limit, cursor=cursor)


def _get(workflow_id: str, backfill_id: str) -> Call[BackfillRecord]:
    return read(BackfillRecord, *_all(workflow_id), backfill_id)


def _act(
    at: tuple[str, str], action: str, reason: str, key: str | None, *, stop_running: bool = False
) -> Call[BackfillRecord]:
    workflow_id, backfill_id = at
    body = members(reason=reason or None, stop_running=stop_running or None) or None
    return write("PUT", BackfillRecord, *_all(workflow_id), backfill_id, "actions", action, body=body, key=key)


def _all(workflow_id: str) -> tuple[str, str, str]:
    return "workflows", workflow_id, "backfills"


class Following:
    """What has been seen of a backfill, and how long to wait before looking again."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._until_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._seen: BackfillRecord | None = None
        self._pause_s = PAUSE_MIN_S

    def is_new(self, record: BackfillRecord) -> bool:
        """Whether something has changed since the last look."""
        is_new = record != self._seen
        self._seen = record
        self._pause_s = PAUSE_MIN_S if is_new else min(self._pause_s * 1.5, PAUSE_MAX_S)
        return is_new

    def pause_s(self) -> float:
        """How long to wait before the next look. Raises `TimedOut` if there is no time left."""
        if self._until_s is None:
            return self._pause_s
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            seen = self._seen
            found = "unknown" if seen is None else f"{seen.status}, with {seen.ended} of {seen.total} done"
            what = "the backfill" if seen is None else f"the backfill {seen.backfill_id} of {seen.workflow_id}"
            raise TimedOut(f"Expected {what} to end within {self._timeout_s:g} s, but it is {found}")
        return min(self._pause_s, left_s)


class Backfills:
    """Starting one instance for each scheduled time of a period."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def start(
        self,
        workflow_id: str,
        first: Moment,
        last: Moment,
        *,
        request_id: str | None = None,
        **of: Unpack[BackfillOptions],
    ) -> BackfillRecord:
        """Start a backfill from `first` to `last`, or continue the one with this id.

        A date as `last` includes the whole day. Times that have an instance get no other.
        """
        return self._client.send(_start(workflow_id, (first, last), of, request_id))

    def dry_run(self, workflow_id: str, first: Moment, last: Moment, **of: Unpack[BackfillOptions]) -> BackfillPlan:
        """What `start` would start. Nothing is started."""
        return self._client.send(_plan(workflow_id, (first, last), of))

    def list(self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None) -> Page[BackfillRecord]:
        """The backfills of a workflow, latest first."""
        return self._client.send(_list(workflow_id, limit, cursor))

    def get(self, workflow_id: str, backfill_id: str) -> BackfillRecord:
        """A backfill, with the number of its instances in each status."""
        return self._client.send(_get(workflow_id, backfill_id))

    def pause(
        self, workflow_id: str, backfill_id: str, *, reason: str = "", request_id: str | None = None
    ) -> BackfillRecord:
        """Start no more instances until the resumption. Those that run continue."""
        return self._client.send(_act((workflow_id, backfill_id), "pause", reason, request_id))

    def resume(
        self, workflow_id: str, backfill_id: str, *, reason: str = "", request_id: str | None = None
    ) -> BackfillRecord:
        """Continue a paused backfill."""
        return self._client.send(_act((workflow_id, backfill_id), "resume", reason, request_id))

    def cancel(
        self,
        workflow_id: str,
        backfill_id: str,
        *,
        stop_running: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> BackfillRecord:
        """End a backfill. Instances that run continue, unless they are to be stopped."""
        call = _act((workflow_id, backfill_id), "cancel", reason, request_id, stop_running=stop_running)
        return self._client.send(call)

    def watch(self, workflow_id: str, backfill_id: str, *, timeout_s: float | None = None) -> Iterator[BackfillRecord]:
        """The backfill now, and again whenever something has changed, until it has ended."""
        following = Following(timeout_s)
        while True:
            record = self.get(workflow_id, backfill_id)
            if following.is_new(record):
                yield record
            if record.is_over:
                return
            time.sleep(following.pause_s())

    def wait(self, workflow_id: str, backfill_id: str, *, timeout_s: float | None = None) -> BackfillRecord:
        """Wait until a backfill has ended."""
        for record in self.watch(workflow_id, backfill_id, timeout_s=timeout_s):
            if record.is_over:
                return record
        raise AssertionError("unreachable: watching ends with the end of the backfill")


class AsyncBackfills:
    """The same as `Backfills`, with `await`."""

    def __init__(self, client: AsyncSender) -> None:
        self._client = client

    async def start(
        self,
        workflow_id: str,
        first: Moment,
        last: Moment,
        *,
        request_id: str | None = None,
        **of: Unpack[BackfillOptions],
    ) -> BackfillRecord:
        """Start a backfill from `first` to `last`, or continue the one with this id.

        A date as `last` includes the whole day. Times that have an instance get no other.
        """
        return await self._client.send(_start(workflow_id, (first, last), of, request_id))

    async def dry_run(
        self, workflow_id: str, first: Moment, last: Moment, **of: Unpack[BackfillOptions]
    ) -> BackfillPlan:
        """What `start` would start. Nothing is started."""
        return await self._client.send(_plan(workflow_id, (first, last), of))

    async def list(
        self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[BackfillRecord]:
        """The backfills of a workflow, latest first."""
        return await self._client.send(_list(workflow_id, limit, cursor))

    async def get(self, workflow_id: str, backfill_id: str) -> BackfillRecord:
        """A backfill, with the number of its instances in each status."""
        return await self._client.send(_get(workflow_id, backfill_id))

    async def pause(
        self, workflow_id: str, backfill_id: str, *, reason: str = "", request_id: str | None = None
    ) -> BackfillRecord:
        """Start no more instances until the resumption. Those that run continue."""
        return await self._client.send(_act((workflow_id, backfill_id), "pause", reason, request_id))

    async def resume(
        self, workflow_id: str, backfill_id: str, *, reason: str = "", request_id: str | None = None
    ) -> BackfillRecord:
        """Continue a paused backfill."""
        return await self._client.send(_act((workflow_id, backfill_id), "resume", reason, request_id))

    async def cancel(
        self,
        workflow_id: str,
        backfill_id: str,
        *,
        stop_running: bool = False,
        reason: str = "",
        request_id: str | None = None,
    ) -> BackfillRecord:
        """End a backfill. Instances that run continue, unless they are to be stopped."""
        call = _act((workflow_id, backfill_id), "cancel", reason, request_id, stop_running=stop_running)
        return await self._client.send(call)

    async def watch(
        self, workflow_id: str, backfill_id: str, *, timeout_s: float | None = None
    ) -> AsyncIterator[BackfillRecord]:
        """The backfill now, and again whenever something has changed, until it has ended."""
        following = Following(timeout_s)
        while True:
            record = await self.get(workflow_id, backfill_id)
            if following.is_new(record):
                yield record
            if record.is_over:
                return
            await asyncio.sleep(following.pause_s())

    async def wait(self, workflow_id: str, backfill_id: str, *, timeout_s: float | None = None) -> BackfillRecord:
        """Wait until a backfill has ended."""
        async for record in self.watch(workflow_id, backfill_id, timeout_s=timeout_s):
            if record.is_over:
                return record
        raise AssertionError("unreachable: watching ends with the end of the backfill")
