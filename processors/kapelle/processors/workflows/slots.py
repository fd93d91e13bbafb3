"""The identity of ticks and of the slots of a backfill. It is a pure function, so the same slot never starts twice.

A tick is a scheduled time of a time trigger: workflow, trigger, time. The slots of a backfill are

| backfill | a slot has the request id of |
|---|---|
| of a time trigger, without parameters | the tick, so a tick that was started is not started again |
| with times or parameters of its own | the slot of every other backfill with these parameters |
| a rerun | the slot of this backfill alone |
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5, sha256
from typing import Final, Protocol
from uuid import UUID

from kapelle.processors.calendar import Times

BACKFILL_ID_CHARS: Final = 12
NO_PARAMS: Final = "{}"


class Period(Protocol):
    """What is asked of a backfill: its row, its command and its event have these fields."""

    @property
    def schedule(self) -> str: ...
    @property
    def trigger_id(self) -> str | None: ...
    @property
    def from_ms(self) -> int: ...
    @property
    def to_ms(self) -> int: ...
    @property
    def is_newest_first(self) -> bool: ...
    @property
    def is_rerun(self) -> bool: ...
    @property
    def run_params(self) -> str: ...


def _uuid(identity: str) -> str:
    return str(UUID(bytes=md5(identity.encode(), usedforsecurity=False).digest(), version=3))


def tick_request_id(workflow_id: str, trigger_id: str, scheduled_at_ms: int) -> str:
    """The request id of the start of a tick."""
    return _uuid(f"{workflow_id}/tick/{trigger_id}/{scheduled_at_ms}")


def slot_request_id(workflow_id: str, backfill_id: str, period: Period, scheduled_at_ms: int) -> str:
    """The request id of the start of a slot of a backfill."""
    if period.is_rerun:
        return _uuid(f"{workflow_id}/rerun/{backfill_id}/{scheduled_at_ms}")
    if period.trigger_id is not None and period.run_params == NO_PARAMS:
        return tick_request_id(workflow_id, period.trigger_id, scheduled_at_ms)
    return _uuid(f"{workflow_id}/slot/{period.run_params}/{scheduled_at_ms}")


def backfill_id_of(workflow_id: str, period: Period) -> str:
    """The id of a backfill that was given none: the same request has the same id."""
    asked = (workflow_id, period.schedule, period.trigger_id or "", period.from_ms, period.to_ms, period.run_params)
    text = "/".join(map(str, (*asked, period.is_rerun)))
    return sha256(text.encode()).hexdigest()[:BACKFILL_ID_CHARS]


def first_position(period: Period) -> int:
    """The position before the first slot."""
    return period.to_ms + 1 if period.is_newest_first else period.from_ms - 1


def slots_after(position_ms: int, period: Period, times: Times) -> Iterator[int]:
    """The slots of a period from a position on, in the order in which they are started."""
    if period.is_newest_first:
        slot = times.last_upto(position_ms - 1)
        while slot is not None and slot >= period.from_ms:
            yield slot
            slot = times.last_upto(slot - 1)
    else:
        slot = times.next_after(position_ms)
        while slot is not None and slot <= period.to_ms:
            yield slot
            slot = times.next_after(slot)


def count_slots(period: Period, times: Times) -> int:
    """How many slots a period has."""
    return times.count(period.from_ms - 1, period.to_ms)
