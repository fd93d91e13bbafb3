"""Counting the leaves of a tree of instances: the steps that do work, by status, below each composite step.

1. A step of a child counts once below each of the steps that wait for it, in its present status.
2. A composite step does not count itself once it has children that it waits for: they count in its place.
3. A step that a restart resets does not count until it is created again.
4. What changes is added up over a batch, so that a row of counts is written once however many leaves changed.

The changes of an instance come in their order, and sums do not depend on the order of instances.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.runs.states import FAILED
from kapelle.schemas.contracts import StepStatus
from kapelle.views.rows import Cell, Cells

# Of these the rollup names each leaf: somebody may want to look at it.
REFERRED: Final = FAILED | {
    StepStatus.PAUSED,
    StepStatus.WAITING_FOR_SIGNALS,
    StepStatus.EVALUATING_PARAMS,
    StepStatus.WAITING_FOR_PERMITS,
    StepStatus.RUNNING,
}
COLUMNS: Final = ("status", "run_id", "attempt", "has_children", "is_sync")
ANCESTORS: Final = "SELECT ancestors FROM descents WHERE workflow_id = ? AND instance_id = ?"
KNOWN: Final = f"SELECT {', '.join(COLUMNS)} FROM leaves WHERE workflow_id = ? AND instance_id = ? AND step_id = ?"  # noqa: S608 - of our own words
PUT: Final = "INSERT OR REPLACE INTO leaves VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
ADD: Final = "INSERT INTO rollups VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET count = count + ?5"

Instance = tuple[str, int]
Hop = tuple[str, int, str]  # workflow, instance and step
Leaves = dict[Instance, dict[str, Cells]]

hops_of: Final = msgspec.json.Decoder(tuple[Hop, ...]).decode


def path_of(ancestors: tuple[Hop, ...], instance: Instance) -> str:
    """The way from the top to an instance, as text. Paths of those below begin with it."""
    above = [f"{workflow_id}/{number}>" for workflow_id, number, _ in ancestors]
    return f"{''.join(above)}{instance[0]}/{instance[1]}>"


def ancestors_of(connection: sqlite3.Connection, instance: Instance) -> tuple[Hop, ...]:
    """The steps that wait for an instance, from the top; nothing for one that nobody waits for."""
    row = connection.execute(ANCESTORS, instance).fetchone()
    return () if row is None else hops_of(row[0])


def write_leaves(connection: sqlite3.Connection, leaves: Mapping[Instance, Mapping[str, Cells]]) -> None:
    """Change steps, and what is counted above them. The ancestors of their instances must be there already."""
    sums: defaultdict[tuple[str, int, str, Cell], int] = defaultdict(int)
    rows: list[tuple[Cell, ...]] = []
    for instance, steps in leaves.items():
        ancestors = ancestors_of(connection, instance)
        if not ancestors:
            continue
        path = path_of(ancestors, instance)
        for step_id, cells in steps.items():
            found = connection.execute(KNOWN, (*instance, step_id)).fetchone()
            old: Cells = dict.fromkeys(COLUMNS) if found is None else dict(zip(COLUMNS, found, strict=True))
            new: Cells = {**old, **cells}
            before, after = _counted(old), _counted(new)
            is_shown = after is not None and after in REFERRED
            rows.append((*instance, step_id, *(new[name] for name in COLUMNS), path if is_shown else None))
            if before != after:
                for hop in ancestors:
                    sums[*hop, before] -= 1
                    sums[*hop, after] += 1
    connection.executemany(PUT, rows)
    connection.executemany(ADD, [(*at, n) for at, n in sums.items() if n and at[3] is not None])


def _counted(leaf: Cells) -> Cell:
    """The status that a step counts in; None if it does not count."""
    return None if leaf["has_children"] and leaf["is_sync"] != 0 else leaf["status"]
