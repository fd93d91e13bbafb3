"""Instances one by one, and their runs. Lists of them are in `instance_lists`."""

import sqlite3
from functools import partial
from typing import Final

from kapelle.views.queries.pages import Listing, Page, PageRequest, page_of, place_of
from kapelle.views.queries.records import OF_CHILD, Record, entry_record, instance_record
from kapelle.views.queries.timelines import entries
from kapelle.views.rows import Key

# Iterations and rounds are hidden with the workflow that they belong to.
HAS_HOME: Final = """(i.home_workflow IS NULL OR EXISTS (
    SELECT 1 FROM instances h
    WHERE h.workflow_id = i.home_workflow AND h.instance_id = i.home_instance AND h.created_at_ms IS NOT NULL
))"""


def run(connection: sqlite3.Connection, workflow_id: str, instance_id: int, run_id: int | None = None) -> Record | None:
    """One run of an instance, the latest if none is named; None if there is no such run."""
    row = connection.execute(
        f"""SELECT r.*, {OF_CHILD} FROM runs r
        JOIN instances i ON i.workflow_id = r.workflow_id AND i.instance_id = r.instance_id
        WHERE r.workflow_id = ?1 AND r.instance_id = ?2 AND r.run_id = COALESCE(?3, i.run_id)
            AND i.created_at_ms IS NOT NULL AND {HAS_HOME}""",  # noqa: S608 - values are bound
        (workflow_id, instance_id, run_id),
    ).fetchone()
    return None if row is None else instance_record(connection, row)


def status_of(connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> tuple[int, str] | None:
    """The latest run of an instance and its status."""
    row = connection.execute(
        "SELECT run_id, status FROM instances WHERE workflow_id = ? AND instance_id = ?", (workflow_id, instance_id)
    ).fetchone()
    return None if row is None else (row["run_id"], row["status"])


def first_of(connection: sqlite3.Connection, inline_id: str) -> tuple[int, str, int, str] | None:
    """The first iteration or round of an id that stands for them, and the step that it is a child of."""
    row = connection.execute(
        f"""SELECT i.instance_id, i.parent_workflow, i.parent_instance, i.parent_step FROM instances i
        WHERE i.workflow_id = ? AND i.parent_step IS NOT NULL AND i.created_at_ms IS NOT NULL AND {HAS_HOME}
        ORDER BY i.instance_id LIMIT 1""",  # noqa: S608 - values are bound
        (inline_id,),
    ).fetchone()
    return None if row is None else (row[0], row[1], row[2], row[3])


def runs(connection: sqlite3.Connection, workflow_id: str, instance_id: int, page: PageRequest) -> Page:
    """The runs of an instance, the latest first."""
    sign, order = (">", "ASC") if page.backwards else ("<", "DESC")
    place = (None,) if page.cursor is None else place_of(page.cursor, tuple[int])
    whole = """FROM runs r JOIN instances i ON i.workflow_id = r.workflow_id AND i.instance_id = r.instance_id
        WHERE r.workflow_id = ?1 AND r.instance_id = ?2 AND r.created_at_ms IS NOT NULL"""
    rows = connection.execute(
        f"SELECT r.*, {OF_CHILD} {whole} AND (?3 IS NULL OR r.run_id {sign} ?3) ORDER BY r.run_id {order} LIMIT ?4",
        (workflow_id, instance_id, *place, page.limit + 1),
    ).fetchall()
    total = _count(connection, f"SELECT COUNT(*) {whole}", (workflow_id, instance_id))
    first = _first(rows, page)
    before = _count(
        connection,
        f"SELECT COUNT(*) {whole} AND r.run_id > ?3",
        (workflow_id, instance_id, first["run_id"] if first else 0),
    )
    listing = Listing(("run_id",), partial(instance_record, connection), total)
    return page_of(rows, page, listing, before if first else 0)


def _first(rows: list[sqlite3.Row], page: PageRequest) -> sqlite3.Row | None:
    """The row that the page begins with."""
    if not rows:
        return None
    return rows[: page.limit][-1] if page.backwards else rows[0]


def _count(connection: sqlite3.Connection, statement: str, values: Key) -> int:
    count: int = connection.execute(statement, values).fetchone()[0]
    return count


def timeline(connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> list[Record]:
    """What happened to an instance, in order: the latest entries, if there are very many."""
    return [entry_record(entry) for entry in entries(connection, workflow_id, instance_id)]
