"""Tables of the view for time triggers with their last ticks, and for backfills with the counts of their instances.

Counts are kept by triggers. What is added when a row comes is taken off when it goes, so the order in which a batch
writes its tables makes no difference.
"""

# ruff: noqa: S608 - the statements are made of our own words

from collections.abc import Iterable
from typing import Final

TICKS_KEPT: Final = 100  # of each time trigger
REFUSALS_KEPT: Final = 100  # of each backfill

# Fates, as rows have them.
STARTED: Final = "STARTED"
REFUSED: Final = "REFUSED"
PASSED_OVER: Final = "PASSED_OVER"
NOT_ARMED: Final = "NOT_ARMED"
_TOTALS: Final = {STARTED: "started", REFUSED: "refused", PASSED_OVER: "passed_over", NOT_ARMED: "not_armed"}
_OF_FATE: Final = ", ".join(f"(NEW.fate = '{fate}') * NEW.count" for fate in _TOTALS)
_OF_TRIGGER: Final = "workflow_id = NEW.workflow_id AND trigger_id = NEW.trigger_id"

_PROGRESS: Final = ("started", "existing", "refused")
_OF_BACKFILL: Final = "workflow_id = {row}.workflow_id AND backfill_id = {row}.backfill_id"
_IS_COUNTED: Final = "{row}.backfill_id IS NOT NULL AND {row}.created_at_ms IS NOT NULL AND {row}.status IS NOT NULL"
_COUNT: Final = f"""INSERT INTO backfill_counts SELECT NEW.workflow_id, NEW.backfill_id, NEW.status, 1
        WHERE {_IS_COUNTED.format(row="NEW")} ON CONFLICT DO UPDATE SET count = count + 1"""
_UNCOUNT: Final = f"""UPDATE backfill_counts SET count = count - 1 WHERE {_IS_COUNTED.format(row="OLD")}
        AND {_OF_BACKFILL.format(row="OLD")} AND status = OLD.status"""


def _added(totals: Iterable[str]) -> str:
    return ", ".join(f"{total} = {total} + excluded.{total}" for total in totals)


def _kept(table: str, of: str, order: str, most: int) -> str:
    """Only the last rows stay."""
    columns = order.split(", ")
    by = ", ".join(f"{column} DESC" for column in columns)
    return f"""DELETE FROM {table} WHERE {of} AND ({order}) <= (
            SELECT {order} FROM {table} WHERE {of} ORDER BY {by} LIMIT 1 OFFSET {most}
        )"""


SCHEDULE_TABLES: Final = (
    # A time trigger since it was first armed. The columns from `disarmed_position` on tell of the last time that it was
    # disarmed: which due ticks were not started then.
    """CREATE TABLE schedules (
        workflow_id TEXT, trigger_id TEXT, schedule TEXT, catch_up TEXT, fuzzy_max_delay_ms INTEGER,
        is_armed INTEGER NOT NULL DEFAULT 0, armed_at_ms INTEGER, next_at_ms INTEGER, next_due_ms INTEGER,
        started INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
        passed_over INTEGER NOT NULL DEFAULT 0, not_armed INTEGER NOT NULL DEFAULT 0,
        disarmed_position INTEGER, disarmed_at_ms INTEGER, disarmed_reason TEXT,
        missed INTEGER, missed_after_ms INTEGER,
        PRIMARY KEY (workflow_id, trigger_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX schedules_by_disarming ON schedules (workflow_id, disarmed_at_ms, trigger_id) WHERE is_armed = 0",
    # The pause of a time trigger; with an empty `trigger_id`, of all of a workflow.
    """CREATE TABLE schedule_pauses (
        workflow_id TEXT, trigger_id TEXT, author TEXT, reason TEXT, at_ms INTEGER,
        PRIMARY KEY (workflow_id, trigger_id)
    ) WITHOUT ROWID""",
    # The last ticks of a time trigger. Those that were not started one after the other are one row with their count.
    """CREATE TABLE ticks (
        workflow_id TEXT, trigger_id TEXT, position INTEGER, number INTEGER,
        fate TEXT, scheduled_at_ms INTEGER, late_ms INTEGER, instance_id INTEGER, reason TEXT,
        count INTEGER, after_ms INTEGER, upto_ms INTEGER, at_ms INTEGER,
        PRIMARY KEY (workflow_id, trigger_id, position, number)
    ) WITHOUT ROWID""",
    f"""CREATE TRIGGER tick_came AFTER INSERT ON ticks BEGIN
        INSERT INTO schedules (workflow_id, trigger_id, {", ".join(_TOTALS.values())})
            VALUES (NEW.workflow_id, NEW.trigger_id, {_OF_FATE})
            ON CONFLICT DO UPDATE SET {_added(_TOTALS.values())};
        {_kept("ticks", _OF_TRIGGER, "position, number", TICKS_KEPT)};
    END""",
    f"""CREATE TRIGGER schedule_disarmed AFTER UPDATE OF disarmed_position ON schedules WHEN NEW.missed > 0 BEGIN
        INSERT INTO ticks (workflow_id, trigger_id, position, number, fate, reason, count, after_ms, upto_ms, at_ms)
            VALUES (NEW.workflow_id, NEW.trigger_id, NEW.disarmed_position, 0, '{NOT_ARMED}', NEW.disarmed_reason,
                NEW.missed, NEW.missed_after_ms, NEW.disarmed_at_ms, NEW.disarmed_at_ms);
    END""",
    # `newest` is their order in lists. `started` and the like count slots, `backfill_counts` instances by their status.
    """CREATE TABLE backfills (
        workflow_id TEXT, backfill_id TEXT, schedule TEXT, trigger_id TEXT, from_ms INTEGER, to_ms INTEGER,
        is_newest_first INTEGER, is_rerun INTEGER, concurrency INTEGER, run_params TEXT, total INTEGER,
        status TEXT, reason TEXT, author TEXT, created_at_ms INTEGER, started_at_ms INTEGER, ended_at_ms INTEGER,
        changed_by TEXT, changed_at_ms INTEGER, position_ms INTEGER,
        started INTEGER NOT NULL DEFAULT 0, existing INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
        newest INTEGER AS (-created_at_ms),
        PRIMARY KEY (workflow_id, backfill_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX backfills_by_time ON backfills (workflow_id, newest, backfill_id)",
    # What each decision on a backfill has done, since it was started or started again.
    """CREATE TABLE backfill_progress (
        workflow_id TEXT, backfill_id TEXT, position INTEGER, started INTEGER, existing INTEGER, refused INTEGER,
        PRIMARY KEY (workflow_id, backfill_id, position)
    ) WITHOUT ROWID""",
    f"""CREATE TRIGGER backfill_progressed AFTER INSERT ON backfill_progress BEGIN
        INSERT INTO backfills (workflow_id, backfill_id, {", ".join(_PROGRESS)})
            VALUES (NEW.workflow_id, NEW.backfill_id, {", ".join(f"NEW.{name}" for name in _PROGRESS)})
            ON CONFLICT DO UPDATE SET {_added(_PROGRESS)};
    END""",
    f"""CREATE TRIGGER backfill_began_again AFTER DELETE ON backfill_progress BEGIN
        UPDATE backfills SET {", ".join(f"{name} = {name} - OLD.{name}" for name in _PROGRESS)}
            WHERE {_OF_BACKFILL.format(row="OLD")};
    END""",
    # The last slots whose start was refused.
    """CREATE TABLE backfill_refusals (
        workflow_id TEXT, backfill_id TEXT, position INTEGER, scheduled_at_ms INTEGER, reason TEXT,
        PRIMARY KEY (workflow_id, backfill_id, position, scheduled_at_ms)
    ) WITHOUT ROWID""",
    f"""CREATE TRIGGER slot_refused AFTER INSERT ON backfill_refusals BEGIN
        {_kept("backfill_refusals", _OF_BACKFILL.format(row="NEW"), "position, scheduled_at_ms", REFUSALS_KEPT)};
    END""",
    """CREATE TABLE backfill_counts (
        workflow_id TEXT, backfill_id TEXT, status TEXT, count INTEGER,
        PRIMARY KEY (workflow_id, backfill_id, status)
    ) WITHOUT ROWID""",
    "CREATE INDEX instances_by_backfill ON instances (workflow_id, backfill_id) WHERE backfill_id IS NOT NULL",
    f"CREATE TRIGGER slot_came AFTER INSERT ON instances WHEN {_IS_COUNTED.format(row='NEW')} BEGIN {_COUNT}; END",
    f"""CREATE TRIGGER slot_changed AFTER UPDATE OF status, created_at_ms, backfill_id ON instances
    WHEN NEW.backfill_id IS NOT NULL AND (
        OLD.status IS NOT NEW.status OR OLD.created_at_ms IS NOT NEW.created_at_ms
        OR OLD.backfill_id IS NOT NEW.backfill_id
    ) BEGIN
        {_UNCOUNT};
        {_COUNT};
    END""",
    f"CREATE TRIGGER slot_went AFTER DELETE ON instances WHEN {_IS_COUNTED.format(row='OLD')} BEGIN {_UNCOUNT}; END",
)
FORGET_SCHEDULES: Final = tuple(
    f"DELETE FROM {table} WHERE workflow_id = ?"
    for table in (
        *("schedules", "schedule_pauses", "ticks"),
        *("backfill_progress", "backfill_refusals", "backfill_counts", "backfills"),
    )
)
