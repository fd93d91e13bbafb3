"""The leaves of a tree of instances by status, and which of them somebody may want to look at.

What is below composite steps is counted as it changes (`kapelle.views.leaves`): a look costs the same whatever the size
of the tree. References are limited, so a tree of which everything fails is read as soon as any other.
"""

import sqlite3
from typing import Final

from kapelle.processors.keys import run_key
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind
from kapelle.views.leaves import REFERRED, ancestors_of, path_of
from kapelle.views.queries.pages import TEXT_MAX
from kapelle.views.queries.records import Record

REFS_MAX: Final = 100  # of each status

Counts = dict[str, int]
StepAt = tuple[str, int, str]  # workflow, instance and step


def counts_below(connection: sqlite3.Connection, at: tuple[str, int]) -> dict[str, Counts]:
    """How many leaves of which status are below each composite step of an instance that waits for its children."""
    steps = connection.execute(
        """SELECT DISTINCT step_id FROM fans
        WHERE workflow_id = ? AND instance_id = ? AND has_children = 1 AND is_sync = 1""",
        at,
    ).fetchall()
    found: dict[str, Counts] = {row["step_id"]: {} for row in steps}
    rows = connection.execute(
        "SELECT step_id, status, count FROM rollups WHERE workflow_id = ? AND instance_id = ? AND count > 0", at
    )
    for step_id, status, count in rows:
        found.setdefault(step_id, {})[status] = count
    return found


def rollup_below(connection: sqlite3.Connection, at: StepAt) -> Record:
    """The leaves below one step."""
    counts = counts_below(connection, at[:2]).get(at[2], {})
    found = {status: {"cnt": count} for status, count in counts.items()}
    for status in found:
        add_refs(found, status, _refs(connection, status, _below_step(connection, at)))
    return {"total_leaf_count": sum(counts.values()), "overview": found}


def _below_step(connection: sqlite3.Connection, at: StepAt) -> list[str]:
    """What the paths of all children of a step begin with."""
    instance, step_id = at[:2], at[2]
    path = path_of(ancestors_of(connection, instance), instance)
    row = connection.execute(
        """SELECT kind, child FROM fans WHERE workflow_id = ? AND instance_id = ? AND step_id = ?
        ORDER BY run_id DESC, iteration DESC, attempt DESC LIMIT 1""",
        at,
    ).fetchone()
    if row is None:
        return []
    if row["kind"] == ChildKind.SUBWORKFLOW:
        return [f"{path}{row['child']}>"]
    return [f"{path}{inline_id(ChildKind(row['kind']), run_key(*instance), step_id)}/"]


def refs_below(connection: sqlite3.Connection, at: tuple[str, int], status: str) -> list[sqlite3.Row]:
    """The leaves of a status below an instance: the first ones, if there are many."""
    return _refs(connection, status, [path_of(ancestors_of(connection, at), at)])


def _refs(connection: sqlite3.Connection, status: str, paths: list[str]) -> list[sqlite3.Row]:
    if status not in REFERRED:
        return []
    found: list[sqlite3.Row] = []
    for path in paths:
        found += connection.execute(
            """SELECT workflow_id, instance_id, step_id, run_id, attempt FROM leaves INDEXED BY leaves_by_path
            WHERE status = ? AND path > ? AND path < ? ORDER BY path LIMIT ?""",
            (status, path, f"{path}{TEXT_MAX}", REFS_MAX),
        ).fetchall()
    return found


def add_refs(overview: dict[str, Record], status: str, leaves: list[sqlite3.Row]) -> None:
    """Name leaves, each under its workflow and run."""
    for one in leaves:
        where = overview[status].setdefault("ref", {}).setdefault(f"{one['workflow_id']}:{one['run_id']}", [])
        where.append(f"{one['instance_id']}:{one['step_id']}:{one['attempt']}")
