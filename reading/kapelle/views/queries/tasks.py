"""Tasks: which wait for a worker, the outcome of those that were assigned, and which were cancelled."""

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

OPEN_SCANNED_MAX = 1_000
ORDER = ("urgency", "at_ms", "workflow_id", "instance_id", "step_id")


class TaskFound(msgspec.Struct, frozen=True):
    """A task as it waits."""

    token: str
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt: int
    iteration: int
    type: str
    sub_type: str | None
    params: msgspec.Raw
    idempotency_key: str
    criticality: str
    lease_ms: int
    deadline_at_ms: int


class AttemptFound(msgspec.Struct, frozen=True):
    """Where the attempt of a task stands."""

    token: str
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt: int
    status: str
    worker: str | None
    reason: str | None
    answer: str | None


def waiting(
    connection: sqlite3.Connection, types: Sequence[str], limit: int, without: Collection[str] = ()
) -> list[TaskFound]:
    """Tasks of these types that no worker has: the more urgent first, then the older."""
    rows: list[sqlite3.Row] = []
    for kind in types:  # one by one, so that the index gives the order, however many wait
        rows += connection.execute(
            "SELECT * FROM tasks WHERE is_over = 0 AND type = ? ORDER BY urgency, at_ms LIMIT ?",
            (kind, min(limit + len(without), OPEN_SCANNED_MAX)),
        )
    open_ = [row for row in rows if row["token"] not in without]
    open_.sort(key=lambda row: tuple(row[name] for name in ORDER))
    return [_task(row) for row in open_[:limit]]


def _task(row: sqlite3.Row) -> TaskFound:
    cells = {name: row[name] for name in TaskFound.__struct_fields__ if name != "params"}
    return TaskFound(params=msgspec.Raw(row["params"].encode()), **cells)


def attempts_by(connection: sqlite3.Connection, tokens: Collection[str]) -> dict[str, AttemptFound]:
    """The attempts that have these tokens."""
    marks = ", ".join("?" * len(tokens))
    rows = connection.execute(f"SELECT * FROM attempts WHERE token IN ({marks})", tuple(tokens))  # noqa: S608
    fields = AttemptFound.__struct_fields__
    return {row["token"]: AttemptFound(**{name: row[name] for name in fields}) for row in rows}


def refusals(connection: sqlite3.Connection, tokens: Collection[str], worker: str) -> dict[str, list[tuple[str, str]]]:
    """For each token the refused reports of a worker, as (report, reason), the latest last."""
    marks = ", ".join("?" * len(tokens))
    rows = connection.execute(
        f"SELECT token, report, reason FROM refused_reports WHERE token IN ({marks}) AND worker = ? "  # noqa: S608
        "ORDER BY stream, partition, position",
        (*tokens, worker),
    ).fetchall()
    refused: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        refused.setdefault(row["token"], []).append((row["report"], row["reason"]))
    return refused


def cancelled(connection: sqlite3.Connection, since_ms: int) -> list[tuple[str, str]]:
    """The tasks that are no longer wanted, of those cancelled since a moment: (worker, token)."""
    rows = connection.execute(
        """SELECT a.worker, c.token FROM cancellations c JOIN attempts a ON a.token = c.token
        WHERE c.at_ms >= ? AND a.worker IS NOT NULL ORDER BY c.at_ms""",
        (since_ms,),
    ).fetchall()
    return [(row["worker"], row["token"]) for row in rows]


def open_by_type(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """How many tasks of each type are open."""
    rows = connection.execute(
        "SELECT type, COUNT(*) FROM tasks WHERE is_over = 0 AND type IS NOT NULL GROUP BY type ORDER BY type"
    ).fetchall()
    return [(row[0], row[1]) for row in rows]
