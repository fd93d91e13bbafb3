"""The tables of the view. A change of them needs a new `SCHEMA_VERSION`: the view is then made anew from history."""

from collections.abc import Mapping
from typing import Final

from kapelle.views.schema_children import CHILD_TABLES
from kapelle.views.schema_gates import GATE_TABLES
from kapelle.views.schema_instances import INSTANCE_TABLES
from kapelle.views.schema_schedules import SCHEDULE_TABLES
from kapelle.views.schema_signals import SIGNAL_TABLES

SCHEMA_VERSION: Final = 9

_ATTEMPT: Final = ("workflow_id", "instance_id", "run_id", "step_id", "iteration", "attempt")
# The primary keys of the tables that changes are put into.
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "workflows": ("workflow_id",),
    "versions": ("workflow_id", "version"),
    "properties": ("workflow_id",),
    "notes": ("workflow_id", "position"),
    "runs": ("workflow_id", "instance_id", "run_id"),
    "instances": ("workflow_id", "instance_id"),
    "attempts": _ATTEMPT,
    "tasks": _ATTEMPT,
    "dependencies": ("workflow_id", "instance_id", "step_id", "number"),
    "requests": ("request_id", "stream", "partition", "position"),
    "fans": _ATTEMPT,
    "shared": ("digest",),
    "cancellations": ("token",),
    "refused_reports": ("stream", "partition", "position"),
    "unreadable": ("stream", "partition", "position"),
    "declared_tags": ("workflow_id", "version", "tag"),
    "signal_names": ("name",),
    "signals": ("name", "sequence"),
    "unaccepted_signals": ("name", "position"),
    "subscriptions": ("name", "subscription", "position"),
    "offers": ("name", "sequence", "subscription"),
    "step_signals": ("workflow_id", "instance_id", "step_id", "number", "name", "sequence"),
    "triggers": ("workflow_id", "trigger_id"),
    "trigger_signals": ("workflow_id", "trigger_id", "name", "sequence"),
    "breakpoints": ("workflow_id", "step_id", "version", "instance_id", "run_id", "attempt"),
    "limits": ("limited",),
    "limit_notes": ("limited", "position"),
    "permits": ("limited", "key", "step_id", "run_id", "iteration", "attempt"),
    "schedules": ("workflow_id", "trigger_id"),
    "schedule_pauses": ("workflow_id", "trigger_id"),
    "ticks": ("workflow_id", "trigger_id", "position", "number"),
    "backfills": ("workflow_id", "backfill_id"),
    "backfill_progress": ("workflow_id", "backfill_id", "position"),
    "backfill_refusals": ("workflow_id", "backfill_id", "position", "scheduled_at_ms"),
}
# Columns that rise together: of two that are told in any order, the one holds whose first column is greater.
RISING: Final[Mapping[str, tuple[str, ...]]] = {
    "runs": ("rank", "status"),
    "instances": ("grade", "run_id", "status"),
}
GRADES_PER_RUN: Final = 4


def grade_of(run_id: int, rank: int) -> int:
    """The grade of an instance: it rises with the run and, within a run, with its rank."""
    return run_id * GRADES_PER_RUN + rank


TABLES: Final = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    # How far each partition is folded: written in the transaction that folds it.
    """CREATE TABLE offsets (
        stream TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (stream, partition)
    ) WITHOUT ROWID""",
    # Records of which nothing else in the view tells.
    """CREATE TABLE unreadable (
        stream TEXT, partition INTEGER, position INTEGER, key TEXT, reason TEXT, at_ms INTEGER,
        PRIMARY KEY (stream, partition, position)
    ) WITHOUT ROWID""",
    """CREATE TABLE workflows (
        workflow_id TEXT PRIMARY KEY, name TEXT, owner TEXT,
        latest_version INTEGER, active_version INTEGER, activated_at_ms INTEGER, activated_by TEXT,
        latest_instance_id INTEGER, is_deleted INTEGER DEFAULT 0,
        created_at_ms INTEGER, modified_at_ms INTEGER
    ) WITHOUT ROWID""",
    """CREATE TABLE versions (
        workflow_id TEXT, version INTEGER, definition TEXT, metadata TEXT, author TEXT, at_ms INTEGER,
        PRIMARY KEY (workflow_id, version)
    )""",
    # As they are now: what they were is told by the notes.
    "CREATE TABLE properties (workflow_id TEXT PRIMARY KEY, properties TEXT, author TEXT, at_ms INTEGER)",
    """CREATE TABLE notes (
        workflow_id TEXT, position INTEGER, author TEXT, log TEXT, at_ms INTEGER,
        PRIMARY KEY (workflow_id, position)
    )""",
    """CREATE TABLE runs (
        workflow_id TEXT, instance_id INTEGER, run_id INTEGER,
        status TEXT, rank INTEGER,
        version INTEGER, request_id TEXT, author TEXT, initiator TEXT, params TEXT, run_params TEXT,
        step_run_params TEXT, runtime_tags TEXT, artifacts TEXT, correlation_id TEXT, restart TEXT,
        created_at_ms INTEGER, created_reason TEXT,
        launched_at_ms INTEGER, recorded_at_ms INTEGER, recorded_reason TEXT, unblocked_at_ms INTEGER,
        started_at_ms INTEGER, timeout_at_ms INTEGER, run_properties TEXT, steps TEXT,
        run_status TEXT, ended_at_ms INTEGER, ended_reason TEXT, layers TEXT, digest TEXT, launch TEXT,
        breakpoints TEXT,
        PRIMARY KEY (workflow_id, instance_id, run_id)
    )""",
    """CREATE TABLE attempts (
        workflow_id TEXT, instance_id INTEGER, run_id INTEGER, step_id TEXT, iteration INTEGER, attempt INTEGER,
        sequence INTEGER, status TEXT, reason TEXT, params TEXT, successors TEXT, retries TEXT,
        token TEXT, worker TEXT, answer TEXT, message TEXT,
        timeout_at_ms INTEGER, due_at_ms INTEGER, lease_at_ms INTEGER,
        created_at_ms INTEGER, started_at_ms INTEGER, ended_at_ms INTEGER, changed_at_ms INTEGER,
        paused_at_ms INTEGER, permits_at_ms INTEGER, permits TEXT, permits_held INTEGER,
        PRIMARY KEY (workflow_id, instance_id, run_id, step_id, iteration, attempt)
    )""",
    "CREATE INDEX attempts_by_token ON attempts (token) WHERE token IS NOT NULL",
    # As the engine keeps them: what was matched stays so in later runs, until a loop takes the step again.
    """CREATE TABLE dependencies (
        workflow_id TEXT, instance_id INTEGER, step_id TEXT, number INTEGER,
        name TEXT, signal_id TEXT, sequence INTEGER,
        PRIMARY KEY (workflow_id, instance_id, step_id, number)
    ) WITHOUT ROWID""",
    # Most of what happens to an instance happens in cycles that move it on by several events: so what one partition has
    # told at one time is one row, an array of JSON on a line for each event (`rows.Line`).
    """CREATE TABLE timeline (
        workflow_id TEXT, instance_id INTEGER, at_ms INTEGER, stream TEXT, partition INTEGER, lines TEXT,
        PRIMARY KEY (workflow_id, instance_id, at_ms, stream, partition)
    ) WITHOUT ROWID""",
    """CREATE TABLE requests (
        request_id TEXT, stream TEXT, partition INTEGER, position INTEGER,
        workflow_id TEXT, instance_id INTEGER, kind TEXT, body TEXT, at_ms INTEGER,
        PRIMARY KEY (request_id, stream, partition, position)
    ) WITHOUT ROWID""",
    # Who started an instance is found by its runs.
    "CREATE INDEX requests_by_instance ON requests (workflow_id, instance_id) WHERE kind <> 'InstanceCreated'",
    # A task is known by its attempt. `is_over` comes from the run, everything else from the task: either may be first.
    """CREATE TABLE tasks (
        workflow_id TEXT, instance_id INTEGER, run_id INTEGER, step_id TEXT, iteration INTEGER, attempt INTEGER,
        token TEXT, type TEXT, sub_type TEXT, params TEXT, idempotency_key TEXT, criticality TEXT, urgency INTEGER,
        lease_ms INTEGER, deadline_at_ms INTEGER, at_ms INTEGER, is_over INTEGER DEFAULT 0,
        PRIMARY KEY (workflow_id, instance_id, run_id, step_id, iteration, attempt)
    )""",
    "CREATE INDEX tasks_open ON tasks (type, urgency, at_ms) WHERE is_over = 0",
    "CREATE INDEX tasks_by_token ON tasks (token)",
    "CREATE TABLE cancellations (token TEXT PRIMARY KEY, reason TEXT, at_ms INTEGER) WITHOUT ROWID",
    "CREATE INDEX cancellations_by_time ON cancellations (at_ms)",
    """CREATE TABLE refused_reports (
        stream TEXT, partition INTEGER, position INTEGER, workflow_id TEXT, instance_id INTEGER,
        token TEXT, worker TEXT, report TEXT, reason TEXT, at_ms INTEGER,
        PRIMARY KEY (stream, partition, position)
    ) WITHOUT ROWID""",
    "CREATE INDEX refused_reports_by_token ON refused_reports (token)",
    "CREATE INDEX refused_reports_by_instance ON refused_reports (workflow_id, instance_id)",
    *INSTANCE_TABLES,
    *CHILD_TABLES,
    *SIGNAL_TABLES,
    *GATE_TABLES,
    *SCHEDULE_TABLES,
)
# Only a view from which things leave looks for them by their age.
BY_AGE: Final = tuple(
    f"CREATE INDEX IF NOT EXISTS {table}_by_age ON {table} (at_ms)"
    for table in ("signals", "unaccepted_signals", "requests", "refused_reports")
)
