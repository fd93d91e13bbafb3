"""Signal triggers of a workflow: what they want, what they have, and what they lack."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from kapelle.processors.triggers.definition import Trigger, trigger_of
from kapelle.views.queries import workflows
from kapelle.views.queries.records import Record
from kapelle.views.queries.signals import latest, signal_record, signal_row
from kapelle.views.queries.verdicts import of_trigger, start_of

TRIGGERS_MAX: Final = 200
WAITING_MAX: Final = 50


def listed(connection: sqlite3.Connection, workflow_id: str, *, with_disarmed: bool = False) -> list[Record]:
    """The triggers of a workflow that are armed, or all that ever were, the armed ones first."""
    rows = connection.execute(
        """SELECT * FROM triggers WHERE workflow_id = ? AND (is_armed = 1 OR ?)
        ORDER BY is_armed DESC, armed_at_ms, trigger_id LIMIT ?""",
        (workflow_id, with_disarmed, TRIGGERS_MAX),
    ).fetchall()
    return [_record(connection, row) for row in rows]


def _record(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    trigger = trigger_of(row["definition"])
    at = (row["workflow_id"], row["trigger_id"])
    kept = connection.execute(
        "SELECT COUNT(*) FROM trigger_signals WHERE workflow_id = ? AND trigger_id = ? AND verdict = 'KEPT'", at
    ).fetchone()[0]
    return {
        "workflow_id": row["workflow_id"],
        "trigger_id": row["trigger_id"],
        "workflow_version_id": row["version"],
        "is_armed": bool(row["is_armed"]),
        "armed_time": row["armed_at_ms"],
        "disarmed_time": None if row["is_armed"] else row["disarmed_at_ms"],
        "signals": {name: _wanted(trigger, name) for name in trigger.names},
        "condition": trigger.condition,
        "dedup_expr": trigger.dedup_expr,
        "kept": kept,
        "waiting": _waiting(connection, at, trigger),
        "latest": {verdict: _latest(connection, at, verdict) for verdict in ("FIRED", "SKIPPED")},
    }


def _wanted(trigger: Trigger, name: str) -> Record:
    signal = trigger.names[name]
    return {
        "match": [str(condition) for condition in signal.match],
        "join_keys": list(signal.join_keys),
        "is_latest": signal.is_latest,
    }


def _waiting(connection: sqlite3.Connection, at: tuple[str, str], trigger: Trigger) -> list[Record]:
    """For the first join values, in their order: of each name the next signal and how many wait, and what lacks."""
    rows = connection.execute(
        """SELECT join_value, name, COUNT(*) AS count, MIN(sequence) AS next FROM trigger_signals
        WHERE workflow_id = ? AND trigger_id = ? AND verdict = 'KEPT' GROUP BY join_value, name
        ORDER BY join_value, name LIMIT ?""",
        (*at, WAITING_MAX * len(trigger.names)),
    ).fetchall()
    waiting: dict[str, Record] = {}
    for row in rows:
        waiting.setdefault(row["join_value"], {})[row["name"]] = {"next": row["next"], "count": row["count"]}
    return [
        {
            "join_value": msgspec.Raw(value.encode()),
            "there": there,
            "waiting_for": [name for name in trigger.names if name not in there],
        }
        for value, there in list(waiting.items())[:WAITING_MAX]
    ]


def _latest(connection: sqlite3.Connection, at: tuple[str, str], verdict: str) -> Record | None:
    """The last time that a trigger fired, or did not although all were there."""
    row = connection.execute(
        """SELECT * FROM trigger_signals WHERE workflow_id = ? AND trigger_id = ? AND verdict = ?
        ORDER BY position DESC LIMIT 1""",
        (*at, verdict),
    ).fetchone()
    if row is None:
        return None
    partners = msgspec.json.decode(row["partners"] or "{}")
    latest: Record = {"time": row["at_ms"], "signals": {row["name"]: row["sequence"], **partners}}
    if verdict == "FIRED":
        return {**latest, "request_id": row["request_id"], **start_of(connection, row)}
    return {**latest, "reason": row["reason"]}


# Why a workflow did not start -----------------------------------------------------------------------------------------


def explained(connection: sqlite3.Connection, workflow_id: str) -> Record | None:
    """Why a workflow did not start: what stands in its way, and what each trigger has seen and lacks."""
    row = workflows.workflow(connection, workflow_id)
    if row is None:
        return None
    triggers = listed(connection, workflow_id)
    return {
        "workflow_id": workflow_id,
        "active_version_id": row["active_version"] or None,
        "obstacles": list(_obstacles(connection, row, triggers)),
        "triggers": [{**trigger, **_explained(connection, trigger)} for trigger in triggers],
    }


def _obstacles(connection: sqlite3.Connection, workflow: sqlite3.Row, triggers: Sequence[Record]) -> list[str]:
    """Why no signal at all can start it."""
    if not workflow["active_version"]:
        return ["It has no active version, so no trigger is armed"]
    properties = workflows.properties(connection, workflow["workflow_id"]) or {}
    if properties.get("signal_trigger_disabled") == msgspec.Raw(b"true"):
        return ["Its properties disable signal triggers"]
    return [] if triggers else [f"Version {workflow['active_version']} has no signal trigger that is armed"]


def _explained(connection: sqlite3.Connection, trigger: Record) -> Record:
    at = (trigger["workflow_id"], trigger["trigger_id"])
    seen: Record = {}
    missing: list[str] = []
    for name in trigger["signals"]:
        signal = signal_row(connection, name, None)
        if signal is None:
            seen[name] = None
            has_left = latest(connection, name) is not None
            missing.append(f"Every {name!r} has left the view" if has_left else f"{name!r} has not been announced yet")
            continue
        verdict = of_trigger(connection, signal, *at)
        seen[name] = {**signal_record(signal), "verdict": verdict}
        if verdict["verdict"] != "FIRED":
            missing.append(f"The latest {name!r} is {signal['sequence']}. {verdict['reason']}")
    return {"seen": seen, "missing": missing}
