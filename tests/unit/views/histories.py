"""Histories to fold: an engine that was used at random, and what its log holds."""

import random
import sqlite3
from collections.abc import Iterable
from typing import Any

from kapelle.schemas.contracts import Action, Report, RestartPolicy
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal, Entry, Point
from kapelle.views import Views
from kapelle.views.database import Database
from kapelle.views.leaves import write_leaves
from kapelle.views.projection import FOLLOWED, project
from kapelle.views.rows import Cells, Key, Line, Page, Run
from kapelle.views.schema import KEYS, grade_of
from kapelle.views.statements import amend, erase, forget, put_statement, write_labels, write_told

TYPE = "python"
COUNTS = ("counts", "rollups", "backfill_counts")
TABLES = (*KEYS, *COUNTS, "labels", "timeline", "descents", "leaves", "buckets", "pauses")


def step(step_id: str, kind: str = "NoOp", *successors: str) -> dict[str, Any]:
    after = {"transition": {"successors": dict.fromkeys(successors, "true")}} if successors else {}
    return {"step": {"id": step_id, "type": kind, **after}}


def definition(workflow_id: str, *steps: dict[str, Any], **properties: Any) -> dict[str, Any]:
    workflow = {"id": workflow_id, "steps": list(steps) or [step("a", TYPE, "b"), step("b", "NoOp"), step("c", TYPE)]}
    return {"properties": {"owner": "ann", **properties}, "workflow": workflow}


def used_engine(seed: int, operations: int = 40, partitions: int = 3) -> Engine:
    """An engine to which random things were done."""
    chance, engine = random.Random(seed), Engine(partitions=partitions)
    names = [f"wf-{number}" for number in range(3)]
    for name in names:
        rule = chance.choice(["SEQUENTIAL", "PARALLEL", "STRICT_SEQUENTIAL", "LAST_ONLY"])
        engine.push(definition(name, run_strategy=rule))
    runs = [engine.start(chance.choice(names))]
    for _ in range(operations):
        match chance.randrange(7):
            case 0 | 1:
                runs.append(engine.start(chance.choice(names)))
            case 2:
                engine.push(definition(chance.choice(names)))
            case 3:
                chance.choice(runs).stop(chance.choice([Action.STOP, Action.KILL]), "enough")
            case 4:
                chance.choice(runs).restart(RestartPolicy.RESTART_FROM_BEGINNING)
            case 5:
                chance.choice(runs).act(chance.choice("abc"), chance.choice([Action.SKIP, Action.KILL, Action.STOP]))
            case _:
                tasks = engine.tasks()
                if tasks:
                    report = chance.choice([Report.STARTED, Report.SUCCEEDED, Report.USER_ERROR, Report.HEARTBEAT])
                    chance.choice(tasks[-6:]).say(report, message="so it is", worker=chance.choice(["w1", "w2"]))
        if chance.random() < 0.3:
            engine.advance(chance.randrange(120_000))
    return engine


def deleted(engine: Engine, workflow_id: str) -> None:
    """End all of a workflow and delete it."""
    from kapelle.processors.wiring import WORKFLOW_COMMANDS
    from kapelle.schemas import contracts as c

    engine.send(WORKFLOW_COMMANDS, workflow_id, c.TerminateInstances(engine.request_id(), "ann", Action.KILL, ""))
    engine.send(WORKFLOW_COMMANDS, workflow_id, c.DeleteWorkflow(engine.request_id(), "ann"))


class OneByOne:
    """Rows of a view that are written as each change comes, with nothing gathered: what every batch must come to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, table: str, key: Key, cells: Cells, first: Cells | None = None) -> None:
        kept = first or {}
        text = put_statement(table, tuple(cells), tuple(kept), rises=False)
        self._connection.execute(text, (*key, *cells.values(), *kept.values()))

    def stand(self, run: Run, rank: int, status: str) -> None:
        workflow_id, instance_id, run_id = run
        of_run, of_instance = (put_statement(table, (), (), rises=True) for table in ("runs", "instances"))
        self._connection.execute(of_run, (*run, rank, status))
        self._connection.execute(of_instance, (workflow_id, instance_id, grade_of(run_id, rank), run_id, status))

    def tell(self, page: Page, line: Line) -> None:
        write_told(self._connection, {page: [line]})

    def amend(self, table: str, where: Cells, cells: Cells) -> None:
        amend(self._connection, table, where, cells)

    def erase(self, table: str, where: Cells) -> None:
        erase(self._connection, table, where)

    def forget(self, workflow_id: str) -> None:
        forget(self._connection, workflow_id)

    def label(
        self, instance: tuple[str, int], created_at_ms: int | None, version: int, labels: tuple[str, ...]
    ) -> None:
        write_labels(self._connection, [(instance, created_at_ms, version, labels)])

    def leaf(self, at: tuple[str, int, str], cells: Cells) -> None:
        write_leaves(self._connection, {}, {at[:2]: {at[2]: cells}})

    def descend(self, instance: tuple[str, int], ancestors: str, bucket: str) -> None:
        write_leaves(self._connection, {instance: (ancestors, bucket)}, {})

    def news(self, text: str) -> None:
        """Nobody waits."""


def written(entries: Iterable[Entry]) -> Database:
    """A view in memory to which these entries were written one by one."""
    database = Database(None, "any")
    with database.writing() as connection:
        for entry in entries:
            project(OneByOne(connection), entry)
    return database


def entries_of(engine: Engine) -> dict[Point, list[Entry]]:
    """All that the view would follow, partition by partition."""
    follower = EmbeddedJournal(engine.runtime).follow(FOLLOWED, {})
    found: dict[Point, list[Entry]] = {}
    while entries := follower.take(1_000, 0.0):
        for entry in entries:
            found.setdefault((entry.stream, entry.partition), []).append(entry)
    return found


def view_of(engine: Engine) -> Views:
    """A view that has folded all that an engine has written."""
    views = Views(EmbeddedJournal(engine.runtime))
    fold(views)
    return views


def fold(views: Views) -> None:
    """Fold what is there, in this thread."""
    while views.folding.step():
        pass


def dump(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, each in one order. What was counted and is no more leaves a zero, or nothing."""
    with database.reading() as connection:
        found = {
            table: sorted((tuple(row) for row in connection.execute(f"SELECT * FROM {table}")), key=repr)  # noqa: S608
            for table in TABLES
        }
    return {**found, **{table: [row for row in found[table] if row[-1]] for table in COUNTS}}
