"""Chunks hold records by column, and give them back as they were."""

from hypothesis import given
from hypothesis import strategies as st

from kapelle.topology.embedded import chunks
from kapelle.topology.embedded.chunks import Entry

names = st.sampled_from(["ce_id", "ce_type", "traceparent"])
pairs = st.tuples(names, st.binary(max_size=4))
entries = st.tuples(
    st.none() | st.binary(max_size=4),
    st.none() | st.binary(max_size=4),
    st.none() | st.lists(pairs, max_size=4),
)

# Directories outlive releases: what was once written must be read for ever.
RELEASED = bytes.fromhex(
    "0000018bcfe56800"  # the time of writing
    "93"
    "93 c4016b c4026b32 c0"  # keys
    "93 c40176 c0 c403763333"  # values
    "94"  # headers: one value for all, a value for each, twice, and a pair for the second record alone
    "94 ae63655f7370656376657273696f6e c403312e30 c0 c0"
    "94 a563655f6964 c0 93 c40131 c40132 c40133 c0"
    "94 a763655f74797065 c0 93 c40141 c40142 c40142 c0"
    "94 c0 c0 c0 93 c0 92 ab7472616365706172656e74 c40174 c0"
)
RELEASED_RECORDS: list[Entry] = [
    (b"k", b"v", [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_type", b"A")]),
    (b"k2", None, [("ce_specversion", b"1.0"), ("ce_id", b"2"), ("ce_type", b"B"), ("traceparent", b"t")]),
    (None, b"v33", [("ce_specversion", b"1.0"), ("ce_id", b"3"), ("ce_type", b"B")]),
]


def plain(records: list[Entry]) -> list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]]:
    return [(key, value, list(headers or ())) for key, value, headers in records]


def decoded(records: list[Entry]) -> list[Entry]:
    return [entry for _, chunk in chunks.encode(records, 7) for entry in chunks.decode(chunk)]


@given(st.lists(entries, min_size=1, max_size=8))
def test_what_is_decoded_is_what_was_encoded(records: list[Entry]) -> None:
    assert plain(decoded(records)) == plain(records)


@given(st.lists(entries, min_size=1, max_size=8), st.integers(0, 2**62))
def test_a_chunk_tells_when_it_was_written(records: list[Entry], at_ms: int) -> None:
    [(count, chunk)] = chunks.encode(records, at_ms)

    assert chunks.time_of(chunk) == at_ms
    assert count == len(records)


def test_headers_that_all_records_share_are_written_once() -> None:
    shared = [("content-type", b"application/vnd.apache.avro+binary"), ("ce_source", b"/kapelle/counting")]
    one, many = [(b"k", b"v", shared)], [(b"k", b"v", shared)] * 100

    [(_, small)], [(_, large)] = chunks.encode(one, 0), chunks.encode(many, 0)

    assert len(large) - len(small) < 100 * 8


def test_records_beyond_the_size_of_a_chunk_are_split_in_order() -> None:
    size = chunks.CHUNK_BYTES_MAX // 3
    records: list[Entry] = [(b"%d" % n, bytes(size), ()) for n in range(9)]

    made = chunks.encode(records, 0)

    assert len(made) > 3
    assert sum(count for count, _ in made) == 9
    assert all(len(chunk) <= chunks.CHUNK_BYTES_MAX for _, chunk in made)
    assert plain(decoded(records)) == plain(records)


def test_a_record_beyond_the_size_of_a_chunk_is_a_chunk_by_itself() -> None:
    records: list[Entry] = [(b"a", b"small", ()), (b"b", bytes(chunks.CHUNK_BYTES_MAX + 1), ()), (b"c", b"small", ())]

    assert [count for count, _ in chunks.encode(records, 0)] == [1, 1, 1]
    assert plain(decoded(records)) == plain(records)


def test_released_bytes_are_read_and_still_written() -> None:
    assert plain(chunks.decode(RELEASED)) == plain(RELEASED_RECORDS)
    assert chunks.encode(RELEASED_RECORDS, 1_700_000_000_000) == [(3, RELEASED)]
