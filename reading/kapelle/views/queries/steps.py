"""Steps and their attempts."""

import sqlite3

from kapelle.schemas.contracts import StepStatus
from kapelle.views.queries.artifacts import Fans
from kapelle.views.queries.breakpoints import held_by, pause_text
from kapelle.views.queries.permits import permits_of, wait_text
from kapelle.views.queries.records import Record, entry_record, step_record
from kapelle.views.queries.timelines import Entry, entries

WITH_TYPE = """SELECT a.*, t.type, r.breakpoints, (
        SELECT group_concat(d.name, ', ') FROM dependencies d WHERE d.workflow_id = a.workflow_id
        AND d.instance_id = a.instance_id AND d.step_id = a.step_id AND d.sequence IS NULL
    ) AS lacking FROM attempts a
    LEFT JOIN tasks t USING (workflow_id, instance_id, run_id, step_id, iteration, attempt)
    LEFT JOIN runs r ON r.workflow_id = a.workflow_id AND r.instance_id = a.instance_id AND r.run_id = a.run_id
    WHERE a.workflow_id = ?1 AND a.instance_id = ?2"""


def latest_of_each(
    connection: sqlite3.Connection, workflow_id: str, instance_id: int, run_id: int | None = None
) -> list[Record]:
    """The latest attempt of each step, of one run or over all runs, in the order in which they began."""
    rows = connection.execute(
        f"{WITH_TYPE} AND (?3 IS NULL OR a.run_id = ?3) ORDER BY a.run_id, a.iteration, a.attempt",
        (workflow_id, instance_id, run_id),
    ).fetchall()
    latest = {row["step_id"]: row for row in rows}
    ordered = sorted(latest.values(), key=lambda row: (row["run_id"], row["sequence"]))
    fans = Fans(connection, workflow_id, instance_id)
    return [step_record(row) | _held(connection, row) | {"artifacts": fans.artifacts(row) or {}} for row in ordered]


def _held(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    """What holds an attempt before it starts: breakpoints, or the permits that it needs."""
    if row["status"] == StepStatus.PAUSED:
        return {"waiting_for": pause_text(row), "breakpoints": held_by(row)}
    if row["status"] == StepStatus.WAITING_FOR_PERMITS:
        needed = permits_of(connection, row)
        return {"waiting_for": wait_text(needed), "permits": needed}
    return {}


def attempt(
    connection: sqlite3.Connection, at: tuple[str, int, str], run_id: int | None = None, number: int | None = None
) -> Record | None:
    """An attempt at a step with its timeline: the latest, of the latest run, unless others are named."""
    workflow_id, instance_id, step_id = at
    row = connection.execute(
        f"""{WITH_TYPE} AND a.step_id = ?3 AND (?4 IS NULL OR a.run_id = ?4) AND (?5 IS NULL OR a.attempt = ?5)
        ORDER BY a.run_id DESC, a.iteration DESC, a.attempt DESC LIMIT 1""",
        (workflow_id, instance_id, step_id, run_id, number),
    ).fetchone()
    if row is None:
        return None

    def is_of_it(entry: Entry) -> bool:
        return (entry.run_id, entry.step_id) == (row["run_id"], step_id) and entry.attempt in (None, row["attempt"])

    timeline = entries(connection, workflow_id, instance_id, is_of_it)
    artifacts = Fans(connection, workflow_id, instance_id).artifacts(row, in_full=True) or {}
    record = step_record(row) | _held(connection, row)
    return {**record, "artifacts": artifacts, "timeline": [entry_record(entry) for entry in timeline]}
