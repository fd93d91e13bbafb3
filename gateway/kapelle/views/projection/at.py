"""Where an event stands, and the rows that every event may leave there: timeline entries, outcomes of requests."""

from typing import Any, Final

import msgspec

from kapelle.processors.routes import WORKFLOW_EVENTS, ids_of
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.journal import Entry
from kapelle.views.changes import Cell, Put

# How far a run is. Of two that are told in any order, the greater one holds.
RANKS: Final = {InstanceStatus.CREATED: 1, InstanceStatus.IN_PROGRESS: 2, InstanceStatus.PAUSED: 2}
RANK_ENDED: Final = 3
GRADES_PER_RUN: Final = 4

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
        workflow_id, instance_id = ids_of(entry.key)
        return cls(entry.stream, entry.partition, entry.offset, workflow_id, instance_id)

    @property
    def place(self) -> dict[str, Cell]:
        """The key of rows that stand for this very event."""
        return {"stream": self.stream, "partition": self.partition, "position": self.offset}


_encode = msgspec.json.Encoder().encode


def as_json(value: Any) -> str:
    """A value as compact JSON."""
    return _encode(value).decode()


def rank_of(status: InstanceStatus) -> int:
    """How far a run with this status is."""
    return RANKS.get(status, RANK_ENDED)


def run_cells(at: At, run_id: int, instance_id: int | None = None) -> dict[str, Cell]:
    """The key of a run."""
    found = at.instance_id if instance_id is None else instance_id
    return {"workflow_id": at.workflow_id, "instance_id": found, "run_id": run_id}


def status_puts(at: At, run_id: int, status: InstanceStatus, instance_id: int | None = None) -> list[Put]:
    """A run has a status, and so has its instance, unless later ones are known."""
    rank = rank_of(status)
    run = run_cells(at, run_id, instance_id)
    whole = {"workflow_id": run["workflow_id"], "instance_id": run["instance_id"]}
    grade = run_id * GRADES_PER_RUN + rank
    return [
        Put("runs", run, {"status": status.value, "rank": rank}, guard="rank"),
        Put("instances", whole, {"run_id": run_id, "status": status.value, "grade": grade}, guard="grade"),
    ]


class Moment(msgspec.Struct, frozen=True, gc=False):
    """What a timeline entry is about."""

    at_ms: int
    type: str
    run_id: int | None = None
    instance_id: int | None = None
    step_id: str | None = None
    attempt: int | None = None
    iteration: int | None = None
    phase: int = PHASE_RUN


def entry_put(at: At, moment: Moment, **body: Any) -> Put:
    """An entry of the timeline of an instance. What is empty is left out."""
    cells: dict[str, Cell] = {
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id if moment.instance_id is None else moment.instance_id,
        "run_id": moment.run_id,
        "at_ms": moment.at_ms,
        "phase": moment.phase,
        "type": moment.type,
        "step_id": moment.step_id,
        "attempt": moment.attempt,
        "iteration": moment.iteration,
        "body": as_json({name: value for name, value in body.items() if value}),
    }
    return Put("timeline", at.place, cells)


def outcome_put(at: At, event: Any, instance_id: int | None = None, **body: Any) -> Put:
    """What came of a request."""
    cells: dict[str, Cell] = {
        "request_id": event.request_id,
        "workflow_id": at.workflow_id,
        "instance_id": at.instance_id if instance_id is None else instance_id,
        "kind": type(event).__name__,
        "body": as_json(body),
        "at_ms": event.at_ms,
    }
    return Put("requests", at.place, cells)
