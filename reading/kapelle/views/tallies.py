"""Counts of leaves below composite steps, kept such that a change costs the depth of the tree and not its size.

Three sums belong to each other. They hold at any time, whatever part of the log is folded:

    total of an instance   = its own steps that count + the rollups of its composite steps
    bucket of a step       = the totals of all children that were launched into it
    rollup of a step       = its buckets that count now (`leaves.low` to `leaves.high`)

So a leaf that changes is added to one bucket for each step above it, up to the first one in which its bucket does not
count. A restart that discards a thousand iterations changes which buckets count, and looks at none of the iterations.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

import msgspec

Instance = tuple[str, int]
Hop = tuple[str, int, str]  # workflow, instance and step
Span = tuple[str, str]  # the first and the last bucket
Sums = Mapping[str, int]  # by status

DESCENT: Final = "SELECT ancestors, bucket FROM descents WHERE workflow_id = ? AND instance_id = ?"
DESCEND: Final = "INSERT INTO descents VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET bucket = ?4"
SPAN: Final = "SELECT low, high FROM leaves WHERE workflow_id = ? AND instance_id = ? AND step_id = ?"
OWN: Final = """SELECT status, COUNT(*) FROM leaves
    WHERE workflow_id = ?1 AND instance_id = ?2 AND low IS NULL AND status IS NOT NULL GROUP BY status
    UNION ALL SELECT status, count FROM rollups WHERE workflow_id = ?1 AND instance_id = ?2"""
ROLLUP: Final = "SELECT status, count FROM rollups WHERE workflow_id = ? AND instance_id = ? AND step_id = ?"
BUCKETS: Final = """SELECT status, count FROM buckets
    WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND bucket >= ? AND bucket <= ? AND bucket <> ?"""
ADD: Final = "INSERT INTO rollups VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET count = count + ?5"
ADD_TO_BUCKET: Final = (
    "INSERT INTO buckets VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET count = count + ?6"
)
EMPTY: Final = """DELETE FROM buckets WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND bucket = ?
    AND status = ? AND count = 0"""
NO_BUCKET: Final = ""

hops_of: Final = msgspec.json.Decoder(tuple[Hop, ...]).decode


def path_of(ancestors: tuple[Hop, ...], instance: Instance) -> str:
    """The way from the top to an instance, as text. Paths of those below begin with it."""
    above = [f"{workflow_id}/{number}>" for workflow_id, number, _ in ancestors]
    return f"{''.join(above)}{instance[0]}/{instance[1]}>"


def ancestors_of(connection: sqlite3.Connection, instance: Instance) -> tuple[Hop, ...]:
    """The steps that wait for an instance, from the top; nothing for one that nobody waits for."""
    row = connection.execute(DESCENT, instance).fetchone()
    return () if row is None else hops_of(row[0])


def counts_in(span: Span | None, bucket: str) -> bool:
    """Whether a bucket is one of those that count."""
    return span is not None and span[0] <= bucket <= span[1]


class Tallies:
    """The counts that one batch changes. What it reads of the steps above is read once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._descents: dict[Instance, tuple[tuple[Hop, ...], str] | None] = {}
        self._spans: dict[Hop, Span | None] = {}
        self._rollups: defaultdict[tuple[Hop, str], int] = defaultdict(int)
        self._buckets: defaultdict[tuple[Hop, str, str], int] = defaultdict(int)

    def ancestors(self, instance: Instance) -> tuple[Hop, ...]:
        """The steps that wait for an instance, from the top; nothing for one that nobody waits for."""
        descent = self._descent(instance)
        return () if descent is None else descent[0]

    def place(self, instance: Instance, ancestors: str, bucket: str) -> None:
        """A run of a child has begun. All that counts below it moves to the bucket of this run."""
        before = self._descent(instance)
        if before is not None and before[1] == bucket:
            return
        hops = hops_of(ancestors) if before is None else before[0]
        self._connection.execute(DESCEND, (*instance, ancestors, bucket))
        self._descents[instance] = hops, bucket
        if before is None or not hops:
            return
        total = _summed(self._connection.execute(OWN, instance).fetchall())
        hop, span = hops[-1], self._span(hops[-1])
        for sign, place in ((-1, before[1]), (1, bucket)):
            change = {status: sign * count for status, count in total.items()}
            self._add_to_bucket(hop, place, change)
            if counts_in(span, place):
                self._add_to_rollup(hop, change)
        self.flush()

    def add(self, instance: Instance, change: Sums) -> None:
        """Leaves of an instance, or of what is below it, have changed: count them in the steps above."""
        descent = self._descent(instance) if change else None
        for hop in reversed(descent[0]) if descent is not None else ():
            if descent is None:
                return
            bucket = descent[1]
            self._add_to_bucket(hop, bucket, change)
            if not counts_in(self._span(hop), bucket):
                return
            for status, count in change.items():
                self._rollups[hop, status] += count
            descent = self._descent(hop[:2])

    def hold(self, hop: Hop, span: Span | None) -> None:
        """A step will turn to other buckets: until then those of before count."""
        self._spans[hop] = span

    def turn(self, hop: Hop, before: Span | None, after: Span | None) -> None:
        """Other buckets of a step count."""
        self.flush()
        change = self._difference(hop, before, after)
        self._spans[hop] = after
        self._add_to_rollup(hop, change)
        self.flush()

    def flush(self) -> None:
        """Write what was added up."""
        sums = [(*hop, bucket, status, count) for (hop, bucket, status), count in self._buckets.items() if count]
        if sums:
            self._connection.executemany(ADD_TO_BUCKET, sums)
            self._connection.executemany(EMPTY, [row[:-1] for row in sums])
        self._buckets.clear()
        of_steps = [(*hop, status, count) for (hop, status), count in self._rollups.items() if count]
        if of_steps:
            self._connection.executemany(ADD, of_steps)
        self._rollups.clear()

    def _add_to_bucket(self, hop: Hop, bucket: str, change: Sums) -> None:
        for status, count in change.items():
            self._buckets[hop, bucket, status] += count

    def _add_to_rollup(self, hop: Hop, change: Sums) -> None:
        """Change a rollup, and with it the total of the instance that the step is in."""
        for status, count in change.items():
            self._rollups[hop, status] += count
        self.add(hop[:2], change)

    def _difference(self, hop: Hop, before: Span | None, after: Span | None) -> Sums:
        if before is not None and after is not None and before[0] == after[0]:
            if before[1] <= after[1]:
                return self._sum(hop, (before[1], after[1]), but=before[1])
            return {status: -n for status, n in self._sum(hop, (after[1], before[1]), but=after[1]).items()}
        change: Counter[str] = Counter() if after is None else Counter(self._sum(hop, after))
        if before is not None:
            change.subtract(_summed(self._connection.execute(ROLLUP, hop).fetchall()))
        return {status: count for status, count in change.items() if count}

    def _sum(self, hop: Hop, span: Span, *, but: str = NO_BUCKET) -> Sums:
        return _summed(self._connection.execute(BUCKETS, (*hop, *span, but)).fetchall())

    def _descent(self, instance: Instance) -> tuple[tuple[Hop, ...], str] | None:
        if instance not in self._descents:
            row = self._connection.execute(DESCENT, instance).fetchone()
            self._descents[instance] = None if row is None else (hops_of(row[0]), row[1])
        return self._descents[instance]

    def _span(self, hop: Hop) -> Span | None:
        if hop not in self._spans:
            row = self._connection.execute(SPAN, hop).fetchone()
            self._spans[hop] = None if row is None or row[0] is None else (row[0], row[1])
        return self._spans[hop]


def _summed(rows: list[tuple[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for status, count in rows:
        counts[status] += count
    return {status: count for status, count in counts.items() if count}
