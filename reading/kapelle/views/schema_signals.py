"""Tables of the view for signals: announcements, subscriptions, and the verdict of each subscription on each signal."""

from typing import Final

_COUNTERS: Final = (("DUPLICATED", "duplicates"), ("TOO_LATE", "too_late"))

SIGNAL_TABLES: Final = (
    # Signals are numbered without gaps. Those above the floor are all there; of the others, some have left.
    """CREATE TABLE signal_names (
        name TEXT PRIMARY KEY, sequence INTEGER DEFAULT 0, floor INTEGER, at_ms INTEGER, subscribed_at_ms INTEGER,
        too_late_at_ms INTEGER, duplicates INTEGER DEFAULT 0, too_late INTEGER DEFAULT 0
    ) WITHOUT ROWID""",
    # `position` is the offset of the event: what stood before it was so when the signal came.
    """CREATE TABLE signals (
        name TEXT, sequence INTEGER, signal_id TEXT, params TEXT, payload TEXT, source TEXT,
        happened_at_ms INTEGER, at_ms INTEGER, position INTEGER,
        workflow_id TEXT, instance_id INTEGER, step_id TEXT,
        PRIMARY KEY (name, sequence)
    ) WITHOUT ROWID""",
    "CREATE INDEX signals_by_id ON signals (name, signal_id)",
    "CREATE INDEX signals_by_source ON signals (workflow_id, instance_id) WHERE workflow_id IS NOT NULL",
    # Announcements that were not accepted: duplicates, and those that arrived too late.
    """CREATE TABLE unaccepted_signals (
        name TEXT, position INTEGER, signal_id TEXT, status TEXT, first_sequence INTEGER,
        happened_at_ms INTEGER, floor_at_ms INTEGER, source TEXT, at_ms INTEGER,
        workflow_id TEXT, instance_id INTEGER, step_id TEXT,
        PRIMARY KEY (name, position)
    ) WITHOUT ROWID""",
    "CREATE INDEX unaccepted_signals_by_id ON unaccepted_signals (name, signal_id, position)",
    "CREATE INDEX unaccepted_signals_by_first ON unaccepted_signals (name, first_sequence, position)",
    """CREATE INDEX unaccepted_signals_by_source ON unaccepted_signals (workflow_id, instance_id)
        WHERE workflow_id IS NOT NULL""",
    *(
        f"""CREATE TRIGGER {column}_came AFTER INSERT ON unaccepted_signals WHEN NEW.status = '{status}' BEGIN
            INSERT INTO signal_names (name, {column}) VALUES (NEW.name, 1)
            ON CONFLICT DO UPDATE SET {column} = {column} + 1;
        END"""  # noqa: S608 - of our own words
        for status, column in _COUNTERS
    ),
    *(
        f"""CREATE TRIGGER {column}_went AFTER DELETE ON unaccepted_signals WHEN OLD.status = '{status}' BEGIN
            UPDATE signal_names SET {column} = {column} - 1 WHERE name = OLD.name;
        END"""  # noqa: S608
        for status, column in _COUNTERS
    ),
    # Subscriptions to a name, each with its beginning and its end; `ended` is 0 while one is active.
    """CREATE TABLE subscriptions (
        name TEXT, subscription TEXT, position INTEGER, ended INTEGER DEFAULT 0, match TEXT,
        workflow_id TEXT, trigger_id TEXT, instance_id INTEGER, step_id TEXT, number INTEGER, at_ms INTEGER,
        PRIMARY KEY (name, subscription, position)
    ) WITHOUT ROWID""",
    "CREATE INDEX subscriptions_by_end ON subscriptions (name, ended, subscription, position)",
    """CREATE INDEX subscriptions_by_instance ON subscriptions (workflow_id, instance_id)
        WHERE instance_id IS NOT NULL""",
    """CREATE TABLE offers (
        name TEXT, sequence INTEGER, subscription TEXT, at_ms INTEGER,
        PRIMARY KEY (name, sequence, subscription)
    ) WITHOUT ROWID""",
    """CREATE TABLE step_signals (
        workflow_id TEXT, instance_id INTEGER, step_id TEXT, number INTEGER, name TEXT, sequence INTEGER,
        run_id INTEGER, at_ms INTEGER,
        PRIMARY KEY (workflow_id, instance_id, step_id, number, name, sequence)
    ) WITHOUT ROWID""",
    "CREATE INDEX step_signals_by_signal ON step_signals (name, sequence)",
    """CREATE TABLE triggers (
        workflow_id TEXT, trigger_id TEXT, version INTEGER, definition TEXT, is_armed INTEGER,
        armed_at_ms INTEGER, disarmed_at_ms INTEGER,
        PRIMARY KEY (workflow_id, trigger_id)
    ) WITHOUT ROWID""",
    # What a trigger made of a signal: the latest of it.
    """CREATE TABLE trigger_signals (
        workflow_id TEXT, trigger_id TEXT, name TEXT, sequence INTEGER, verdict TEXT, join_value TEXT, reason TEXT,
        request_id TEXT, partners TEXT, expires_at_ms INTEGER, at_ms INTEGER, position INTEGER,
        PRIMARY KEY (workflow_id, trigger_id, name, sequence)
    ) WITHOUT ROWID""",
    "CREATE INDEX trigger_signals_by_signal ON trigger_signals (name, sequence)",
    "CREATE INDEX trigger_signals_by_start ON trigger_signals (request_id) WHERE request_id IS NOT NULL",
    """CREATE INDEX trigger_signals_kept ON trigger_signals (workflow_id, trigger_id, join_value, name, sequence)
        WHERE verdict = 'KEPT'""",
    "CREATE INDEX trigger_signals_by_verdict ON trigger_signals (workflow_id, trigger_id, verdict, position)",
)
