"""The SQLite database of a view: one writer, any number of readers, on disk or in memory.

On disk it is in WAL mode: readers never wait for the writer, and each sees a state between two transactions. In memory
there is one connection, which its users take in turns.

A view is a cache. A file that is damaged is made again from the log: at once where opening it shows that, and else when
somebody reads or writes what is damaged (`remake`).
"""

import logging
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
CHECKED_BYTES_MAX: Final = 32 * 1024 * 1024  # larger files are not read as a whole before they are used
DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_log = logging.getLogger("kapelle.views")


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file is damaged, and not that a statement is wrong or the disk full."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.DatabaseError) and isinstance(code, int) and code & 0xFF in DAMAGED


class Database:
    """Opened for a log. What was folded from another log, or into other tables, is thrown away first; or all is."""

    def __init__(self, directory: Path | None, identity: str, *, anew: bool = False) -> None:
        self._lock = None if directory is None else DirectoryLock(directory, wait_s=LOCK_WAIT_S)
        self._path = None if directory is None else directory / FILE_NAME
        self._turn = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._identity = identity
        self.makes = 0  # readers of a file that was made again since are not used any more
        try:
            self.is_new = not self._opened(identity, anew=anew)
            if self.is_new:
                self._make()
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
                if self._writer.in_transaction:  # damage ends a transaction by itself
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
        makes, connection = self._taken()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._given_back(makes, connection)

    def offsets(self) -> dict[Point, int]:
        """How far each partition is folded."""
        with self.reading() as connection:
            rows = connection.execute("SELECT stream, partition, next FROM offsets").fetchall()
        return {(row["stream"], row["partition"]): row["next"] for row in rows}

    def remake(self) -> None:
        """Begin with an empty file in the place of one that is damaged."""
        with self._turn:
            if self._path is None or self._closed:
                return
            for connection in (*self._idle, self._writer):
                connection.close()
            self._idle = []
            self._make()

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

    def _taken(self) -> tuple[int, sqlite3.Connection]:
        with self._turn:
            if self._idle:
                return self.makes, self._idle.pop()
            makes = self.makes
        return makes, self._connect()

    def _given_back(self, makes: int, connection: sqlite3.Connection) -> None:
        with self._turn:
            if not self._closed and makes == self.makes and len(self._idle) < READERS_KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _opened(self, identity: str, *, anew: bool) -> bool:
        """Open what is there. Whether it is of this log, of these tables, and readable as far as we look."""
        was_there = self._path is not None and self._path.exists()
        try:
            self._writer = self._connect()
        except sqlite3.DatabaseError as error:  # what is there is no database
            self._tell_damage(error)
            return False
        try:
            rows = self._writer.execute("SELECT name, value FROM about").fetchall() if was_there else []
            if not anew and {row["name"]: row["value"] for row in rows} == _about(identity):
                self._check()
                return True
        except sqlite3.DatabaseError as error:
            self._tell_damage(error)
        self._writer.close()
        return False

    def _check(self) -> None:
        """Read what every start reads, and all of a file that is small. Raises what SQLite finds."""
        self._writer.execute("SELECT * FROM offsets").fetchall()
        if self._path is not None and self._path.stat().st_size <= CHECKED_BYTES_MAX:
            verdict = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)

    def _tell_damage(self, error: sqlite3.DatabaseError) -> None:
        _log.warning("the view in %s is damaged and is rebuilt from the log: %s", self._path, error)

    def _make(self) -> None:
        """Begin with empty tables. Whatever was there can be folded again."""
        self.makes += 1
        if self._path is not None:
            for name in (self._path.name, f"{self._path.name}-wal", f"{self._path.name}-shm"):
                self._path.with_name(name).unlink(missing_ok=True)
        self._writer = self._connect()
        with self.writing() as connection:
            for statement in TABLES:
                connection.execute(statement)
            connection.executemany("INSERT INTO about VALUES (?, ?)", _about(self._identity).items())


def _about(identity: str) -> dict[str, str]:
    return {"schema_version": str(SCHEMA_VERSION), "identity": identity}


def save_offsets(connection: sqlite3.Connection, offsets: Mapping[Point, int]) -> None:
    """Note how far the partitions are folded, in the transaction that folds them."""
    rows = [(stream, partition, following) for (stream, partition), following in offsets.items()]
    connection.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", rows)
