"""The position of an event, and the rows that any event may write: entries of timelines, outcomes of requests."""

from functools import lru_cache
from typing import Final, Protocol

import msgspec

from kapelle.processors.runs import timeline
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
BODIES_CACHED: Final = 1_024  # most runs and steps have the same entries


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


def as_json(value: object) -> str:
    """A value as compact JSON."""
    return _encode(value).decode()


@lru_cache(BODIES_CACHED)
def _body(body: timeline.Body) -> msgspec.Raw:
    return msgspec.Raw(_encode(body))


def tell(rows: Rows, at: At, entry: timeline.Entry) -> None:
    """Add an entry to the timeline of an instance."""
    instance_id = at.instance_id if entry.instance_id is None else entry.instance_id
    rows.tell(
        (at.workflow_id, instance_id, entry.at_ms, at.stream, at.partition),
        (
            at.offset,
            entry.run_id,
            entry.phase,
            entry.type.value,
            entry.step_id,
            entry.attempt,
            entry.iteration,
            _body(entry.body),
        ),
    )


class Answer(Protocol):
    """An event that answers a request."""

    @property
    def request_id(self) -> str: ...

    @property
    def at_ms(self) -> int: ...


def outcome(rows: Rows, at: At, event: Answer, instance_id: int | None = None, **body: object) -> None:
    """Write the answer to a request."""
    cells: Cells = {
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id if instance_id is None else instance_id,
        "kind": type(event).__name__,
        "body": as_json(body),
        "at_ms": event.at_ms,
    }
    rows.put("requests", (event.request_id, at.stream, at.partition, at.offset), cells)
    rows.news(request_news(event.request_id))
