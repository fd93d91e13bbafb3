"""Comparing the tables of two shards, row by row, without holding either in memory.

Rows are compared as bytes, and as what they say only where the bytes differ: a row of an older layout is equal to the
same row of today's.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from kapelle.topology.tables import ShardState, TableError

State = ShardState[Any]


Data = dict[str, object]  # a row as JSON has it


class Differing(NamedTuple):
    """A row that differs, as it is in the changelog. None: there is no such row."""

    key: bytes
    expected: bytes | None
    found: bytes | None


class Difference(msgspec.Struct, frozen=True):
    """A row that differs, as people read it."""

    table: str
    key: list[object]
    expected: Data | str | None
    found: Data | str | None


class Comparison:
    """The rows that are not the same in both, in the order of their keys. To be walked once."""

    def __init__(self, expected: State, found: State) -> None:
        self._expected = expected
        self._found = found
        self.rows = 0  # of the expected side, as far as it was walked

    def __iter__(self) -> Iterator[Differing]:
        ours, theirs = self._expected.encoded(), self._found.encoded()
        our_row, their_row = next(ours, None), next(theirs, None)
        while our_row is not None or their_row is not None:
            if our_row is not None and (their_row is None or our_row[0] < their_row[0]):
                yield Differing(our_row[0], our_row[1], None)
                self.rows += 1
                our_row = next(ours, None)
            elif their_row is not None and (our_row is None or their_row[0] < our_row[0]):
                yield Differing(their_row[0], None, their_row[1])
                their_row = next(theirs, None)
            elif our_row is not None and their_row is not None:
                if our_row[1] != their_row[1] and not same(self._expected, our_row[0], our_row[1], their_row[1]):
                    yield Differing(our_row[0], our_row[1], their_row[1])
                self.rows += 1
                our_row, their_row = next(ours, None), next(theirs, None)


def same(state: State, key: bytes, ours: bytes | None, theirs: bytes | None) -> bool:
    """Whether two values of a row say the same."""
    if ours == theirs:
        return True
    if ours is None or theirs is None:
        return False
    try:
        return state.decoded(key, ours)[2] == state.decoded(key, theirs)[2]
    except TableError:
        return False


def described(state: State, row: Differing) -> Difference:
    """A difference in words: a row that cannot be read is shown as its bytes and the reason."""
    name = row.key[: row.key.index(0)].decode()
    key: list[object] = [row.key.hex()]
    for value in (row.expected, row.found):
        with suppress(TableError):  # the key is then shown as it is stored
            if value is not None:
                name, columns, _ = state.decoded(row.key, value)
                key = [as_data(column) for column in columns]
    return Difference(name, key, _row(state, row.key, row.expected), _row(state, row.key, row.found))


def _row(state: State, key: bytes, value: bytes | None) -> Data | None:
    if value is None:
        return None
    try:
        return row_data(state.decoded(key, value)[2])
    except TableError as error:
        return {"unreadable": str(error), "bytes": value.hex()}


def row_data(row: msgspec.Struct) -> Data:
    """A row as JSON has it: with the names of its fields, also where it is stored without them."""
    return {name: as_data(getattr(row, name)) for name in row.__struct_fields__}


def as_data(value: object) -> object:
    """A part of a row or of a key, as JSON has it."""
    if isinstance(value, msgspec.Struct):
        return row_data(value)
    if isinstance(value, dict):
        return {str(key): as_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_data(each) for each in value]
    return value.hex() if isinstance(value, bytes) else value
