"""Workflows, their versions and properties."""

import sqlite3
from typing import Final

import msgspec

from kapelle.views.queries.instance_lists import counts as instance_counts
from kapelle.views.queries.pages import TEXT_MAX, Listing, Page, PageRequest, begins, page_of, place_of
from kapelle.views.queries.records import Record, raw
from kapelle.views.queries.requests import outcomes

NOTES_MAX: Final = 300
NONTERMINAL: Final = ("CREATED", "IN_PROGRESS", "PAUSED")


def workflow(connection: sqlite3.Connection, workflow_id: str) -> sqlite3.Row | None:
    """The workflow, if it is there."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM workflows WHERE workflow_id = ? AND is_deleted = 0 AND latest_version > 0", (workflow_id,)
    ).fetchone()
    return row


def listed(connection: sqlite3.Connection, page: PageRequest, prefix: str = "") -> Page:
    """All workflows whose ids begin so, by id."""
    sign, order, edge = ("<", "DESC", TEXT_MAX) if page.backwards else (">", "ASC", "")
    (place,) = (edge,) if page.cursor is None else place_of(page.cursor, tuple[str])
    whole = f"FROM workflows WHERE is_deleted = 0 AND latest_version > 0 AND {begins('workflow_id')}"
    rows = connection.execute(
        f"SELECT * {whole} AND workflow_id {sign} ?2 ORDER BY workflow_id {order} LIMIT ?3",
        (prefix, place, page.limit + 1),
    ).fetchall()
    total: int = connection.execute(f"SELECT COUNT(*) {whole}", (prefix,)).fetchone()[0]
    shown = rows[: page.limit]
    before = 0
    if shown:
        first = shown[-1] if page.backwards else shown[0]
        counted = connection.execute(f"SELECT COUNT(*) {whole} AND workflow_id < ?2", (prefix, first["workflow_id"]))
        before = counted.fetchone()[0]
    return page_of(rows, page, Listing(("workflow_id",), _listed, total), before)


def _listed(row: sqlite3.Row) -> Record:
    return {
        "workflow_id": row["workflow_id"],
        "name": row["name"] or row["workflow_id"],
        "owner": row["owner"],
        "active_version_id": row["active_version"] or None,
        "latest_version_id": row["latest_version"],
        "create_time": row["created_at_ms"],
        "modify_time": row["modified_at_ms"],
    }


def version_number(workflow_row: sqlite3.Row, selector: str) -> int | None:
    """The version that `active`, `latest`, `default` or a number means; None if there is none."""
    name = selector.lower()
    active, latest = workflow_row["active_version"] or 0, workflow_row["latest_version"] or 0
    named = {"active": active, "latest": latest, "default": active or latest}
    if name in named:
        return named[name] or None
    return int(name) if name.isascii() and name.isdigit() and len(name) <= 18 else None


def definition(connection: sqlite3.Connection, workflow_id: str, selector: str) -> Record | None:
    """A version with its workflow's properties; None if there is none."""
    workflow_row = workflow(connection, workflow_id)
    version = None if workflow_row is None else version_number(workflow_row, selector)
    if workflow_row is None or version is None:
        return None
    row = connection.execute(
        "SELECT * FROM versions WHERE workflow_id = ? AND version = ?", (workflow_id, version)
    ).fetchone()
    return None if row is None else _definition(connection, workflow_row, row)


def _definition(connection: sqlite3.Connection, workflow_row: sqlite3.Row, row: sqlite3.Row) -> Record:
    version = row["version"]
    is_active = version == workflow_row["active_version"]
    return {
        "metadata": _metadata(row),
        "workflow": raw(row["definition"]),
        "properties_snapshot": properties(connection, row["workflow_id"]),
        "is_active": is_active,
        "activate_time": workflow_row["activated_at_ms"] if is_active else None,
        "activated_by": workflow_row["activated_by"] if is_active else None,
        "is_latest": version == workflow_row["latest_version"],
        "is_default": version == (workflow_row["active_version"] or workflow_row["latest_version"]),
        "modify_time": workflow_row["modified_at_ms"],
    }


def _metadata(row: sqlite3.Row) -> Record:
    given: Record = {name: msgspec.Raw(text) for name, text in _members(row["metadata"] or "{}").items()}
    ours = {
        "workflow_id": row["workflow_id"],
        "workflow_version_id": row["version"],
        "create_time": row["at_ms"],
        "version_author": row["author"],
    }
    return {**given, **ours}


def _members(text: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def versions(connection: sqlite3.Connection, workflow_id: str, page: PageRequest) -> Page:
    """The versions of a workflow, the latest first."""
    sign, order = (">", "ASC") if page.backwards else ("<", "DESC")
    place = (None,) if page.cursor is None else place_of(page.cursor, tuple[int])
    rows = connection.execute(
        f"SELECT * FROM versions WHERE workflow_id = ?1 AND (?2 IS NULL OR version {sign} ?2) "  # noqa: S608
        f"ORDER BY version {order} LIMIT ?3",
        (workflow_id, *place, page.limit + 1),
    ).fetchall()
    total: int = connection.execute("SELECT COUNT(*) FROM versions WHERE workflow_id = ?", (workflow_id,)).fetchone()[0]
    shown = rows[: page.limit]
    first = (shown[-1] if page.backwards else shown[0])["version"] if shown else total
    workflow_row = workflow(connection, workflow_id)

    def record(row: sqlite3.Row) -> Record:
        return {} if workflow_row is None else _definition(connection, workflow_row, row)

    return page_of(rows, page, Listing(("version",), record, total), total - first)


def properties(connection: sqlite3.Connection, workflow_id: str) -> Record | None:
    """The properties as they are."""
    row = connection.execute("SELECT * FROM properties WHERE workflow_id = ?", (workflow_id,)).fetchone()
    if row is None:
        return None
    about = {"workflow_id": workflow_id, "author": row["author"], "create_time": row["at_ms"]}
    return {**about, **_members(row["properties"])}


def overview(connection: sqlite3.Connection, workflow_id: str) -> Record | None:
    """A workflow on one page."""
    workflow_row = workflow(connection, workflow_id)
    if workflow_row is None:
        return None
    counts = instance_counts(connection, workflow_id)
    return {
        **_listed(workflow_row),
        "default_version_id": workflow_row["active_version"] or workflow_row["latest_version"],
        "properties_snapshot": properties(connection, workflow_id),
        "nonterminal_instances": {status: counts.get(status, 0) for status in NONTERMINAL},
        "failed_instances": counts.get("FAILED", 0),
        "instances": counts,
        "latest_instance_id": workflow_row["latest_instance_id"] if counts else None,
    }


def notes(connection: sqlite3.Connection, workflow_id: str) -> list[Record]:
    """What was changed about a workflow, the latest first."""
    rows = connection.execute(
        "SELECT * FROM notes WHERE workflow_id = ? ORDER BY position DESC LIMIT ?", (workflow_id, NOTES_MAX)
    ).fetchall()
    return [{"author": row["author"], "log": row["log"], "timestamp": row["at_ms"]} for row in rows]


def terminated(connection: sqlite3.Connection, workflow_id: str, request_id: str) -> int:
    """How many instances a request has told to end. Asked for again, it has told nobody: the first outcome counts."""
    return max((outcome.body.get("count", 0) for outcome in outcomes(connection, request_id, workflow_id)), default=0)
