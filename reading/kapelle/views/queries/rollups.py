"""The leaves of a tree of instances by status, and which of them somebody may want to look at.

What is below composite steps is counted as it changes (`kapelle.views.tallies`): a look costs the same whatever the
size of the tree. References name the leaves that are counted, and no others. They are limited, so a tree of which
everything fails is read as soon as any other.
"""

import sqlite3
from collections.abc import Mapping
from typing import Final

from kapelle.processors.keys import run_key
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind
from kapelle.views.leaves import REFERRED, round_bucket
from kapelle.views.queries.pages import TEXT_MAX
from kapelle.views.queries.records import Record
from kapelle.views.tallies import DESCENT, SPAN, Hop, Instance, Span, ancestors_of, counts_in, path_of

REFS_MAX: Final = 100  # of each status

COMPOSITES: Final = """SELECT step_id FROM leaves
    WHERE workflow_id = ? AND instance_id = ? AND low IS NOT NULL"""
RESET: Final = """SELECT step_id FROM leaves
    WHERE workflow_id = ? AND instance_id = ? AND plan IS NOT NULL AND status IS NULL"""
COUNTS: Final = "SELECT step_id, status, count FROM rollups WHERE workflow_id = ? AND instance_id = ? AND count > 0"
COUNTS_OF_STEP: Final = """SELECT status, count FROM rollups
    WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND count > 0"""
COUNTS_OF_BUCKET: Final = """SELECT status, count FROM buckets
    WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND bucket = ? AND count > 0"""
REFERENCES: Final = """SELECT workflow_id, instance_id, step_id, run_id, attempt, path
    FROM leaves INDEXED BY leaves_by_path
    WHERE status = ? AND path > ? AND path < ? ORDER BY path"""
CHILD: Final = """SELECT f.kind, f.child FROM fans f JOIN leaves l
    ON l.workflow_id = f.workflow_id AND l.instance_id = f.instance_id AND l.step_id = f.step_id
        AND l.run_id = f.run_id AND l.iteration = f.iteration AND l.attempt = f.attempt
    WHERE l.workflow_id = ? AND l.instance_id = ? AND l.step_id = ?"""

Counts = dict[str, int]


def counts_below(connection: sqlite3.Connection, at: Instance) -> dict[str, Counts]:
    """How many leaves of which status are below each composite step that its children count for."""
    counts: dict[str, Counts] = {row["step_id"]: {} for row in connection.execute(COMPOSITES, at)}
    for step_id, status, count in connection.execute(COUNTS, at):
        counts.setdefault(step_id, {})[status] = count
    return counts


def reset_steps(connection: sqlite3.Connection, at: Instance) -> set[str]:
    """The steps that had children, and that a restart or the next turn of a loop has yet to create again."""
    return {row["step_id"] for row in connection.execute(RESET, at)}


def rollup_below(connection: sqlite3.Connection, at: Hop, *, last: int | None = None) -> Record:
    """The leaves below one step; of a while step with this last round, those of the rounds before it."""
    counts: Counts = dict(tuple(row) for row in connection.execute(COUNTS_OF_STEP, at))
    span: Span | None = None
    if last is not None:
        span = "", round_bucket(last - 1)
        of_last = dict(tuple(row) for row in connection.execute(COUNTS_OF_BUCKET, (*at, round_bucket(last))))
        less = {status: count - of_last.get(status, 0) for status, count in counts.items()}
        counts = {status: count for status, count in less.items() if count > 0}
    overview: dict[str, Record] = {status: {"cnt": count} for status, count in counts.items()}
    for status, count in counts.items():
        add_refs(overview[status], refs_below(connection, at, status, min(count, REFS_MAX), span))
    return {"total_leaf_count": sum(counts.values()), "overview": overview}


def refs_below(
    connection: sqlite3.Connection, at: Hop, status: str, limit: int, span: Span | None = None
) -> list[sqlite3.Row]:
    """The first leaves of a status that count below a step, or that count in some of its buckets."""
    if status not in REFERRED or limit <= 0:
        return []
    return References(connection, status, limit, {at: span} if span is not None else {}).below(at)


class References:
    """A search for the leaves of a status that count: an instance that does not count is left out as a whole."""

    def __init__(self, connection: sqlite3.Connection, status: str, limit: int, spans: Mapping[Hop, Span]) -> None:
        self._connection = connection
        self._status = status
        self._limit = limit
        self._spans: dict[Hop, Span | None] = dict(spans)
        self._counting: dict[Instance, bool] = {}

    def below(self, at: Hop) -> list[sqlite3.Row]:
        """Those below one step."""
        rows: list[sqlite3.Row] = []
        prefix = self._prefix(at)
        after = prefix
        while prefix is not None and len(rows) < self._limit:
            for row in self._connection.execute(REFERENCES, (self._status, after, f"{prefix}{TEXT_MAX}")):
                left_out = self._left_out(at, (row["workflow_id"], row["instance_id"]))
                if left_out is not None:
                    after = f"{left_out}{TEXT_MAX}"
                    break
                rows.append(row)
                if len(rows) == self._limit:
                    return rows
            else:
                return rows
        return rows

    def _prefix(self, at: Hop) -> str | None:
        """What the paths of all present children of a step begin with."""
        instance, step_id = at[:2], at[2]
        row = self._connection.execute(CHILD, at).fetchone()
        if row is None:
            return None
        path = path_of(ancestors_of(self._connection, instance), instance)
        if row["kind"] == ChildKind.SUBWORKFLOW:
            return f"{path}{row['child']}>"
        return f"{path}{inline_id(ChildKind(row['kind']), run_key(*instance), step_id)}/"

    def _left_out(self, top: Hop, instance: Instance) -> str | None:
        """The path of the highest instance between a step and a leaf that does not count; None if all do."""
        ancestors = ancestors_of(self._connection, instance)
        chain = [*(hop[:2] for hop in ancestors), instance]
        first = ancestors.index(top) if top in ancestors else len(ancestors)
        for number in range(first, len(ancestors)):
            if not self._counts(ancestors[number], chain[number + 1]):
                return path_of(ancestors[: number + 1], chain[number + 1])
        return None

    def _counts(self, hop: Hop, child: Instance) -> bool:
        if child not in self._counting:
            row = self._connection.execute(DESCENT, child).fetchone()
            self._counting[child] = row is not None and counts_in(self._span(hop), row["bucket"])
        return self._counting[child]

    def _span(self, hop: Hop) -> Span | None:
        if hop not in self._spans:
            row = self._connection.execute(SPAN, hop).fetchone()
            self._spans[hop] = None if row is None or row["low"] is None else (row["low"], row["high"])
        return self._spans[hop]


def add_refs(entry: Record, leaves: list[sqlite3.Row]) -> None:
    """Name leaves, each under its workflow and run."""
    for leaf in leaves:
        where = entry.setdefault("ref", {}).setdefault(f"{leaf['workflow_id']}:{leaf['run_id']}", [])
        where.append(f"{leaf['instance_id']}:{leaf['step_id']}:{leaf['attempt']}")
