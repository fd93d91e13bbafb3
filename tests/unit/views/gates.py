"""Histories of what holds steps: events of breakpoints and paused attempts, and the real processor of permits."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from kapelle.processors.keys import tag_key
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_INTERNAL, RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import Criticality, StepStatus
from kapelle.testing.engine import Engine
from kapelle.topology.journal import Entry
from kapelle.views.batches import Batch
from kapelle.views.database import Database
from kapelle.views.projection import project
from tests.unit.views.histories import written

PAUSED, WAITS = StepStatus.PAUSED, StepStatus.WAITING_FOR_PERMITS


def entries(stream: str, key: str, events: Iterable[Contract], *, first: int = 0, partition: int = 0) -> list[Entry]:
    """Events of one key as they stand in the log."""
    return [Entry(stream, partition, first + at, key, event, 0) for at, event in enumerate(events)]


def of_runs(key: str, *events: Contract, first: int = 0) -> list[Entry]:
    return entries(RUN_EVENTS.name, key, events, first=first)


def of_workflows(key: str, *events: Contract, first: int = 0) -> list[Entry]:
    return entries(WORKFLOW_EVENTS.name, key, events, first=first)


def breakpoint_of(step_id: str = "load", *, author: str = "ann", at_ms: int = 5, **precision: int) -> c.Breakpoint:
    return c.Breakpoint(step_id=step_id, author=author, at_ms=at_ms, **precision)


def was_set(workflow_id: str, breakpoint_: c.Breakpoint) -> c.BreakpointSet:
    return c.BreakpointSet(
        request_id="r", workflow_id=workflow_id, breakpoint=breakpoint_, generation=1, at_ms=breakpoint_.at_ms
    )


def was_deleted(workflow_id: str, breakpoint_: c.Breakpoint, *, resume: bool = True) -> c.BreakpointDeleted:
    return c.BreakpointDeleted(
        request_id="r",
        author="bob",
        workflow_id=workflow_id,
        breakpoint=breakpoint_,
        generation=2,
        resume=resume,
        at_ms=9,
    )


def started(key: str, *breakpoints: c.Breakpoint, parent: c.Parent | None = None) -> c.RunStarted:
    workflow_id, _, instance = key.rpartition("/")
    return c.RunStarted(
        workflow_id=workflow_id,
        instance_id=int(instance),
        run_id=1,
        request_id="r",
        version=3,
        digest="d",
        initiator='{"type":"MANUAL"}',
        params="{}",
        run_params="{}",
        step_run_params="{}",
        run_properties="{}",
        correlation_id="c",
        timeout_at_ms=10**12,
        at_ms=1,
        parent=parent,
        breakpoints=breakpoints,
    )


def changed(status: StepStatus, *, step_id: str = "load", at_ms: int = 7, **more: Any) -> c.StepChanged:
    about = {"attempt": 1, "iteration": 1, "sequence": 1, **more}
    return c.StepChanged(run_id=1, step_id=step_id, statuses=(status,), at_ms=at_ms, **about)


def batched(found: Iterable[Entry]) -> Database:
    """A view to which these entries were written in one batch."""
    database = Database(None, "any")
    with database.writing() as connection:
        batch = Batch(connection)
        for entry in found:
            project(batch, entry)
        batch.flush()
    return database


def both(found: list[Entry]) -> Iterator[Database]:
    """A view of these entries, written one by one and in one batch."""
    yield written(found)
    yield batched(found)


# Permits --------------------------------------------------------------------------------------------------------------


def holder(number: int, *, step_id: str = "train") -> c.PermitHolder:
    return c.PermitHolder(key=f"etl/{number}", run_id=1, step_id=step_id, attempt=1, iteration=1)


def limit(engine: Engine, tag: str, most: int, *, author: str = "ann", extra: str = "{}") -> None:
    command = c.SetLimit(request_id=engine.request_id(), author=author, max=most, extra=extra)
    engine.send(PERMIT_COMMANDS, tag_key(tag), command)


def unlimit(engine: Engine, tag: str) -> None:
    engine.send(PERMIT_COMMANDS, tag_key(tag), c.RemoveLimit(request_id=engine.request_id(), author="ann"))


def request(engine: Engine, limited: str, number: int, *, most: int | None = None, **more: Any) -> None:
    about = {"workflow_id": "etl", "criticality": Criticality.MEDIUM, **more}
    asked = c.RequestPermit(holder=holder(number), max=most, **about)
    engine.send(PERMIT_INTERNAL, limited, asked)


def give_back(engine: Engine, limited: str, number: int) -> None:
    engine.send(PERMIT_INTERNAL, limited, c.ReturnPermit(holder=holder(number)))


def busy_limits(seed: int, operations: int = 120) -> Engine:
    """Limits that are set, changed and removed while attempts ask for permits and give them back."""
    engine, chance = Engine(partitions=2), random.Random(seed)
    keys = ["tag/a", "tag/b", "workflow/etl", "tree/etl/1", "tree/etl/2"]
    for _ in range(operations):
        key, number = chance.choice(keys), chance.randrange(1, 13)
        match chance.randrange(6):
            case 0:
                limit(engine, chance.choice("ab"), chance.randrange(4))
            case 1 if chance.random() < 0.3:
                unlimit(engine, chance.choice("ab"))
            case 2 | 3:
                most = None if key.startswith("tag") else 2
                word = chance.choice([Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW])
                request(engine, key, number, workflow_id=f"wf-{number % 3}", criticality=word, most=most)
            case _:
                give_back(engine, key, number)
        engine.advance(chance.randrange(5_000))
    return engine
