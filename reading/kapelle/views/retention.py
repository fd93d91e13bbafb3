"""The removal of instances that ended long ago, and then of other rows of that age that nothing refers to.

An instance may leave only when all that the log has of it is folded: what came later would leave half of it behind. So
the ends of the log are asked for, and when the view has come that far, whatever had ended by then may go. What is
queued or runs stays, however old it is. The log keeps everything: a view that is made anew has it all again, until it
leaves again.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.topology.journal import Journal, JournalError, Point
from kapelle.views.database import Database
from kapelle.views.progress import ends_of
from kapelle.views.schema import BY_AGE
from kapelle.views.unreferenced import SWEEPS, Place, swept

EVERY_S: Final = 60.0
BATCH_INSTANCES: Final = 200
DAY_MS: Final = 24 * 60 * 60 * 1000

_OVER: Final = """SELECT i.workflow_id, i.instance_id FROM instances i INDEXED BY {index}
    JOIN runs r ON r.workflow_id = i.workflow_id AND r.instance_id = i.instance_id AND r.run_id = i.run_id
    WHERE i.status = :status AND COALESCE(r.ended_at_ms, r.recorded_at_ms, r.created_at_ms) < :before_ms
    AND NOT EXISTS (SELECT 1 FROM instances p
        WHERE p.workflow_id = i.parent_workflow AND p.instance_id = i.parent_instance)"""
# Instances that are there, and those of deleted workflows. A child stays as long as its parent is there.
OVER: Final = (
    f"{_OVER.format(index='instances_by_status')} AND i.created_at_ms < :before_ms AND i.home_workflow IS NULL "
    "UNION ALL "
    f"{_OVER.format(index='instances_hidden')} AND i.created_at_ms IS NULL LIMIT :limit"
)
# In this order: what is found through other rows goes before they do.
TAKEN_AWAY: Final = (
    """DELETE FROM requests WHERE workflow_id = ?1
        AND request_id IN (SELECT request_id FROM runs WHERE workflow_id = ?1 AND instance_id = ?2)""",
    "DELETE FROM requests WHERE workflow_id = ?1 AND instance_id = ?2 AND kind <> 'InstanceCreated'",
    """DELETE FROM cancellations
        WHERE token IN (SELECT token FROM attempts WHERE workflow_id = ?1 AND instance_id = ?2)""",
    *(
        f"DELETE FROM {table} WHERE workflow_id = ?1 AND instance_id = ?2"  # noqa: S608 - of our own words
        for table in (
            *("refused_reports", "tasks", "dependencies", "step_signals", "subscriptions", "labels", "timeline"),
            *("fans", "rollups", "buckets", "leaves", "descents", "attempts", "runs", "instances"),
        )
    ),
    "DELETE FROM limits WHERE limited = 'tree/' || ?1 || '/' || ?2",
)
# Iterations and rounds leave with their home, and before it.
INLINE: Final = "SELECT workflow_id, instance_id FROM instances WHERE home_workflow = ? AND home_instance = ? LIMIT ?"


def now_ms() -> int:
    """The time."""
    return time.time_ns() // 1_000_000


def take_away(connection: sqlite3.Connection, before_ms: int, limit: int = BATCH_INSTANCES) -> int:
    """Let go of some instances that ended before. Returns how many those were."""
    gone = 0
    for status in sorted(INSTANCE_TERMINAL):
        values = {"status": status.value, "before_ms": before_ms, "limit": limit - gone}
        for row in connection.execute(OVER, values).fetchall():
            gone += _take_home(connection, (row["workflow_id"], row["instance_id"]), limit - gone)
    return gone


def _take_home(connection: sqlite3.Connection, home: tuple[str, int], limit: int) -> int:
    """Let go of an instance and its iterations, or of as many of them as there may be in one turn."""
    instances = [tuple(row) for row in connection.execute(INLINE, (*home, limit)).fetchall()]
    instances += [home] if len(instances) < limit else []
    for instance in instances:
        for statement in TAKEN_AWAY:
            connection.execute(statement, instance)
    return len(instances)


class Retention:
    """Takes a turn between two batches of the fold, and not more than a batch of its own."""

    def __init__(
        self, journal: Journal, database: Database, keep_ms: int, *, clock: Callable[[], int] = now_ms
    ) -> None:
        self._journal = journal
        self._database = database
        self._keep_ms = keep_ms
        self._clock = clock
        self._next_s = 0.0
        self._ends: Mapping[Point, int] | None = None  # how far the view must be
        self._pass: Iterator[int] = iter(())
        with database.writing() as connection:
            for statement in BY_AGE:
                connection.execute(statement)

    def turn(self, positions: Mapping[Point, int]) -> int:
        """Let go of some of what may go, if it is time to look for it. Returns how many things that were."""
        if self._ends is None:
            self._look()
        if self._ends is None or any(positions.get(point, 0) < end for point, end in self._ends.items()):
            return 0
        gone = next(self._pass, None)
        if gone is None:
            self._ends = None
        return gone or 0

    def _look(self) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        before_ms = self._clock() - self._keep_ms
        try:
            self._ends = ends_of(self._journal)
        except JournalError:
            return  # it is asked again
        self._pass = self._passing(before_ms)

    def _passing(self, before_ms: int) -> Iterator[int]:
        """One look at all there is, in turns: how much has left in each."""
        gone = BATCH_INSTANCES
        while gone == BATCH_INSTANCES:
            with self._database.writing() as connection:
                gone = take_away(connection, before_ms)
            yield gone
        for sweep in SWEEPS:
            place: Place | None = sweep.start
            while place is not None:
                with self._database.writing() as connection:
                    place, gone = swept(connection, sweep, place, before_ms)
                yield gone
