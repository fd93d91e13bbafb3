"""Where the events of an instance stand in the log."""

import sqlite3
from typing import Final

PLACES_MAX: Final = 10_000

Place = tuple[str, int, int]  # stream, partition, offset


def places(connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> list[Place]:
    """The places of its events in the order in which they happened: the latest ones, if there are very many.

    Heartbeats that only renewed a lease leave nothing in the view, and are not among them.
    """
    rows = connection.execute(
        """SELECT stream, partition, position, at_ms, COALESCE(run_id, 0) AS run_id, phase FROM timeline
            WHERE workflow_id = ?1 AND instance_id = ?2
        UNION ALL SELECT stream, partition, position, at_ms, 0, 1 FROM requests INDEXED BY requests_refused
            WHERE kind = 'CommandRefused' AND workflow_id = ?1 AND instance_id = ?2
        ORDER BY at_ms DESC, run_id DESC, phase DESC, stream DESC, position DESC LIMIT ?3""",
        (workflow_id, instance_id, PLACES_MAX),
    ).fetchall()
    return [(row["stream"], row["partition"], row["position"]) for row in reversed(rows)]
