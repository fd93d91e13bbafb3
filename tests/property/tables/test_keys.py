"""Encoded keys sort as their tuples do, come back as they were, and begin alike exactly when their tuples do."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kapelle.topology.tables.keys import INT_MAX, INT_MIN, KeyCodec, successor

# Strings of a few characters meet often; the escapes, the ends of UTF-8 and lone surrogates are among them.
TEXTS = (
    st.text(st.sampled_from("\0\1\2a\x7f\x80\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff"), max_size=4)
    | st.text()
)
BYTES = st.binary(max_size=4) | st.lists(st.sampled_from([0, 1, 2, 254, 255]), max_size=4).map(bytes)
INTS = st.integers(INT_MIN, INT_MAX) | st.sampled_from([INT_MIN, -256, -1, 0, 1, 255, 256, INT_MAX])

SHAPES: dict[Any, st.SearchStrategy[Any]] = {
    tuple[str]: st.tuples(TEXTS),
    tuple[bytes]: st.tuples(BYTES),
    tuple[int]: st.tuples(INTS),
    tuple[str, int]: st.tuples(TEXTS, INTS),
    tuple[str, str]: st.tuples(TEXTS, TEXTS),
    tuple[bytes, int, str]: st.tuples(BYTES, INTS, TEXTS),
    tuple[int, bytes, bytes]: st.tuples(INTS, BYTES, BYTES),
}
at_leisure = settings(deadline=None)  # a busy machine is no error of the code
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@every_shape
@at_leisure
@given(data=st.data())
def test_bytes_sort_as_the_tuples_do(shape: Any, data: st.DataObject) -> None:
    codec = KeyCodec("t", shape)
    one, other = data.draw(SHAPES[shape]), data.draw(SHAPES[shape])

    assert (codec.encode(b"p", one) < codec.encode(b"p", other)) == (one < other)


@every_shape
@at_leisure
@given(data=st.data())
def test_a_key_comes_back_as_it_was(shape: Any, data: st.DataObject) -> None:
    codec = KeyCodec("t", shape)
    key = data.draw(SHAPES[shape])

    assert codec.decode(codec.encode(b"prefix", key), len(b"prefix")) == key


@every_shape
@at_leisure
@given(data=st.data())
def test_bytes_begin_alike_exactly_when_the_tuples_do(shape: Any, data: st.DataObject) -> None:
    codec = KeyCodec("t", shape)
    start, key = data.draw(SHAPES[shape]), data.draw(SHAPES[shape])
    start = start[: data.draw(st.integers(0, len(start)))]

    begins = codec.encode(b"p", key).startswith(codec.bound(b"p", start))

    assert begins == (key[: len(start)] == start)


@every_shape
@at_leisure
@given(data=st.data())
def test_the_fast_coder_does_what_the_slow_one_does(shape: Any, data: st.DataObject) -> None:
    codec = KeyCodec("t", shape)
    key = data.draw(SHAPES[shape])

    encoded = codec.encode_slowly(b"p", key, len(key))

    assert encoded == codec.encode(b"p", key)
    assert codec.decode_slowly(encoded, 1) == key


@at_leisure
@given(prefix=st.binary(max_size=4).filter(lambda prefix: prefix.strip(b"\xff")), other=st.binary(max_size=5))
def test_the_successor_stands_just_behind_all_that_begins_with_the_prefix(prefix: bytes, other: bytes) -> None:
    assert (prefix <= other < successor(prefix)) == other.startswith(prefix)
