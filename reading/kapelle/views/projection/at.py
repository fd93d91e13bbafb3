"""Where an event stands, and the rows that every event may leave there: timeline entries, outcomes of requests."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.wiring import WORKFLOW_EVENTS, ids_of
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.journal import Entry
from kapelle.views.projection.news import request_news
from kapelle.views.rows import Cells, Rows

# How far a run is. Of two that are told in any order, the greater one holds.
RANKS: Final = {InstanceStatus.CREATED: 1, InstanceStatus.IN_PROGRESS: 2, InstanceStatus.PAUSED: 2}
RANK_ENDED: Final = 3
# The rank and the word of each status.
STANDINGS: Final = {status: (RANKS.get(status, RANK_ENDED), status.value) for status in InstanceStatus}
KEYS_CACHED: Final = 4_096  # most events of an instance stand together

# What comes first of things that happen in the same millisecond and stand on different streams.
PHASE_BEFORE: Final = 0
PHASE_RUN: Final = 1
PHASE_AFTER: Final = 2


class At(msgspec.Struct, frozen=True, gc=False):
    """The place of an event, and whose it is. `instance_id` is None for events of a workflow as a whole."""

    stream: str
    partition: int
    offset: int
    workflow_id: str
    instance_id: int | None

    @classmethod
    def of(cls, entry: Entry) -> "At":
        """The place of an entry. Events of workflows are keyed by workflow, all others by instance."""
        if entry.stream == WORKFLOW_EVENTS.name:
            return cls(entry.stream, entry.partition, entry.offset, entry.key, None)
        return cls(entry.stream, entry.partition, entry.offset, *_ids_of(entry.key))


_ids_of = lru_cache(KEYS_CACHED)(ids_of)
_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    """A value as compact JSON."""
    return _encode(value).decode()


class Moment(msgspec.Struct, frozen=True, gc=False):
    """What a timeline entry is about. Events of runs know their instance; those of workflows must name it."""

    at_ms: int
    type: str
    run_id: int | None = None
    instance_id: int | None = None
    step_id: str | None = None
    attempt: int | None = None
    iteration: int | None = None
    phase: int = PHASE_RUN


def tell(rows: Rows, at: At, moment: Moment, body: msgspec.Raw) -> None:
    """Add an entry to the timeline of an instance."""
    instance_id = at.instance_id if moment.instance_id is None else moment.instance_id
    rows.tell(
        (at.workflow_id, instance_id, moment.at_ms, at.stream, at.partition),
        (
            at.offset,
            moment.run_id,
            moment.phase,
            moment.type,
            moment.step_id,
            moment.attempt,
            moment.iteration,
            body,
        ),
    )


def body_of(**body: Any) -> msgspec.Raw:
    """What an entry tells. What is empty is left out."""
    return msgspec.Raw(_encode({name: value for name, value in body.items() if value}))


def outcome(rows: Rows, at: At, event: Any, instance_id: int | None = None, **body: Any) -> None:
    """What came of a request."""
    cells: Cells = {
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id if instance_id is None else instance_id,
        "kind": type(event).__name__,
        "body": as_json(body),
        "at_ms": event.at_ms,
    }
    rows.put("requests", (event.request_id, at.stream, at.partition, at.offset), cells)
    rows.news(request_news(event.request_id))
