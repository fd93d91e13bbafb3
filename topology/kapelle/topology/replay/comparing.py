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
        one, other = next(ours, None), next(theirs, None)
        while one is not None or other is not None:
            if one is not None and (other is None or one[0] < other[0]):
                yield Differing(one[0], one[1], None)
                self.rows += 1
                one = next(ours, None)
            elif other is not None and (one is None or other[0] < one[0]):
                yield Differing(other[0], None, other[1])
                other = next(theirs, None)
            elif one is not None and other is not None:
                if one[1] != other[1] and not same(self._expected, one[0], one[1], other[1]):
                    yield Differing(one[0], one[1], other[1])
                self.rows += 1
                one, other = next(ours, None), next(theirs, None)


def same(state: State, key: bytes, one: bytes | None, other: bytes | None) -> bool:
    """Whether two values of a row say the same."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    try:
        return state.decoded(key, one)[2] == state.decoded(key, other)[2]
    except TableError:
        return False


def described(state: State, found: Differing) -> Difference:
    """A difference in words: a row that cannot be read is shown as its bytes and the reason."""
    name = found.key[: found.key.index(0)].decode()
    key: list[object] = [found.key.hex()]
    for value in (found.expected, found.found):
        with suppress(TableError):  # the key is then shown as it is stored
            if value is not None:
                name, columns, _ = state.decoded(found.key, value)
                key = [as_data(column) for column in columns]
    return Difference(name, key, _row(state, found.key, found.expected), _row(state, found.key, found.found))


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
