"""The tables of the view by which instances are found: by time, status, workflow and label, and how many there are.

A list of instances is always in the order of their creation, the latest first. So every index by which one may be asked
for ends with that order, and a page reads about as many rows as it shows, however many there are.
"""

from typing import Final

_PLUS_ONE: Final = "ON CONFLICT DO UPDATE SET count = count + 1"
_IS_COUNTED: Final = "NEW.created_at_ms IS NOT NULL AND NEW.status IS NOT NULL"
_OF_OLD: Final = (
    "workflow_id IN (OLD.workflow_id, CASE WHEN OLD.home_workflow IS NULL THEN '' END) AND status = OLD.status"
)
# Iterations and rounds are found through their parents. The list of all instances and its counts are without them.
OF_PEOPLE: Final = "created_at_ms IS NOT NULL AND home_workflow IS NULL"

INSTANCE_TABLES: Final = (
    # `grade` rises with the run and, within a run, with its status: the latest run, whichever stream tells of it first.
    # An instance without `created_at_ms` is not there: not created yet as far as we know, or of a deleted workflow.
    # The columns from `parent_workflow` to `depth` are those of a child. `launch` is the run and the attempt of the
    # step that started it last. Iterations and rounds have a home: the nearest ancestor that is neither. `backfill_id`
    # is the backfill that the first run is part of.
    """CREATE TABLE instances (
        workflow_id TEXT, instance_id INTEGER, run_id INTEGER, status TEXT, grade INTEGER, created_at_ms INTEGER,
        parent_workflow TEXT, parent_instance INTEGER, parent_step TEXT, number INTEGER, kind TEXT, launch TEXT,
        is_sync INTEGER, home_workflow TEXT, home_instance INTEGER, root TEXT, depth INTEGER, backfill_id TEXT,
        PRIMARY KEY (workflow_id, instance_id)
    ) WITHOUT ROWID""",
    f"""CREATE INDEX instances_by_status ON instances (status, created_at_ms, workflow_id, instance_id)
        WHERE {OF_PEOPLE}""",
    """CREATE INDEX instances_by_workflow_status ON instances (workflow_id, status, created_at_ms, instance_id)
        WHERE created_at_ms IS NOT NULL""",
    """CREATE INDEX instances_by_parent
        ON instances (parent_workflow, parent_instance, parent_step, status, number, workflow_id, instance_id, launch)
        WHERE parent_workflow IS NOT NULL""",
    "CREATE INDEX instances_by_home ON instances (home_workflow, home_instance) WHERE home_workflow IS NOT NULL",
    "CREATE INDEX instances_hidden ON instances (status) WHERE created_at_ms IS NULL",
    # What else an instance can be found by: `tag:…`, `param:…=…` and `initiator:…`.
    """CREATE TABLE labels (
        label TEXT, created_at_ms INTEGER, workflow_id TEXT, instance_id INTEGER,
        PRIMARY KEY (label, created_at_ms, workflow_id, instance_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX labels_by_instance ON labels (workflow_id, instance_id)",
    # The tags that instances get from their version; version 0 are those of the properties.
    """CREATE TABLE declared_tags (
        workflow_id TEXT, version INTEGER, tag TEXT, PRIMARY KEY (workflow_id, version, tag)
    ) WITHOUT ROWID""",
    # How many instances there are, by workflow and over all (workflow ''): to count a million takes too long.
    """CREATE TABLE counts (
        workflow_id TEXT, status TEXT, count INTEGER, PRIMARY KEY (workflow_id, status)
    ) WITHOUT ROWID""",
    f"""CREATE TRIGGER instance_came AFTER INSERT ON instances WHEN {_IS_COUNTED} BEGIN
        INSERT INTO counts VALUES (NEW.workflow_id, NEW.status, 1) {_PLUS_ONE};
        INSERT INTO counts SELECT '', NEW.status, 1 WHERE NEW.home_workflow IS NULL {_PLUS_ONE};
    END""",  # noqa: S608 - of our own words
    f"""CREATE TRIGGER instance_changed AFTER UPDATE OF status, created_at_ms ON instances
    WHEN OLD.status IS NOT NEW.status OR OLD.created_at_ms IS NOT NEW.created_at_ms BEGIN
        UPDATE counts SET count = count - 1 WHERE OLD.created_at_ms IS NOT NULL AND {_OF_OLD};
        INSERT INTO counts SELECT NEW.workflow_id, NEW.status, 1 WHERE {_IS_COUNTED} {_PLUS_ONE};
        INSERT INTO counts SELECT '', NEW.status, 1 WHERE {_IS_COUNTED} AND NEW.home_workflow IS NULL {_PLUS_ONE};
    END""",  # noqa: S608
    f"""CREATE TRIGGER instance_went AFTER DELETE ON instances WHEN OLD.created_at_ms IS NOT NULL BEGIN
        UPDATE counts SET count = count - 1 WHERE {_OF_OLD};
    END""",  # noqa: S608
)
