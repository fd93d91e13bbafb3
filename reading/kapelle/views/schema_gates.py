"""Tables of the view for what holds steps before they start: breakpoints, and permits with their holders and queues.

Whether an attempt is paused is read off its status, and how many hold a permit or wait for one is read off their rows:
triggers keep both, so nothing is counted when somebody looks.
"""

from typing import Final

GONE: Final = 0
WAITS: Final = 1
HOLDS: Final = 2
TREES: Final = "tree"

_ATTEMPT: Final = ("workflow_id", "instance_id", "run_id", "step_id", "iteration", "attempt")
_SAME_ATTEMPT: Final = " AND ".join(f"{name} = NEW.{name}" for name in _ATTEMPT)
_HOME: Final = """COALESCE((
        SELECT home_workflow FROM instances WHERE workflow_id = NEW.workflow_id AND instance_id = NEW.instance_id
    ), NEW.workflow_id)"""
_PAUSES: Final = f"""INSERT INTO pauses SELECT {", ".join(f"NEW.{name}" for name in _ATTEMPT)}, NEW.paused_at_ms,
    {_HOME} WHERE NEW.status = 'PAUSED' ON CONFLICT DO NOTHING"""
_FINDS_HOME: Final = """UPDATE pauses SET home_workflow = NEW.home_workflow
        WHERE workflow_id = NEW.workflow_id AND instance_id = NEW.instance_id"""
_SAME_PERMIT: Final = " AND ".join(
    f"{name} = NEW.{name}" for name in ("limited", "key", "step_id", "run_id", "iteration", "attempt")
)
_NO_ROW: Final = f"DELETE FROM permits WHERE NEW.state = {GONE} AND {_SAME_PERMIT}"  # noqa: S608
# Trees are named after instances: of those, only the limits are listed for which an attempt holds a permit or waits.
IN_FORCE: Final = f"max IS NOT NULL AND (kind <> '{TREES}' OR held > 0 OR waiting > 0)"

GATE_TABLES: Final = (
    # A field that matches everything is 0.
    """CREATE TABLE breakpoints (
        workflow_id TEXT, step_id TEXT, version INTEGER, instance_id INTEGER, run_id INTEGER, attempt INTEGER,
        author TEXT, at_ms INTEGER,
        PRIMARY KEY (workflow_id, step_id, version, instance_id, run_id, attempt)
    ) WITHOUT ROWID""",
    # The attempts that are paused now. The home of an iteration or a round is the workflow that people know.
    f"""CREATE TABLE pauses (
        {", ".join(f"{name} {'TEXT' if name in ('workflow_id', 'step_id') else 'INTEGER'}" for name in _ATTEMPT)},
        at_ms INTEGER, home_workflow TEXT, PRIMARY KEY ({", ".join(_ATTEMPT)})
    ) WITHOUT ROWID""",
    "CREATE INDEX pauses_by_time ON pauses (at_ms, workflow_id, instance_id, run_id, step_id, iteration, attempt)",
    """CREATE INDEX pauses_by_home
        ON pauses (home_workflow, at_ms, workflow_id, instance_id, run_id, step_id, iteration, attempt)""",
    """CREATE INDEX pauses_by_step
        ON pauses (home_workflow, step_id, at_ms, workflow_id, instance_id, run_id, iteration, attempt)""",
    f"CREATE TRIGGER attempt_came_paused AFTER INSERT ON attempts WHEN NEW.status = 'PAUSED' BEGIN {_PAUSES}; END",
    f"""CREATE TRIGGER attempt_paused AFTER UPDATE OF status ON attempts
    WHEN OLD.status IS NOT NEW.status AND (OLD.status = 'PAUSED' OR NEW.status = 'PAUSED') BEGIN
        DELETE FROM pauses WHERE {_SAME_ATTEMPT};
        {_PAUSES};
    END""",  # noqa: S608
    # Tables are written in any order: the home of an instance may become known after its steps.
    f"""CREATE TRIGGER home_came AFTER INSERT ON instances WHEN NEW.home_workflow IS NOT NULL BEGIN
        {_FINDS_HOME};
    END""",
    f"""CREATE TRIGGER home_changed AFTER UPDATE OF home_workflow ON instances
    WHEN OLD.home_workflow IS NOT NEW.home_workflow AND NEW.home_workflow IS NOT NULL BEGIN
        {_FINDS_HOME};
    END""",
    # What is limited, or was asked about: `max` is null if there is no limit.
    """CREATE TABLE limits (
        limited TEXT PRIMARY KEY, kind TEXT, max INTEGER, author TEXT, extra TEXT, set_at_ms INTEGER,
        held INTEGER NOT NULL DEFAULT 0, waiting INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID""",
    f"CREATE INDEX limits_in_force ON limits (limited) WHERE {IN_FORCE}",
    f"CREATE INDEX limits_by_kind ON limits (kind, held, waiting) WHERE {IN_FORCE}",
    """CREATE TABLE limit_notes (
        limited TEXT, position INTEGER, author TEXT, log TEXT, at_ms INTEGER, PRIMARY KEY (limited, position)
    ) WITHOUT ROWID""",
    # The attempts that hold a permit or wait for one. `class` is 0 for CRITICAL. One that is over leaves no row.
    """CREATE TABLE permits (
        limited TEXT, key TEXT, step_id TEXT, run_id INTEGER, iteration INTEGER, attempt INTEGER,
        state INTEGER, kind TEXT, workflow_id TEXT, class INTEGER, turn INTEGER, ticket INTEGER,
        queued_at_ms INTEGER, granted_at_ms INTEGER,
        PRIMARY KEY (limited, key, step_id, run_id, iteration, attempt)
    ) WITHOUT ROWID""",
    f"CREATE INDEX permits_held ON permits (limited, ticket) WHERE state = {HOLDS}",
    f"CREATE INDEX permits_waiting ON permits (limited, class, turn, ticket) WHERE state = {WAITS}",
    f"CREATE INDEX permits_by_wait ON permits (limited, queued_at_ms) WHERE state = {WAITS}",
    f"CREATE INDEX permits_by_kind ON permits (kind, queued_at_ms) WHERE state = {WAITS}",
    f"""CREATE TRIGGER permit_came AFTER INSERT ON permits BEGIN
        INSERT INTO limits (limited, kind, held, waiting)
            SELECT NEW.limited, NEW.kind, NEW.state = {HOLDS}, NEW.state = {WAITS} WHERE NEW.state <> {GONE}
            ON CONFLICT DO UPDATE SET held = held + excluded.held, waiting = waiting + excluded.waiting;
        {_NO_ROW};
    END""",
    f"""CREATE TRIGGER permit_changed AFTER UPDATE OF state ON permits WHEN OLD.state <> NEW.state BEGIN
        UPDATE limits SET held = held + (NEW.state = {HOLDS}) - (OLD.state = {HOLDS}),
            waiting = waiting + (NEW.state = {WAITS}) - (OLD.state = {WAITS}) WHERE limited = NEW.limited;
        {_NO_ROW};
    END""",  # noqa: S608
)
