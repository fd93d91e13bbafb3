"""Keys have one encoding for ever, and a key that does not fit its table is refused by name."""

from enum import StrEnum
from typing import Any, NewType

import pytest

from kapelle.processors.errors import BadDeclaration
from kapelle.topology.tables.errors import BadKey, RowCorrupt
from kapelle.topology.tables.keys import INT_MAX, INT_MIN, KeyCodec, successor

WorkflowId = NewType("WorkflowId", str)


class Colour(StrEnum):
    RED = "red"


# Changelogs and local stores hold these bytes: a change here is a change of the format.
@pytest.mark.parametrize(
    ("shape", "key", "encoded"),
    [
        (tuple[()], (), b""),
        (tuple[str], ("",), b"\0"),
        (tuple[str], ("ab",), b"ab\0"),
        (tuple[str], ("a\0b\1",), b"a\1\1b\1\2\0"),
        (tuple[str], ("é",), b"\xc3\xa9\0"),
        (tuple[bytes], (b"\0\xff",), b"\1\1\xff\0"),
        (tuple[int], (0,), b"\x80\0\0\0\0\0\0\0"),
        (tuple[int], (-1,), b"\x7f\xff\xff\xff\xff\xff\xff\xff"),
        (tuple[int], (INT_MIN,), b"\0\0\0\0\0\0\0\0"),
        (tuple[int], (INT_MAX,), b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        (tuple[str, int], ("a", 1), b"a\0\x80\0\0\0\0\0\0\1"),
        (tuple[int, str], (1, "a"), b"\x80\0\0\0\0\0\0\1a\0"),
    ],
)
def test_keys_are_encoded_as_they_always_were(shape: Any, key: Any, encoded: bytes) -> None:
    codec = KeyCodec("t", shape)

    assert codec.encode(b"p", key) == b"p" + encoded
    assert codec.decode(b"p" + encoded, 1) == key


@pytest.mark.parametrize(
    ("shape", "key"),
    [
        (tuple[str], ("a", "b")),
        (tuple[str], ()),
        (tuple[str], (1,)),
        (tuple[str], (None,)),
        (tuple[str], (b"a",)),
        (tuple[str], "ab"),
        (tuple[int], ("1",)),
        (tuple[int], (1.5,)),
        (tuple[int], (INT_MAX + 1,)),
        (tuple[int], (INT_MIN - 1,)),
        (tuple[bytes], ("a",)),
        (tuple[str, int], ("a",)),
        (tuple[str, int], (1, "a")),
    ],
)
def test_a_key_that_does_not_fit_is_refused_by_name(shape: Any, key: Any) -> None:
    with pytest.raises(BadKey) as refused:
        KeyCodec("stock", shape).encode(b"", key)

    assert refused.value.table == "stock"
    assert refused.value.found == key


@pytest.mark.parametrize("start", [("a", 1, 2), (1,), ("a", "b")])
def test_a_bound_that_does_not_fit_is_refused(start: Any) -> None:
    with pytest.raises(BadKey, match="Expected a key of"):
        KeyCodec("t", tuple[str, int]).bound(b"", start)


@pytest.mark.parametrize(
    "shape", [tuple, str, tuple[float], tuple[str, ...], tuple[str | int], tuple[Colour], list[str]]
)
def test_a_key_type_that_cannot_be_ordered_is_refused_when_declared(shape: Any) -> None:
    with pytest.raises(BadDeclaration, match="'stock' to be a tuple of str, int and bytes"):
        KeyCodec("stock", shape)


def test_a_new_type_counts_as_what_it_is_made_of() -> None:
    assert KeyCodec("t", tuple[WorkflowId, int]).encode(b"", (WorkflowId("a"), 0)) == b"a\0\x80\0\0\0\0\0\0\0"


def test_a_string_enum_is_encoded_as_its_string() -> None:
    assert KeyCodec("t", tuple[str]).encode(b"", (Colour.RED,)) == b"red\0"


@pytest.mark.parametrize(
    "stored", [b"", b"a", b"a\0", b"a\0\x80\0\0", b"a\0\x80\0\0\0\0\0\0\1x", b"\xff\xfe\0\x80\0\0\0\0\0\0\1"]
)
def test_bytes_that_are_no_key_are_refused(stored: bytes) -> None:
    with pytest.raises(RowCorrupt) as refused:
        KeyCodec("stock", tuple[str, int]).decode(stored, 0)

    assert refused.value.table == "stock"
    assert refused.value.key == stored


def test_nothing_stands_behind_all_bytes() -> None:
    with pytest.raises(ValueError, match="nothing sorts after"):
        successor(b"\xff\xff")
