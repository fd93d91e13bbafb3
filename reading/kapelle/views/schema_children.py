"""The tables of the view about composite steps: what they have started, what children share, and the leaves below.

The leaves of a tree are counted as they change, so a look at a loop costs the same with ten iterations and with 25,000.
"""

from typing import Final

CHILD_TABLES: Final = (
    # What an attempt of a composite step has planned and launched.
    """CREATE TABLE fans (
        workflow_id TEXT, instance_id INTEGER, run_id INTEGER, step_id TEXT, iteration INTEGER, attempt INTEGER,
        kind TEXT, total INTEGER, fan_run INTEGER, kept_since INTEGER, first INTEGER, next INTEGER, is_sync INTEGER,
        has_children INTEGER, last_values TEXT, child TEXT, child_run_id INTEGER, child_version INTEGER,
        last_number INTEGER, last_status TEXT, carried TEXT, ending TEXT,
        PRIMARY KEY (workflow_id, instance_id, run_id, step_id, iteration, attempt)
    ) WITHOUT ROWID""",
    # Texts that many iterations have in common: layers of parameters, and the definition of a block. They stay: the
    # log has a text once for each partition, so one that has left could be missed by later iterations.
    "CREATE TABLE shared (digest TEXT PRIMARY KEY, text TEXT)",
    "CREATE INDEX fans_by_step ON fans (workflow_id, instance_id, step_id, fan_run)",
    # The steps above a child that wait for it, from the top: an array of workflow, instance and step for each. `bucket`
    # is where its latest run counts in the nearest of them.
    """CREATE TABLE descents (
        workflow_id TEXT, instance_id INTEGER, ancestors TEXT, bucket TEXT, PRIMARY KEY (workflow_id, instance_id)
    ) WITHOUT ROWID""",
    # The steps of children as they are now, and all steps that have children. One without a status waits for a restart
    # to create it. `plan` is the attempt that planned children last, `since` the first one whose children are kept, and
    # `last` the last round. `low` and `high` are the buckets that count in place of the step. Leaves that somebody may
    # want to look at have the path from the top to their instance.
    """CREATE TABLE leaves (
        workflow_id TEXT, instance_id INTEGER, step_id TEXT, status TEXT, run_id INTEGER, iteration INTEGER,
        attempt INTEGER, kind TEXT, plan TEXT, since TEXT, last INTEGER, has_children INTEGER, is_sync INTEGER,
        low TEXT, high TEXT, path TEXT,
        PRIMARY KEY (workflow_id, instance_id, step_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX leaves_by_path ON leaves (status, path) WHERE path IS NOT NULL",
    # How many leaves there are below a composite step, in all children that it has ever had.
    """CREATE TABLE buckets (
        workflow_id TEXT, instance_id INTEGER, step_id TEXT, bucket TEXT, status TEXT, count INTEGER,
        PRIMARY KEY (workflow_id, instance_id, step_id, bucket, status)
    ) WITHOUT ROWID""",
    # The sum of the buckets that count now.
    """CREATE TABLE rollups (
        workflow_id TEXT, instance_id INTEGER, step_id TEXT, status TEXT, count INTEGER,
        PRIMARY KEY (workflow_id, instance_id, step_id, status)
    ) WITHOUT ROWID""",
)
