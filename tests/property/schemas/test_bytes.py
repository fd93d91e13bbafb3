"""Laws of the bytes: we write what others write, read what we wrote, and survive everything else."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kapelle.schemas import Catalog, Codec, Contract, SchemaError, Truncated, Unresolvable, contracts, wire
from kapelle.schemas.compatibility import Direction, compatible
from kapelle.schemas.contracts import DeadLetter
from kapelle.schemas.parsing import parse
from tests.property.schemas import strategies
from tests.unit.schemas.fresh import ALL, DEFAULTS, SHARED, contract_of, field, module_of, record

# Making a module takes milliseconds, so examples are fewer where each has a module of its own.
some = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(max_examples=2000, deadline=None)

CURRENT = module_of(ALL, SHARED, DEFAULTS)
GROWN_FIELDS = [*ALL["fields"], {"name": "later", "type": "string", "default": "x"}]
GROWN = contract_of(ALL | {"fields": GROWN_FIELDS}, SHARED, earlier=[CURRENT.Everything.SCHEMA])
everything = strategies.values(parse(CURRENT.Everything.SCHEMA))
longs = st.integers(-(2**63), 2**63 - 1)
near_the_ends_of_moments = st.builds(int.__add__, st.sampled_from([0, 2**34, 2**41]), st.integers(-9_000, 9_000))
moments = st.integers(2**34, 2**41)  # in milliseconds since 1970


def _read(read: wire.Read[int], data: bytes) -> tuple[int, int] | str:
    try:
        return read(data, 0)
    except (IndexError, SchemaError) as error:
        return f"{type(error).__name__}: {error}"


@some
@given(st.data())
def test_we_write_the_bytes_that_fastavro_writes_and_read_them_back(data: st.DataObject) -> None:
    schema = data.draw(strategies.contracts())
    plain = data.draw(strategies.values(parse(json.dumps(schema))))
    contract = contract_of(schema)

    value = msgspec.convert(plain, contract)
    body = value.to_avro()

    assert body == strategies.fastavro_bytes(schema, plain)
    assert contract.from_avro(body) == (value, len(body))


SHORT = contract_of(
    record(
        "Short",
        field("text", "string"),
        field("number", "long"),
        field("small", "int"),
        field("maybe", ["null", "string"]),
        field("seldom", ["long", "null"]),
        field("last", "string"),
    )
)
# Nearly right, so that all fields are come to: sizes, texts, what is no text or only its beginning, branches.
pieces = st.sampled_from([b"\x00", b"\x01", b"\x02", b"\x04a\xc3", b"\x06\xe2\x82\xac", b"\x80\x01", b"\x7e", b"\xff"])


@many
@given(st.lists(pieces | st.binary(max_size=3), max_size=8).map(b"".join))
def test_straight_code_reads_and_refuses_what_the_schema_alone_does(body: bytes) -> None:
    catalog = Catalog.of(SHORT)
    data = b"\xc3\x01" + SHORT.FINGERPRINT.to_bytes(8, "little") + body
    careful = Codec(catalog)
    careful._readers[data[:10]] = (catalog.careful_reader(SHORT.FINGERPRINT)[0], 10, SHORT.FULL_NAME)

    assert _decoded(Codec(catalog), data) == _decoded(careful, data)


def _decoded(codec: Codec, data: bytes) -> Contract | str:
    try:
        return codec.decode(data)
    except SchemaError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8_191, 8_192, 100_000])
def test_texts_of_all_sizes_are_written_and_read(size: int) -> None:
    texts = {"text": "a" * size, "maybe": "b" * size, "last": "é" * (size // 2)}
    plain = texts | {"number": 0, "small": 0, "seldom": None}
    value = SHORT(**plain)

    assert value.to_avro() == strategies.fastavro_bytes(json.loads(SHORT.SCHEMA), plain)
    assert Codec(Catalog.of(SHORT)).decode(Codec(Catalog.of(SHORT)).encode(value)) == value


@many
@given(moments | near_the_ends_of_moments | longs)
def test_a_moment_is_written_and_read_as_any_long_is(value: int) -> None:
    data = wire.moment(value)

    assert data == wire.long(value)
    assert wire.moment_at(data + data, len(data)) == (value, 2 * len(data))


@many
@given(st.binary(max_size=12) | st.builds(bytes.__add__, moments.map(wire.long), st.binary(max_size=4)), st.data())
def test_any_bytes_are_the_same_moment_as_they_are_a_long(given: bytes, data: st.DataObject) -> None:
    cut = given[: data.draw(st.integers(0, len(given)))]

    assert _read(wire.moment_at, cut) == _read(wire.long_at, cut)


@some
@given(st.data())
def test_what_the_check_calls_compatible_is_read_as_fastavro_reads_it(data: st.DataObject) -> None:
    schema = data.draw(strategies.contracts())
    changed = data.draw(strategies.evolved(schema))
    plain = data.draw(strategies.values(parse(json.dumps(schema))))
    old = contract_of(schema)
    new = contract_of(changed, earlier=[old.SCHEMA])
    encoded = Codec(Catalog.of(old)).encode(msgspec.convert(plain, old))
    broken = compatible(old.SCHEMA, new.SCHEMA, (Direction.BACKWARD,))

    try:
        value = Codec(Catalog.of(new)).decode(encoded)
    except Unresolvable:
        assert broken
    except SchemaError:
        # The one thing that is compatible by type but not by value: bytes that are read as text.
        assert "bytes" in old.SCHEMA
        assert "string" in new.SCHEMA
    else:
        if not broken:
            assert value == msgspec.convert(strategies.fastavro_value(encoded[10:], schema, changed), new)


@some
@given(everything)
def test_every_beginning_of_a_record_is_truncated_for_generated_and_for_resolving_readers(plain: object) -> None:
    encoded = Codec(Catalog.of(CURRENT)).encode(msgspec.convert(plain, CURRENT.Everything))

    for codec in (Codec(Catalog.of(CURRENT)), Codec(Catalog.of(GROWN))):
        for size in range(0, len(encoded), 1 + len(encoded) // 50):
            try:
                codec.decode(encoded[:size])
            except Truncated:
                continue
            raise AssertionError(f"{size} of {len(encoded)} bytes were taken for a record")


READERS = [Codec(Catalog.of(CURRENT)), Codec(Catalog.of(GROWN)), Codec(Catalog.of(contracts))]
KNOWN = (CURRENT.Everything, CURRENT.Defaults, DeadLetter)
HEADS = [b"", b"\xc3\x01", b"\x00", *(b"\xc3\x01" + known.FINGERPRINT.to_bytes(8, "little") for known in KNOWN)]


def survives(data: bytes) -> None:
    """A value or a typed error; anything else escapes and fails the test."""
    for codec in READERS:
        try:
            value = codec.decode(data)
        except SchemaError:
            continue
        assert isinstance(value, Contract)


@many
@given(st.sampled_from(HEADS), st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_typed_error(head: bytes, body: bytes) -> None:
    survives(head + body)


@st.composite
def mutated(draw: strategies.Draw) -> bytes:
    """The bytes of a record with some of them changed, removed, doubled or made huge."""
    plain = draw(everything)
    data = bytearray(Codec(Catalog.of(CURRENT)).encode(msgspec.convert(plain, CURRENT.Everything)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["change", "remove", "double", "huge"])):
            case "change":
                data[at] = draw(st.integers(0, 255))
            case "remove" if len(data) > 1:
                del data[at]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 20))]
            case "huge":
                data[at : at + 1] = b"\x80\x80\x80\x80\x80\x80\x01"
    return bytes(data)


@some
@given(mutated())
def test_a_mutated_record_is_a_value_or_a_typed_error(data: bytes) -> None:
    survives(data)


WORDS = st.sampled_from(
    ["type", "name", "fields", "items", "symbols", "default", "size", "record", "enum", "array", "int"]
)
JSON = st.recursive(
    st.none() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@some
@given(st.text(max_size=100) | JSON.map(json.dumps))
def test_any_text_is_a_schema_or_a_typed_error(text: str) -> None:
    try:
        Catalog().learn(text)
    except SchemaError:
        return
