"""Breakpoints of workflows, and the attempts that are paused."""

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.views.queries.index_pages import Place, Search, page
from kapelle.views.queries.moments import moment_text
from kapelle.views.queries.pages import Page, PageRequest
from kapelle.views.queries.records import Record
from kapelle.views.rows import Key

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
ORDER: Final = ("workflow_id", "step_id", "version", "instance_id", "run_id", "attempt")
PAUSE_ORDER: Final = ("at_ms", "workflow_id", "instance_id", "run_id", "step_id", "iteration", "attempt")
STEP_ORDER: Final = ("at_ms", "workflow_id", "instance_id", "run_id", "iteration", "attempt")
ONE: Final = f"SELECT * FROM breakpoints WHERE ({', '.join(ORDER)}) = (?, ?, ?, ?, ?, ?)"  # noqa: S608 - of our own words
PAUSED: Final = """SELECT a.*, r.version, r.breakpoints, i.home_instance FROM attempts a
    JOIN runs r USING (workflow_id, instance_id, run_id)
    LEFT JOIN instances i ON i.workflow_id = a.workflow_id AND i.instance_id = a.instance_id
    WHERE a.workflow_id = :workflow_id AND a.instance_id = :instance_id AND a.run_id = :run_id
    AND a.step_id = :step_id AND a.iteration = :iteration AND a.attempt = :attempt"""

_read: Final = msgspec.json.Decoder(tuple[c.Breakpoint, ...]).decode


def breakpoints_search(workflow_id: str | None = None, step_id: str | None = None) -> Search:
    """Breakpoints of a step, of a workflow or of all, by workflow and step."""
    if workflow_id is None:
        return Search("breakpoints", ORDER, tuple[str, str, Number, Number, Number, Number])
    of_workflow = ("workflow_id = ?",)
    if step_id is None:
        place_of_workflow: Place = tuple[str, Number, Number, Number, Number]
        return Search("breakpoints", ORDER[1:], place_of_workflow, of_workflow, (workflow_id,))
    where, given = (*of_workflow, "step_id = ?"), (workflow_id, step_id)
    return Search("breakpoints", ORDER[2:], tuple[Number, Number, Number, Number], where, given)


def pauses_search(workflow_id: str | None = None, step_id: str | None = None) -> Search:
    """Paused attempts of a step, of a workflow with its iterations and rounds, or of all: the earliest first."""
    place: Place = tuple[int, str, Number, Number, str, Number, Number]
    if workflow_id is None:
        return Search("pauses INDEXED BY pauses_by_time", PAUSE_ORDER, place)
    if step_id is None:
        return Search("pauses INDEXED BY pauses_by_home", PAUSE_ORDER, place, ("home_workflow = ?",), (workflow_id,))
    where, given = ("home_workflow = ?", "step_id = ?"), (workflow_id, step_id)
    place_of_step: Place = tuple[int, str, Number, Number, Number, Number]
    return Search("pauses INDEXED BY pauses_by_step", STEP_ORDER, place_of_step, where, given)


def listed(
    connection: sqlite3.Connection, wanted: PageRequest, workflow_id: str | None = None, step_id: str | None = None
) -> Page:
    """Breakpoints, by workflow and step."""
    return page(connection, breakpoints_search(workflow_id, step_id), wanted, _row_record)


def breakpoint_at(connection: sqlite3.Connection, key: Key) -> Record | None:
    """The breakpoint that was set with exactly these fields (`projection.breakpoints.breakpoint_key`)."""
    row = connection.execute(ONE, key).fetchone()
    return None if row is None else _row_record(row)


def _row_record(row: sqlite3.Row) -> Record:
    return {
        "workflow_id": row["workflow_id"],
        "step_id": row["step_id"],
        "workflow_version_id": row["version"] or None,
        "workflow_instance_id": row["instance_id"] or None,
        "workflow_run_id": row["run_id"] or None,
        "step_attempt_id": row["attempt"] or None,
        "create_time": row["at_ms"],
        "created_by": row["author"],
    }


# Paused attempts ------------------------------------------------------------------------------------------------------


def paused(
    connection: sqlite3.Connection, wanted: PageRequest, workflow_id: str | None = None, step_id: str | None = None
) -> Page:
    """Paused attempts, the one that has been paused for longest first."""
    return page(connection, pauses_search(workflow_id, step_id), wanted, partial(_paused_record, connection))


def _paused_record(connection: sqlite3.Connection, pause: sqlite3.Row) -> Record:
    row = connection.execute(PAUSED, dict(pause)).fetchone()
    home = pause["home_workflow"]
    return {
        "workflow_id": pause["workflow_id"],
        "workflow_version_id": None if row is None else row["version"],
        "workflow_instance_id": pause["instance_id"],
        "workflow_run_id": pause["run_id"],
        "step_id": pause["step_id"],
        "step_attempt_id": pause["attempt"],
        "iteration": pause["iteration"],
        "create_time": pause["at_ms"],
        "reason": None if row is None else row["reason"] or None,
        "home_workflow_id": home,
        "home_instance_id": pause["instance_id"] if row is None else row["home_instance"] or pause["instance_id"],
        "breakpoints": [] if row is None else held_by(row),
    }


def held_by(row: sqlite3.Row) -> list[Record]:
    """The breakpoints that match an attempt now: its columns, and the breakpoints of its run."""
    return [_of_run(point) for point in _matching(row)]


def _matching(row: sqlite3.Row) -> Iterable[c.Breakpoint]:
    known = _read(row["breakpoints"]) if row["breakpoints"] else ()
    return (point for point in known if point.step_id == row["step_id"] and point.attempt in (None, row["attempt"]))


def _of_run(point: c.Breakpoint) -> Record:
    return {
        "step_id": point.step_id,
        "workflow_version_id": point.version,
        "workflow_instance_id": point.instance_id,
        "workflow_run_id": point.run_id,
        "step_attempt_id": point.attempt,
        "create_time": point.at_ms,
        "created_by": point.author,
    }


def pause_text(row: sqlite3.Row) -> str:
    """Who has paused an attempt, and since when it waits."""
    authors = ", ".join(dict.fromkeys(point.author for point in _matching(row)))
    since = f" since {moment_text(row['paused_at_ms'])}"
    return f"a person to resume it: paused by a breakpoint{f' of {authors}' if authors else ''}{since}"


def paused_count(connection: sqlite3.Connection) -> int:
    """How many attempts are paused."""
    count: int = connection.execute("SELECT COUNT(*) FROM pauses").fetchone()[0]
    return count
