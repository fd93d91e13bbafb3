"""Records that the view can make nothing of: they are listed with where they stand and why, and the view goes on.

A batch is folded in one go. If a record of it fails, nothing of the batch is kept, and it is folded once more, one
record at a time: what fails then leaves a row here and nothing else. Disk errors and a log that is away are not the
fault of a record, and are raised.
"""

import logging
import sqlite3
from collections.abc import Iterable
from typing import Final

from kapelle.topology.journal import RECORD_FAULTS, Entry
from kapelle.views.batches import Batch
from kapelle.views.projection import project

# What a record can bring about in the code that projects it, and in SQLite when its values are written.
FAULTS: Final = (
    *RECORD_FAULTS,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
REASON_CHARS_MAX: Final = 1_000

_log = logging.getLogger("kapelle.views")


def fold_entries(connection: sqlite3.Connection, entries: Iterable[Entry]) -> set[str]:
    """Fold entries into the tables. Returns the news. Raises one of `FAULTS` if an entry cannot be folded."""
    batch = Batch(connection)
    for entry in entries:
        project(batch, entry)
    batch.flush()
    return batch.all_news()


def fold_one_by_one(connection: sqlite3.Connection, entries: Iterable[Entry]) -> set[str]:
    """The same, slowly: an entry that cannot be folded is listed instead."""
    news: set[str] = set()
    for entry in entries:
        connection.execute("SAVEPOINT entry")
        try:
            news |= fold_entries(connection, (entry,))
        except FAULTS as error:
            connection.execute("ROLLBACK TO entry")
            reason = f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
            _log.warning("the view cannot read %s-%d at %d: %s", entry.stream, entry.partition, entry.offset, reason)
            refused = Entry(entry.stream, entry.partition, entry.offset, entry.key, None, entry.at_ms, reason)
            news |= fold_entries(connection, (refused,))
        connection.execute("RELEASE entry")
    return news
