"""Backfills of a workflow: what was asked for, how far they are, and their instances by status."""

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Final

from kapelle.processors.calendar import schedule_of
from kapelle.views.queries.index_pages import Search, page
from kapelle.views.queries.pages import Page, PageRequest
from kapelle.views.queries.records import Record, raw
from kapelle.views.queries.schedule_records import BackfillRecord
from kapelle.views.queries.schedules import schedule_fields

REFUSALS_SHOWN: Final = 10

ONE: Final = "SELECT * FROM backfills WHERE workflow_id = ? AND backfill_id = ? AND created_at_ms IS NOT NULL"
COUNTS: Final = "SELECT status, count FROM backfill_counts WHERE workflow_id = ? AND backfill_id = ? AND count > 0"
REFUSALS: Final = """SELECT scheduled_at_ms, reason FROM backfill_refusals WHERE workflow_id = ? AND backfill_id = ?
    ORDER BY position DESC, scheduled_at_ms DESC LIMIT ?"""
EXISTING: Final = """SELECT instance_id FROM requests
    WHERE request_id = ? AND workflow_id = ? AND kind = 'InstanceCreated' LIMIT 1"""


def backfills_search(workflow_id: str) -> Search:
    """The backfills of a workflow, the latest first."""
    order, where = ("newest", "backfill_id"), ("workflow_id = ?", "newest IS NOT NULL")
    return Search("backfills INDEXED BY backfills_by_time", order, tuple[int, str], where, (workflow_id,))


def listed(connection: sqlite3.Connection, workflow_id: str, wanted: PageRequest) -> Page:
    """A page of the backfills of a workflow, the latest first."""
    return page(connection, backfills_search(workflow_id), wanted, partial(_as_record, connection))


def _as_record(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    return {**_record(connection, row)}


def backfill(connection: sqlite3.Connection, workflow_id: str, backfill_id: str) -> BackfillRecord | None:
    """One backfill; None if there is none."""
    row = connection.execute(ONE, (workflow_id, backfill_id)).fetchone()
    return None if row is None else _record(connection, row)


def _record(connection: sqlite3.Connection, row: sqlite3.Row) -> BackfillRecord:
    key = (row["workflow_id"], row["backfill_id"])
    counts = connection.execute(COUNTS, key).fetchall()
    refusals = connection.execute(REFUSALS, (*key, REFUSALS_SHOWN)).fetchall()
    decided = row["started"] + row["existing"] + row["refused"]
    return {
        "workflow_id": row["workflow_id"],
        "backfill_id": row["backfill_id"],
        "status": row["status"],
        "reason": row["reason"],
        "by": row["author"],
        "started_at": row["started_at_ms"],
        "ended_at": row["ended_at_ms"],
        "modified_at": row["changed_at_ms"],
        "modified_by": row["changed_by"],
        "from": row["from_ms"],
        "to": row["to_ms"],
        "order": "newest" if row["is_newest_first"] else "oldest",
        "rerun": bool(row["is_rerun"]),
        "concurrency": row["concurrency"],
        "trigger_id": row["trigger_id"],
        "schedule": schedule_fields(schedule_of(row["schedule"])),
        "params": raw(row["run_params"]),
        "total": row["total"],
        "decided": decided,
        "started": row["started"],
        "existing": row["existing"],
        "refused": row["refused"],
        "slots_left": max(row["total"] - decided, 0),
        "position": row["position_ms"],
        "counts": {each["status"]: each["count"] for each in counts},
        "refusals": [{"scheduled_at": each["scheduled_at_ms"], "reason": each["reason"]} for each in refusals],
    }


def existing(connection: sqlite3.Connection, workflow_id: str, request_ids: Iterable[str]) -> list[int | None]:
    """The instances that were started by requests, in their order; None where there is none."""
    rows = (connection.execute(EXISTING, (request_id, workflow_id)).fetchone() for request_id in request_ids)
    return [None if row is None else row["instance_id"] for row in rows]
