"""Errors of tables, by who must act.

TableError
├── author: whoever wrote the processor
│   ├── BadKey             a key that does not fit the table's declaration
│   ├── BadRow             a row of another type, or one that cannot be written
│   ├── RowTooLarge        a row beyond the limit
│   └── NotBucketed        `drop_before` on a table that is not declared `bucketed`
├── operator: whoever runs the process
│   ├── StoreLocked        another process has the directory
│   ├── StoreCorrupt       the directory cannot be read: remove it (Kafka has the state) or bring back a copy
│   ├── StoreFailed        the disk is full, the directory is not writable, …
│   ├── RowVersionUnknown  a newer release wrote this row
│   └── RowCorrupt         the bytes of a row or key are not what this table writes
└── runtime
    └── StoreClosed        used after `close`
"""

from pathlib import Path

from kapelle.processors.tables import Key


class TableError(Exception):
    """Anything wrong with tables or the store below them."""


class BadKey(TableError):
    """A key that does not fit the declaration of its table."""

    def __init__(self, table: str, expected: str, found: object) -> None:
        super().__init__(f"Expected a key of {expected} in table {table!r}, but found {found!r}")
        self.table = table
        self.expected = expected
        self.found = found


class BadRow(TableError):
    """A row that the table cannot take."""

    def __init__(self, table: str, expected: str, found: str) -> None:
        super().__init__(f"Expected a row of {expected} in table {table!r}, but found {found}")
        self.table = table
        self.expected = expected
        self.found = found


class RowTooLarge(TableError):
    """A row that would not pass through the changelog."""

    def __init__(self, table: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"Expected a row of at most {limit_bytes} bytes in table {table!r}, but found {size_bytes}")
        self.table = table
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class NotBucketed(TableError):
    """Only tables that are declared `bucketed` can drop whole buckets."""

    def __init__(self, table: str) -> None:
        super().__init__(f"Expected drop_before() only on a table declared bucketed=True, but {table!r} is not")
        self.table = table


class RowVersionUnknown(TableError):
    """A row that this release cannot read. Run the release that wrote it, or a later one."""

    def __init__(self, table: str, key: Key, version: int, known: tuple[int, ...]) -> None:
        super().__init__(f"Expected row {key!r} of table {table!r} to have a version of {known}, but found {version}")
        self.table = table
        self.key = key
        self.version = version
        self.known = known


class RowCorrupt(TableError):
    """Bytes that this table did not write. Remove the local state; it is restored from the changelog."""

    def __init__(self, table: str, key: Key | bytes, version: int | None, reason: str) -> None:
        super().__init__(
            f"Expected readable bytes at {key!r} of table {table!r}, but found none (row version {version}: {reason})"
        )
        self.table = table
        self.key = key
        self.version = version
        self.reason = reason


class StoreError(TableError):
    """Anything wrong with the directory that holds the rows."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


class StoreLocked(StoreError):
    """One process at a time: stop the other one, or use another directory."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(path, f"Expected {path} to be free, but it is in use by {holder}: one process at a time")
        self.holder = holder


class StoreCorrupt(StoreError):
    """The directory is damaged. With Kafka, remove it and the state is restored; embedded, bring back a copy."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, f"Expected a readable store in {path}, but found it damaged: {reason}")
        self.reason = reason


class StoreFailed(StoreError):
    """The operating system refused: look at space, permissions and limits."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, f"Expected the store in {path} to work, but the system refused: {reason}")
        self.reason = reason


class StoreClosed(StoreError):
    """The store was used after it was closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"Expected the store in {path} to be open, but it was closed")
