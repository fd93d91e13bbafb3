"""The store below the tables: one ordered map from bytes to bytes for the whole process, written in batches.

Keys belong to shards (one processor, one partition) and begin with the processor's name, so a key whose first byte is
not a letter is free for other uses of the same store.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol


class Batch:
    """What is written together: all of it or nothing.

    Ranges are deleted first, whatever the order of the calls; then each key gets the last value that was given to it.
    """

    __slots__ = ("ranges", "rows")

    def __init__(self) -> None:
        self.ranges: list[tuple[bytes, bytes]] = []
        self.rows: dict[bytes, bytes | None] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self.rows[key] = value

    def delete(self, key: bytes) -> None:
        self.rows[key] = None

    def delete_range(self, start: bytes, end: bytes) -> None:
        """Delete what is stored from `start` (included) to `end` (excluded)."""
        self.ranges.append((start, end))

    def update(self, rows: Mapping[bytes, bytes | None]) -> None:
        self.rows.update(rows)

    def __bool__(self) -> bool:
        return bool(self.rows or self.ranges)


class Store(Protocol):
    """An ordered map of bytes. A scan sees the map as it was when the scan began, whatever is written meanwhile."""

    def get(self, key: bytes, /) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes, /, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """What is stored from `start` (included) to `end` (excluded), in the order of the keys."""
        ...

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        """Write all of the batch or nothing. With `sync`, return only when it would survive a loss of power."""
        ...

    def close(self) -> None: ...
