"""The leaves of a tree of instances: the steps that do work, and what they count as in the steps above.

1. A composite step is counted by its children while the attempt that planned them is its present one, it waits for
   them, and it has started one. Otherwise it counts itself.
2. Of its children those count that belong to this plan or that it has kept: iterations that were launched by an attempt
   since the first one that is kept, rounds up to the last one, the child of the present attempt of a subworkflow step.
3. A step that a restart resets does not count until it is created again, nor do its children.
4. What changes is added up over a batch, so that a row of counts is written once however many leaves changed.

Events of different instances come in any order. So every change is made to what is known, by three steps that each
leave the counts correct: children move to the bucket of their latest run, leaves change their status, and composite
steps change which buckets count (`kapelle.views.tallies`).
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.runs.states import FAILED
from kapelle.schemas.contracts import ChildKind, StepStatus
from kapelle.views.rows import Cell, Cells
from kapelle.views.tallies import Hop, Instance, Span, Tallies, path_of

# Of these the rollup names each leaf: somebody may want to look at it.
REFERRED: Final = FAILED | {
    StepStatus.PAUSED,
    StepStatus.WAITING_FOR_SIGNALS,
    StepStatus.EVALUATING_PARAMS,
    StepStatus.WAITING_FOR_PERMITS,
    StepStatus.RUNNING,
}
COLUMNS: Final = (
    *("status", "run_id", "iteration", "attempt", "kind", "plan", "since", "last", "has_children", "is_sync"),
    *("low", "high"),
)
NOTHING_KNOWN: Final[Cells] = dict.fromkeys(COLUMNS)
KNOWN: Final = f"SELECT {', '.join(COLUMNS)} FROM leaves WHERE workflow_id = ? AND instance_id = ? AND step_id = ?"  # noqa: S608 - of our own words
PUT: Final = f"INSERT OR REPLACE INTO leaves VALUES ({', '.join('?' * (len(COLUMNS) + 4))})"  # noqa: S608 - of our own words

# For each child of which a run has begun: the steps that wait for it, as JSON, and its bucket.
Descents = dict[Instance, tuple[str, str]]
Leaves = dict[Instance, dict[str, Cells]]


class Changes(msgspec.Struct):
    """What is written when all steps of a batch are known: their rows, and those that turn to other buckets."""

    rows: list[tuple[Cell, ...]] = []
    turned: list[tuple[Hop, Span | None, Span | None]] = []


def launch_of(run_id: int, iteration: int, attempt: int) -> str:
    """The attempt of a step, as text. Later attempts are greater."""
    return f"{run_id:010d}.{iteration:06d}.{attempt:06d}"


def round_bucket(number: int) -> str:
    """The bucket of a round. Later rounds are greater."""
    return f"{number:08d}"


def bucket_of(kind: ChildKind, number: int, launch: str) -> str:
    """Where a child counts: children of one bucket begin and cease to count together."""
    return round_bucket(number) if kind is ChildKind.WHILE else launch


def write_leaves(
    connection: sqlite3.Connection,
    descents: Mapping[Instance, tuple[str, str]],
    leaves: Mapping[Instance, Mapping[str, Cells]],
) -> None:
    """Change steps, and what is counted above them."""
    tallies = Tallies(connection)
    for instance, (ancestors, bucket) in descents.items():
        tallies.place(instance, ancestors, bucket)
    changes = Changes()
    for instance, steps in leaves.items():
        _change(connection, tallies, changes, instance, steps)
    tallies.flush()
    connection.executemany(PUT, changes.rows)
    for hop, before, after in changes.turned:
        tallies.turn(hop, before, after)


def _change(
    connection: sqlite3.Connection, tallies: Tallies, changes: Changes, instance: Instance, steps: Mapping[str, Cells]
) -> None:
    """Change the steps of one instance. Of an instance that nobody waits for, only steps with children are kept."""
    ancestors = tallies.ancestors(instance)
    is_child, path = bool(ancestors), path_of(ancestors, instance)
    sums: Counter[Cell] = Counter()
    for step_id, cells in steps.items():
        row = connection.execute(KNOWN, (*instance, step_id)).fetchone()
        if row is None and not is_child and "plan" not in cells:
            continue
        old: Cells = NOTHING_KNOWN if row is None else dict(zip(COLUMNS, row, strict=True))
        new: Cells = {**old, **cells}
        if new["plan"] is not None and new["since"] is None:
            new["since"] = new["plan"]  # the view has let go of what came before
        was, span = _span(old), _present_span(new)
        new["low"], new["high"] = span or (None, None)
        before, after = _counted(old), _counted(new)
        is_shown = is_child and after is not None and after in REFERRED
        changes.rows.append((*instance, step_id, *(new[name] for name in COLUMNS), path if is_shown else None))
        if before != after:
            sums[before] -= 1
            sums[after] += 1
        if was != span:
            changes.turned.append(((*instance, step_id), was, span))
            tallies.hold((*instance, step_id), was)
    del sums[None]
    tallies.add(instance, {str(status): count for status, count in sums.items() if count})


def _present_span(leaf: Cells) -> Span | None:
    """The buckets that count in place of a composite step: the first one and the last one."""
    if not is_present(leaf) or not leaf["has_children"] or leaf["is_sync"] == 0:
        return None
    if leaf["kind"] == ChildKind.WHILE:
        return "", round_bucket(_number(leaf["last"]))
    return str(leaf["since"]), str(leaf["plan"])


def is_present(leaf: Cells) -> bool:
    """Whether the present attempt of a step is the one that has planned its children."""
    if leaf["status"] is None or leaf["plan"] is None:
        return False
    return leaf["plan"] == launch_of(*(_number(leaf[name]) for name in ("run_id", "iteration", "attempt")))


def _number(cell: Cell) -> int:
    return int(cell or 0)


def _span(leaf: Cells) -> Span | None:
    return None if leaf["low"] is None else (str(leaf["low"]), str(leaf["high"]))


def _counted(leaf: Cells) -> Cell:
    """The status that a step counts in; None if it does not count."""
    return leaf["status"] if leaf["low"] is None else None
