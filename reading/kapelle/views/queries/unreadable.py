"""The records of the log that the view could not read."""

import sqlite3
from typing import Final

import msgspec

SHOWN_MAX: Final = 100


class UnreadableRecord(msgspec.Struct, frozen=True):
    """A record that the view lists, because it could make nothing else of it."""

    stream: str
    partition: int
    offset: int
    key: str
    reason: str
    at_ms: int


def unreadable_count(connection: sqlite3.Connection) -> int:
    """How many there are."""
    [count] = connection.execute("SELECT COUNT(*) FROM unreadable").fetchone()
    return int(count)


def unreadable(connection: sqlite3.Connection, limit: int = SHOWN_MAX) -> list[UnreadableRecord]:
    """The last of them, the newest first."""
    rows = connection.execute(
        "SELECT stream, partition, position, key, reason, at_ms FROM unreadable ORDER BY at_ms DESC LIMIT ?",
        (limit,),
    )
    return [UnreadableRecord(*row) for row in rows]
