"""The codec reads both framings, writes one, and has a typed error for everything else."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from kapelle.schemas import (
    Catalog,
    Codec,
    Confluent,
    Contract,
    Corrupt,
    NotEncodable,
    RecordTooLarge,
    SingleObject,
    Truncated,
    UnknownContract,
    UnknownFingerprint,
    UnknownSchemaId,
    contracts,
)
from kapelle.schemas.contracts import DeadLetter, Header, Stage
from tests.unit.schemas.fresh import contract_of, field, record

LETTER = DeadLetter(
    processor="counting",
    stage=Stage.DECIDE,
    reason="für alle",
    error="ValueError",
    topic="ticks",
    partition=3,
    offset=2**40,
    at_ms=1_700_000_000_000,
    key=b"k",
    headers=(Header("a", b"1"),),
)
HEAD = b"\xc3\x01" + DeadLetter.FINGERPRINT.to_bytes(8, "little")


@pytest.fixture
def codec() -> Codec:
    return Codec(Catalog.of(contracts))


def test_a_value_comes_back_as_it_was(codec: Codec) -> None:
    assert codec.decode(codec.encode(LETTER)) == LETTER


def test_single_object_encoding_begins_with_its_marker_and_the_fingerprint(codec: Codec) -> None:
    assert codec.encode(LETTER)[:10] == HEAD


def test_the_confluent_format_begins_with_zero_and_the_id() -> None:
    codec = Codec(Catalog.of(contracts), Confluent({258: DeadLetter.SCHEMA}))

    data = codec.encode(LETTER)

    assert data[:5] == b"\x00\x00\x00\x01\x02"
    assert data[5:] == LETTER.to_avro()


def test_the_newest_of_several_ids_of_one_schema_is_written() -> None:
    codec = Codec(Catalog.of(contracts), Confluent({9: DeadLetter.SCHEMA, 7: DeadLetter.SCHEMA}))

    assert codec.encode(LETTER)[:5] == b"\x00\x00\x00\x00\x09"
    assert codec.decode(b"\x00\x00\x00\x00\x07" + LETTER.to_avro()) == LETTER


def test_both_framings_are_read_whichever_is_written() -> None:
    catalog = Catalog.of(contracts)
    confluent = Codec(catalog, Confluent({1: DeadLetter.SCHEMA}))
    single = Codec(catalog, SingleObject())

    for codec in (confluent, single):
        assert codec.decode(confluent.encode(LETTER)) == LETTER
        assert codec.decode(single.encode(LETTER)) == LETTER


def test_a_record_of_no_fields_is_its_head_alone() -> None:
    empty = contract_of(record("Empty"))
    catalog = Catalog.of(empty)
    single, confluent = Codec(catalog), Codec(catalog, Confluent({1: empty.SCHEMA}))

    assert len(single.encode(empty())) == 10
    assert confluent.encode(empty()) == b"\x00\x00\x00\x00\x01"
    assert single.decode(confluent.encode(empty())) == empty()


def test_what_the_catalog_learns_later_is_read() -> None:
    reader = contract_of(record("Word", field("text", "string")))
    writer = contract_of(record("Word", field("text", "string"), field("more", "int", default=0)))
    codec = Codec(Catalog.of(reader))
    data = Codec(Catalog.of(writer)).encode(writer("hello", 7))
    with pytest.raises(UnknownFingerprint):
        codec.decode(data)

    codec.catalog.learn(writer.SCHEMA)

    assert codec.decode(data) == reader("hello")


def test_an_earlier_released_schema_is_read_without_being_learnt() -> None:
    old = contract_of(record("Word", field("text", "string")))
    new = contract_of(record("Word", field("text", "string"), field("n", "int", default=5)), earlier=[old.SCHEMA])

    assert Codec(Catalog.of(new)).decode(Codec(Catalog.of(old)).encode(old("hello"))) == new("hello", 5)


def test_an_unknown_fingerprint_is_told(codec: Codec) -> None:
    with pytest.raises(UnknownFingerprint, match="0807060504030201") as refused:
        codec.decode(b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08")

    assert refused.value.fingerprint == 0x0807060504030201


def test_an_unknown_schema_id_is_told(codec: Codec) -> None:
    with pytest.raises(UnknownSchemaId, match="found 66051") as refused:
        codec.decode(b"\x00\x00\x01\x02\x03")

    assert refused.value.schema_id == 66051


def test_a_known_schema_that_no_type_reads_is_told(codec: Codec) -> None:
    stranger = contract_of(record("Stranger", field("x", "int")))
    codec.catalog.learn(stranger.SCHEMA)

    with pytest.raises(UnknownContract, match=r"fresh\.Stranger"):
        codec.decode(Codec(Catalog.of(stranger)).encode(stranger(1)))


@pytest.mark.parametrize("data", [b"\x01", b"\xc3\x02", b"{}", b'{"json": true}', b"\xff" * 20])
def test_bytes_without_a_known_beginning_are_corrupt(codec: Codec, data: bytes) -> None:
    with pytest.raises(Corrupt, match="begins with C3 01 or 00"):
        codec.decode(data)


@pytest.mark.parametrize("framing", [SingleObject(), Confluent({1: DeadLetter.SCHEMA})], ids=["single", "confluent"])
def test_every_beginning_of_a_record_is_truncated(framing: SingleObject | Confluent) -> None:
    codec = Codec(Catalog.of(contracts), framing)
    data = codec.encode(LETTER)

    for size in range(len(data)):
        with pytest.raises(Truncated):
            codec.decode(data[:size])


def test_bytes_after_the_record_are_corrupt(codec: Codec) -> None:
    with pytest.raises(Corrupt, match="3 bytes more"):
        codec.decode(codec.encode(LETTER) + b"abc")


KINDS: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "string": "string",
    "bytes": "bytes",
    "enum": {"type": "enum", "name": "Mood", "symbols": ["CALM", "LOUD"]},
    "nullable": ["null", "int"],
    "array": {"type": "array", "items": "string"},
    "map": {"type": "map", "values": "int"},
}
INVALID = [
    ("boolean", b"\x02", "0 or 1"),
    ("int", b"\x80\x80\x80\x80\x10", "at most 32 bits"),
    ("long", b"\xff" * 9 + b"\x02", "at most 64 bits"),
    ("long", b"\x80" * 10 + b"\x00", "more than ten bytes"),
    ("string", b"\x01", "a size"),
    ("string", b"\x02\xff", "UTF-8"),
    ("bytes", b"\x03", "a size"),
    ("enum", b"\x04", "a symbol below 2"),
    ("enum", b"\x01", "a symbol below 2"),
    ("nullable", b"\x04", "a branch below 2"),
    ("nullable", b"\x01", "a branch below 2"),
    ("array", b"\x01\x01", "a size"),
    ("map", b"\x02\x02\xff\x00\x00", "UTF-8"),
]


@pytest.mark.parametrize(("kind", "data", "expected"), INVALID)
@pytest.mark.parametrize("older", [False, True], ids=["generated", "resolved"])
def test_a_body_that_no_writer_makes_is_corrupt(kind: str, data: bytes, expected: str, older: bool) -> None:
    current = contract_of(record("One", field("x", KINDS[kind])))
    newer = contract_of(record("One", field("x", KINDS[kind]), field("y", "int", default=0)), earlier=[current.SCHEMA])
    codec = Codec(Catalog.of(newer if older else current))

    with pytest.raises(Corrupt, match=expected):
        codec.decode(b"\xc3\x01" + current.FINGERPRINT.to_bytes(8, "little") + data)


HUGE = b"\x80\x80\x80\x80\x80\x80\x01"  # 2**41


@pytest.mark.parametrize("kind", ["string", "bytes", "array", "map"])
@pytest.mark.parametrize("older", [False, True], ids=["generated", "resolved"])
def test_a_length_that_is_only_claimed_takes_no_memory(kind: str, older: bool) -> None:
    current = contract_of(record("One", field("x", KINDS[kind])))
    newer = contract_of(record("One", field("x", KINDS[kind]), field("y", "int", default=0)), earlier=[current.SCHEMA])
    codec = Codec(Catalog.of(newer if older else current))
    data = b"\xc3\x01" + current.FINGERPRINT.to_bytes(8, "little") + HUGE + bytes(900_000)

    tracemalloc.start()
    with pytest.raises(Truncated):
        codec.decode(data)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 3_000_000  # a copy or two of what is there, and no list of what is not


def test_equal_maps_are_equal_bytes() -> None:
    contract = contract_of(record("One", field("x", KINDS["map"])))

    assert contract({"a": 1, "b": 2}).to_avro() == contract({"b": 2, "a": 1}).to_avro()


def test_an_array_of_several_blocks_is_read_whole() -> None:
    contract = contract_of(record("One", field("x", {"type": "array", "items": "int"})))
    blocks = b"\x04\x02\x04" + b"\x03\x04\x06\x08" + b"\x00"  # two items, then two in a block that tells its size

    value, end = contract.from_avro(blocks)

    assert value == contract((1, 2, 3, 4))
    assert end == len(blocks)


def test_a_record_of_the_largest_size_passes_and_one_byte_more_does_not(codec: Codec) -> None:
    size = len(codec.encode(LETTER))
    exact = Codec(codec.catalog, record_bytes_max=size)
    less = Codec(codec.catalog, record_bytes_max=size - 1)

    assert exact.decode(exact.encode(LETTER)) == LETTER
    with pytest.raises(RecordTooLarge, match=rf"at most {size - 1} bytes in kapelle.DeadLetter, but found {size}"):
        less.encode(LETTER)
    with pytest.raises(RecordTooLarge):
        less.decode(exact.encode(LETTER))


MISFITS: list[tuple[dict[str, Any], str, str]] = [
    ({"processor": 5}, "processor", "a str"),
    ({"processor": "\ud800"}, "processor", "UTF-8"),
    ({"processor": None}, "processor", "a str"),
    ({"stage": "NEVER"}, "stage", "one of DECODE"),
    ({"partition": 2**31}, "partition", "32 bits"),
    ({"partition": "3"}, "partition", "an int"),
    ({"offset": 2**63}, "offset", "64 bits"),
    ({"offset": -(2**63) - 1}, "offset", "64 bits"),
    ({"offset": 1.5}, "offset", "an int"),
    ({"key": "text"}, "key", "bytes"),
    ({"headers": (Header("a", b""), Header("b", None))}, r"headers\[1\].value", "bytes"),  # type: ignore[arg-type]
    ({"headers": "text"}, "headers", "a tuple"),
    ({"headers": ({"name": "a"},)}, r"headers\[0\]", "Header"),
]


@pytest.mark.parametrize(("change", "place", "expected"), MISFITS)
def test_a_value_that_does_not_fit_is_refused_with_its_field(
    codec: Codec, change: dict[str, Any], place: str, expected: str
) -> None:
    with pytest.raises(NotEncodable, match=rf"{expected}.* in kapelle\.DeadLetter\.{place}, but found"):
        codec.encode(msgspec.structs.replace(LETTER, **change))


WRONG: list[tuple[str, Any, str]] = [
    ("boolean", "yes", "a bool"),
    ("map", {1: 1}, "a dict by str"),
    ("map", {"a": "b"}, "an int"),
    ("array", {"a", "b"}, "a tuple"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), WRONG)
def test_a_value_of_another_kind_is_refused(kind: str, value: Any, expected: str) -> None:
    contract = contract_of(record("One", field("x", KINDS[kind])))

    with pytest.raises(NotEncodable, match=expected):
        Codec(Catalog.of(contract)).encode(contract(value))


@pytest.mark.parametrize("value", [3, True, "1.0", None])
def test_only_floats_are_doubles(value: Any) -> None:
    """An int would be read back as a float, and what was decided would differ from what history says."""
    contract = contract_of(record("One", field("x", "double")))

    with pytest.raises(NotEncodable, match="a float"):
        Codec(Catalog.of(contract)).encode(contract(value))


def test_a_type_outside_of_the_catalog_is_refused(codec: Codec) -> None:
    other = contract_of(record("Other", field("x", "int")))

    with pytest.raises(NotEncodable, match=r"a contract in the catalog, but found .*\.Other"):
        codec.encode(other(1))


def test_a_contract_without_a_registry_id_is_refused() -> None:
    codec = Codec(Catalog.of(contracts), Confluent({}))

    with pytest.raises(NotEncodable, match="a schema id in the registry"):
        codec.encode(LETTER)


def test_every_error_belongs_to_one_tree() -> None:
    from kapelle.schemas import errors

    found = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, Exception)]

    assert all(issubclass(error, errors.SchemaError) for error in found)
    assert all(error.__name__ in str(errors.__doc__) for error in found)


def test_a_contract_by_itself_writes_and_reads_nothing() -> None:
    class Bare(Contract, frozen=True):
        pass

    with pytest.raises(NotImplementedError):
        Bare().to_avro()
    with pytest.raises(NotImplementedError):
        Bare.from_avro(b"")


def test_the_published_schema_keeps_the_logical_type_while_values_are_integers() -> None:
    fields = {f["name"]: f for f in json.loads(DeadLetter.SCHEMA)["fields"]}

    assert fields["at_ms"]["type"] == {"type": "long", "logicalType": "timestamp-millis"}
    assert type(LETTER.at_ms) is int
