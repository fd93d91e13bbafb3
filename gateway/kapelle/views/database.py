"""The SQLite database of a view: one writer, any number of readers, on disk or in memory.

On disk it is in WAL mode: readers never wait for the writer, and each sees a state between two transactions. In memory
there is one connection, which its users take in turns.
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kapelle.topology.journal import Point
from kapelle.topology.tables.lock import DirectoryLock
from kapelle.views.schema import SCHEMA_VERSION, TABLES

FILE_NAME: Final = "views.sqlite"
STATEMENTS_CACHED: Final = 512
BUSY_S: Final = 10.0
READERS_KEPT: Final = 16
CACHE_KB: Final = 32 * 1024
CHECKPOINT_PAGES: Final = 4_000  # pages that change again and again are copied to the file less often
# A loss of power may take the last transactions, with their offsets: they are folded again.
PRAGMAS: Final = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    f"wal_autocheckpoint={CHECKPOINT_PAGES}",
    f"cache_size=-{CACHE_KB}",
    "temp_store=MEMORY",
)
LOCK_WAIT_S: Final = 5.0  # how long a predecessor may take to let go


class Database:
    """Opened for a log. What was folded from another log, or into other tables, is thrown away first; or all is."""

    def __init__(self, directory: Path | None, identity: str, *, anew: bool = False) -> None:
        self._lock = None if directory is None else DirectoryLock(directory, wait_s=LOCK_WAIT_S)
        self._path = None if directory is None else directory / FILE_NAME
        self._turn = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            self.is_new = not self._opened(identity, anew=anew)
            if self.is_new:
                self._make(identity)
        except BaseException:
            self._release()
            raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with self._turn:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A state that does not change while it is looked at."""
        if self._path is None:
            with self._turn:
                yield self._writer
            return
        connection = self._taken()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.execute("ROLLBACK")
            self._given_back(connection)

    def offsets(self) -> dict[Point, int]:
        """How far each partition is folded."""
        with self.reading() as connection:
            rows = connection.execute("SELECT stream, partition, next FROM offsets").fetchall()
        return {(row["stream"], row["partition"]): row["next"] for row in rows}

    def close(self) -> None:
        """Close all connections and let others have the directory."""
        with self._turn:
            self._closed = True
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle = []
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path or ":memory:",
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_CACHED,
            timeout=BUSY_S,
        )
        connection.row_factory = sqlite3.Row
        try:
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _taken(self) -> sqlite3.Connection:
        with self._turn:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _given_back(self, connection: sqlite3.Connection) -> None:
        with self._turn:
            if not self._closed and len(self._idle) < READERS_KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _opened(self, identity: str, *, anew: bool) -> bool:
        """Open what is there. Whether it is of this log, and of these tables."""
        try:
            self._writer = self._connect()
        except sqlite3.DatabaseError:  # what is there is no database
            return False
        try:
            rows = self._writer.execute("SELECT name, value FROM about").fetchall()
        except sqlite3.DatabaseError:  # nothing is there, or nothing of use
            rows = []
        if not anew and {row["name"]: row["value"] for row in rows} == _about(identity):
            return True
        self._writer.close()
        return False

    def _make(self, identity: str) -> None:
        """Begin with empty tables. Whatever was there can be folded again."""
        if self._path is not None:
            for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
                self._path.with_name(name).unlink(missing_ok=True)
        self._writer = self._connect()
        with self.writing() as connection:
            for statement in TABLES:
                connection.execute(statement)
            connection.executemany("INSERT INTO about VALUES (?, ?)", _about(identity).items())


def _about(identity: str) -> dict[str, str]:
    return {"schema_version": str(SCHEMA_VERSION), "identity": identity}


def save_offsets(connection: sqlite3.Connection, offsets: Mapping[Point, int]) -> None:
    """Note how far the partitions are folded, in the transaction that folds them."""
    rows = [(stream, partition, following) for (stream, partition), following in offsets.items()]
    connection.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", rows)
