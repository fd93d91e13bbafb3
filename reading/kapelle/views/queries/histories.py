"""The coordinates of the events of an instance in the log."""

import sqlite3
from typing import Final

from kapelle.processors.runs.timeline import PHASE_RUN
from kapelle.views.queries.timelines import ENTRIES_MAX, entries

PLACES_MAX: Final = ENTRIES_MAX

Place = tuple[str, int, int]  # stream, partition, offset


def places(connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> list[Place]:
    """The places of its events in the order in which they happened: the latest ones, if there are very many.

    Heartbeats that only renewed a lease leave nothing in the view, and are not among them.
    """
    refused = connection.execute(
        """SELECT at_ms, stream, partition, position FROM requests INDEXED BY requests_by_instance
        WHERE workflow_id = ? AND instance_id = ? AND kind <> 'InstanceCreated' AND kind = 'CommandRefused'
        ORDER BY at_ms DESC LIMIT ?""",
        (workflow_id, instance_id, PLACES_MAX),
    )
    ordered = [((row["at_ms"], 0, PHASE_RUN, row["stream"], row["position"]), row["partition"]) for row in refused]
    ordered += [(entry.order, entry.partition) for entry in entries(connection, workflow_id, instance_id)]
    ordered.sort()
    return [(stream, partition, position) for (_, _, _, stream, position), partition in ordered[-PLACES_MAX:]]
