"""The outcomes of requests."""

import sqlite3

import msgspec

from kapelle.views.queries.records import Record


class Outcome(msgspec.Struct, frozen=True):
    """The event that ended a request. A request that is made again has another one; `place` tells them apart."""

    place: tuple[str, int, int]
    kind: str
    workflow_id: str
    instance_id: int | None
    body: Record


def outcomes(connection: sqlite3.Connection, request_id: str, workflow_id: str | None = None) -> list[Outcome]:
    """The outcomes of a request so far, of one workflow or of all: the id is only unique within a workflow."""
    rows = connection.execute(
        """SELECT stream, partition, position, kind, workflow_id, instance_id, body
        FROM requests WHERE request_id = ? AND (?2 IS NULL OR workflow_id = ?2)
        ORDER BY at_ms, stream, partition, position""",
        (request_id, workflow_id),
    ).fetchall()
    return [_outcome(row) for row in rows]


def _outcome(row: sqlite3.Row) -> Outcome:
    return Outcome(
        place=(row["stream"], row["partition"], row["position"]),
        kind=row["kind"],
        workflow_id=row["workflow_id"],
        instance_id=row["instance_id"],
        body=msgspec.json.decode(row["body"]),
    )
