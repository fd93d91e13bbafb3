"""Rows as the records that people read. What is JSON in a row stays as it was written: no number loses a digit."""

import sqlite3
from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.schemas.contracts import StepStatus
from kapelle.views.queries.timelines import Entry

# What tells of a child's place in its tree; `i` is its instance.
OF_CHILD: Final = (
    "i.parent_workflow, i.parent_instance, i.parent_step, i.number, i.kind, i.launch AS launched, i.is_sync, i.root, "
    "i.depth, i.backfill_id"
)
EMPTY_OBJECT: Final = msgspec.Raw(b"{}")
TRIGGER_TIME: Final = '"trigger_time"'
LAYERS_CACHED: Final = 64  # a page of iterations shares them
Record = dict[str, Any]


def raw(text: str | None, default: msgspec.Raw | None = EMPTY_OBJECT) -> msgspec.Raw | None:
    """JSON text as it is."""
    return default if text is None else msgspec.Raw(text.encode())


def instance_record(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    """A run of an instance, with what all runs of the instance share (`OF_CHILD`)."""
    reason = row["ended_reason"] or row["recorded_reason"] or row["created_reason"]
    restart = row["restart"]
    policy = "START_FRESH_NEW_RUN" if restart is None else msgspec.json.decode(restart)["policy"]
    return {
        "workflow_id": row["workflow_id"],
        "workflow_instance_id": row["instance_id"],
        "workflow_run_id": row["run_id"],
        "workflow_uuid": row["request_id"],
        "workflow_version_id": row["version"],
        "status": row["status"],
        "run_status": row["run_status"] or row["status"],
        "reason": reason or None,
        "correlation_id": row["correlation_id"],
        "author": row["author"],
        "initiator": raw(row["initiator"]),
        "backfill_id": row["backfill_id"],
        "scheduled_at": _scheduled_at(row),
        "run_config": {
            "policy": policy,
            "restart_config": raw(restart, None),
            "runtime_tags": raw(row["runtime_tags"], msgspec.Raw(b"[]")),
        },
        "params": composed(connection, row["params"], row["layers"]),
        "run_params": raw(row["run_params"]),
        "step_run_params": raw(row["step_run_params"]),
        "artifacts": raw(row["artifacts"]),
        "create_time": row["created_at_ms"],
        "start_time": row["started_at_ms"],
        "end_time": _end_time(row),
        "timeout_time": row["timeout_at_ms"],
        "parent": parent_record(row),
    }


def _scheduled_at(row: sqlite3.Row) -> int | None:
    """The scheduled time of the tick or of the slot that a run was started for."""
    text = row["initiator"] or ""
    if TRIGGER_TIME not in text:
        return None
    initiator = initiator_of(text)
    return initiator.trigger_time if initiator.kind == "TIME" or row["backfill_id"] is not None else None


def parent_record(row: sqlite3.Row) -> Record | None:
    """The step that an instance is a child of."""
    if row["parent_workflow"] is None:
        return None
    return {
        "workflow_id": row["parent_workflow"],
        "workflow_instance_id": row["parent_instance"],
        "workflow_run_id": int((row["launch"] or row["launched"]).partition(".")[0]),
        "step_id": row["parent_step"],
        "number": row["number"],
        "kind": row["kind"],
        "sync": bool(row["is_sync"]),
        "root": row["root"],
        "depth": row["depth"],
    }


def composed(connection: sqlite3.Connection, params: str | None, layers: str | None) -> msgspec.Raw | None:
    """The parameters of a run: those that it shares with others, in their order, and then its own."""
    digests = msgspec.json.decode(layers, type=list[str]) if layers else []
    if not digests:
        return raw(params)
    whole: dict[str, msgspec.Raw] = {}
    for digest in digests:
        row = connection.execute("SELECT text FROM shared WHERE digest = ?", (digest,)).fetchone()
        whole |= _members(row[0]) if row is not None else {}
    whole |= _members(params or "{}")
    return msgspec.Raw(msgspec.json.encode(whole))


@lru_cache(LAYERS_CACHED)
def _members(text: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def _end_time(row: sqlite3.Row) -> int | None:
    if row["rank"] < 3:
        return None
    time_ms: int | None = row["ended_at_ms"] or row["recorded_at_ms"] or row["created_at_ms"]
    return time_ms


def step_record(row: sqlite3.Row) -> Record:
    """An attempt at a step."""
    return {
        "workflow_id": row["workflow_id"],
        "workflow_instance_id": row["instance_id"],
        "workflow_run_id": row["run_id"],
        "step_id": row["step_id"],
        "step_attempt_id": row["attempt"],
        "iteration": row["iteration"],
        "status": row["status"],
        "reason": row["reason"] or None,
        "params": raw(row["params"]),
        "transition": {"successors": raw(row["successors"])},
        "step_retry": _step_retry(row),
        "worker": row["worker"],
        "message": row["message"] or None,
        "waiting_for": _waiting_for(row),
        "create_time": row["created_at_ms"],
        "pause_time": row["paused_at_ms"],
        "wait_permit_time": row["permits_at_ms"],
        "start_time": row["started_at_ms"],
        "end_time": row["ended_at_ms"],
        "timeout_time": row["timeout_at_ms"],
        "lease_time": row["lease_at_ms"],
        "due_time": row["due_at_ms"],
    }


def _waiting_for(row: sqlite3.Row) -> str | None:
    """What would let the step go on, if it is not in its own hands."""
    if row["status"] == StepStatus.STARTING and row["type"] is not None:
        return f"a worker of type {row['type']!r}"
    if row["status"] == StepStatus.WAITING_FOR_SIGNALS and row["lacking"] is not None:
        return f"signals: {row['lacking']}"
    return None


def _step_retry(row: sqlite3.Row) -> Record:
    made = msgspec.json.decode(row["retries"] or "{}")
    return {
        "error_retries": made.get("error", 0),
        "platform_retries": made.get("platform", 0),
        "timeout_retries": made.get("timeout", 0),
        "manual_retries": made.get("manual", 0),
        "next_retry_time": row["due_at_ms"],
    }


def entry_record(entry: Entry) -> Record:
    """An entry of a timeline. What it does not speak of is left out."""
    about: Record = {
        "timestamp": entry.at_ms,
        "type": entry.type,
        "workflow_run_id": entry.run_id,
        "step_id": entry.step_id,
        "step_attempt_id": entry.attempt,
        "iteration": entry.iteration,
    }
    given = {name: value for name, value in about.items() if value is not None}
    body: Record = msgspec.json.decode(entry.body)
    return given | body
