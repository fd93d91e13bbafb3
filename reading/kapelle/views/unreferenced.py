"""The removal of other old rows, once no instance in the view refers to them.

| what | stays while |
|---|---|
| a repeated or late announcement | the instance is there that announced it |
| a signal | an instance is there that it started, that took it or that announced it; a trigger keeps it; a repetition |
| | of it is there; it is the latest of its name and somebody waits for the next |
| an outcome of a request, a refused report | the instance is there that it is about |
| a cancellation | the attempt is there that it is about |
| a trigger that was disarmed | a verdict of it is there |
| a subscription that ended | a signal is there that came before it ended |
| the name of a signal | anything of that name is there |
| a note on a workflow | it is one of the latest, which are shown |
| a workflow that was deleted | an instance of it is there |
| a time trigger that was disarmed, with its last ticks | it is armed again |
| a backfill that ended | an instance of it is there |
| a note on a limit | it is one of the latest, which are shown |
| what is no longer limited | an attempt holds a permit of it |

Each table is walked in the order of an index, a limited number of rows at a time: a turn is short however much stays.
"""

# ruff: noqa: S608 - the statements are made of our own words, and their values are bound

import sqlite3
from typing import Final

import msgspec

from kapelle.views.queries.permits import NOTES_MAX as LIMIT_NOTES_MAX
from kapelle.views.queries.workflows import NOTES_MAX
from kapelle.views.rows import Key

ROWS_LOOKED_AT: Final = 500  # in one turn

Place = Key


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One walk through a table, from before its first row.

    `may_go` is a condition on a row `r`. `taken` are statements for each row that goes. Both know the columns of the
    order by their names, and `before_ms`.
    """

    table: str
    order: tuple[str, ...]
    start: Place
    index: str = ""  # by the age: then no row is looked at that is not old enough
    may_go: str
    taken: tuple[str, ...]

    @property
    def look(self) -> str:
        """The next rows after a place, and whether each may go."""
        columns, place = ", ".join(f"r.{name}" for name in self.order), ", ".join(f":{name}" for name in self.order)
        by, old = (f"INDEXED BY {self.index}", "AND r.at_ms < :before_ms") if self.index else ("", "")
        return (
            f"SELECT {columns}, {self.may_go} AS may_go FROM {self.table} r {by} "
            f"WHERE ({columns}) > ({place}) {old} ORDER BY {columns} LIMIT {ROWS_LOOKED_AT}"
        )


def swept(connection: sqlite3.Connection, sweep: Sweep, place: Place, before_ms: int) -> tuple[Place | None, int]:
    """Look at the next rows, and let go of those that may. Returns how far that is, None at the end, and how many."""
    values = {**dict(zip(sweep.order, place, strict=True)), "before_ms": before_ms}
    rows = connection.execute(sweep.look, values).fetchall()
    gone = [{**dict(row), "before_ms": before_ms} for row in rows if row["may_go"]]
    for statement in sweep.taken:
        connection.executemany(statement, gone)
    is_end = len(rows) < ROWS_LOOKED_AT
    return None if is_end else tuple(rows[-1])[:-1], len(gone)


# The walks ------------------------------------------------------------------------------------------------------------

_NO_INSTANCE: Final = """NOT EXISTS (
    SELECT 1 FROM instances i WHERE i.workflow_id = r.workflow_id AND i.instance_id = r.instance_id
)"""
_STARTED: Final = """EXISTS (
    SELECT 1 FROM requests q JOIN instances i ON i.workflow_id = q.workflow_id AND i.instance_id = q.instance_id
    WHERE q.request_id = t.request_id AND q.workflow_id = t.workflow_id
)"""
_FIRST_POSITION: Final = (
    "COALESCE((SELECT position FROM signals WHERE name = {name} ORDER BY sequence LIMIT 1), 1 << 62)"
)
_SHOWN: Final = (
    "(SELECT position FROM notes WHERE workflow_id = {workflow_id} "
    f"ORDER BY position DESC LIMIT 1 OFFSET {NOTES_MAX - 1})"
)
_LIMIT_SHOWN: Final = (
    "(SELECT position FROM limit_notes WHERE limited = {limited} "
    f"ORDER BY position DESC LIMIT 1 OFFSET {LIMIT_NOTES_MAX - 1})"
)

SWEEPS: Final = (
    Sweep(
        table="unaccepted_signals",
        index="unaccepted_signals_by_age",
        order=("at_ms", "name", "position"),
        start=(-1, "", -1),
        may_go=_NO_INSTANCE,
        taken=("DELETE FROM unaccepted_signals WHERE name = :name AND position = :position",),
    ),
    Sweep(
        table="signals",
        index="signals_by_age",
        order=("at_ms", "name", "sequence"),
        start=(-1, "", -1),
        may_go=f"""{_NO_INSTANCE}
            AND NOT EXISTS (SELECT 1 FROM step_signals t WHERE t.name = r.name AND t.sequence = r.sequence)
            AND NOT EXISTS (SELECT 1 FROM trigger_signals t WHERE t.name = r.name AND t.sequence = r.sequence
                AND (t.verdict = 'KEPT' OR {_STARTED}))
            AND NOT EXISTS (SELECT 1 FROM unaccepted_signals v WHERE v.name = r.name AND v.first_sequence = r.sequence)
            AND NOT (r.sequence = (SELECT n.sequence FROM signal_names n WHERE n.name = r.name)
                AND EXISTS (SELECT 1 FROM subscriptions s WHERE s.name = r.name AND s.ended = 0))""",
        taken=(
            "DELETE FROM offers WHERE name = :name AND sequence = :sequence",
            "DELETE FROM trigger_signals WHERE name = :name AND sequence = :sequence",
            "UPDATE signal_names SET floor = MAX(floor, :sequence) WHERE name = :name",
            "DELETE FROM signals WHERE name = :name AND sequence = :sequence",
        ),
    ),
    Sweep(
        table="requests",
        index="requests_by_age",
        order=("at_ms", "request_id", "stream", "partition", "position"),
        start=(-1, "", "", -1, -1),
        may_go=_NO_INSTANCE,
        taken=(
            """DELETE FROM requests WHERE request_id = :request_id AND stream = :stream AND partition = :partition
            AND position = :position""",
        ),
    ),
    Sweep(
        table="refused_reports",
        index="refused_reports_by_age",
        order=("at_ms", "stream", "partition", "position"),
        start=(-1, "", -1, -1),
        may_go=_NO_INSTANCE,
        taken=(
            # Such a report of an instance that has left is all that its timeline still tells.
            """DELETE FROM timeline WHERE (workflow_id, instance_id) = (SELECT workflow_id, instance_id
            FROM refused_reports WHERE stream = :stream AND partition = :partition AND position = :position)""",
            "DELETE FROM refused_reports WHERE stream = :stream AND partition = :partition AND position = :position",
        ),
    ),
    Sweep(
        table="cancellations",
        index="cancellations_by_time",
        order=("at_ms", "token"),
        start=(-1, ""),
        may_go="NOT EXISTS (SELECT 1 FROM attempts a WHERE a.token = r.token)",
        taken=("DELETE FROM cancellations WHERE token = :token",),
    ),
    Sweep(
        table="triggers",
        order=("workflow_id", "trigger_id"),
        start=("", ""),
        may_go="""r.is_armed = 0 AND r.disarmed_at_ms < :before_ms AND NOT EXISTS (
            SELECT 1 FROM trigger_signals t WHERE t.workflow_id = r.workflow_id AND t.trigger_id = r.trigger_id
        )""",
        taken=("DELETE FROM triggers WHERE workflow_id = :workflow_id AND trigger_id = :trigger_id",),
    ),
    Sweep(
        table="signal_names",
        order=("name",),
        start=("",),
        may_go=f"""EXISTS (SELECT 1 FROM subscriptions s
            WHERE s.name = r.name AND s.ended > 0 AND s.ended < {_FIRST_POSITION.format(name="r.name")})""",
        taken=(
            f"""DELETE FROM subscriptions
            WHERE name = :name AND ended > 0 AND ended < {_FIRST_POSITION.format(name=":name")}""",
        ),
    ),
    Sweep(
        table="signal_names",
        order=("name",),
        start=("",),
        may_go="""MAX(COALESCE(r.at_ms, 0), COALESCE(r.subscribed_at_ms, 0), COALESCE(r.too_late_at_ms, 0)) < :before_ms
            AND NOT EXISTS (SELECT 1 FROM signals s WHERE s.name = r.name)
            AND NOT EXISTS (SELECT 1 FROM unaccepted_signals v WHERE v.name = r.name)
            AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.name = r.name)""",
        taken=("DELETE FROM signal_names WHERE name = :name",),
    ),
    Sweep(
        table="workflows",
        order=("workflow_id",),
        start=("",),
        may_go=f"""EXISTS (SELECT 1 FROM notes n WHERE n.workflow_id = r.workflow_id AND n.at_ms < :before_ms
            AND n.position < {_SHOWN.format(workflow_id="r.workflow_id")})""",
        taken=(
            f"""DELETE FROM notes WHERE workflow_id = :workflow_id AND at_ms < :before_ms
            AND position < {_SHOWN.format(workflow_id=":workflow_id")}""",
        ),
    ),
    Sweep(
        table="workflows",
        order=("workflow_id",),
        start=("",),
        may_go="""r.is_deleted = 1
            AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.workflow_id = r.workflow_id)
            AND NOT EXISTS (SELECT 1 FROM notes n WHERE n.workflow_id = r.workflow_id AND n.at_ms >= :before_ms)""",
        taken=tuple(
            f"DELETE FROM {table} WHERE workflow_id = :workflow_id" for table in ("notes", "counts", "workflows")
        ),
    ),
    Sweep(
        table="schedules",
        order=("workflow_id", "trigger_id"),
        start=("", ""),
        may_go="r.is_armed = 0 AND r.disarmed_at_ms < :before_ms",
        taken=tuple(
            f"DELETE FROM {table} WHERE workflow_id = :workflow_id AND trigger_id = :trigger_id"
            for table in ("ticks", "schedules")
        ),
    ),
    Sweep(
        table="backfills",
        order=("workflow_id", "backfill_id"),
        start=("", ""),
        may_go="""r.ended_at_ms < :before_ms AND NOT EXISTS (
            SELECT 1 FROM instances i INDEXED BY instances_by_backfill
            WHERE i.workflow_id = r.workflow_id AND i.backfill_id = r.backfill_id
        )""",
        taken=tuple(
            f"DELETE FROM {table} WHERE workflow_id = :workflow_id AND backfill_id = :backfill_id"
            for table in ("backfill_progress", "backfill_refusals", "backfill_counts", "backfills")
        ),
    ),
    Sweep(
        table="limits",
        order=("limited",),
        start=("",),
        may_go=f"""EXISTS (SELECT 1 FROM limit_notes n WHERE n.limited = r.limited AND n.at_ms < :before_ms
            AND n.position < {_LIMIT_SHOWN.format(limited="r.limited")})""",
        taken=(
            f"""DELETE FROM limit_notes WHERE limited = :limited AND at_ms < :before_ms
            AND position < {_LIMIT_SHOWN.format(limited=":limited")}""",
        ),
    ),
    Sweep(
        table="limits",
        order=("limited",),
        start=("",),
        may_go="""r.max IS NULL AND r.held = 0 AND r.waiting = 0 AND COALESCE(r.set_at_ms, 0) < :before_ms""",
        taken=tuple(f"DELETE FROM {table} WHERE limited = :limited" for table in ("limit_notes", "limits")),
    ),
)
