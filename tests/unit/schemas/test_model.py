"""Schemas become types, keep their meaning, and have the fingerprints that Avro says they have."""

import json
from typing import Any

import fastavro.schema
import pytest

from kapelle.schemas import BadSchema
from kapelle.schemas.model import Record, canonical_form, fingerprint, named_types, to_json
from kapelle.schemas.parsing import parse
from tests.unit.schemas.fresh import DEFAULTS, field, record

SHARED_INSIDE: Any = json.loads(
    json.dumps(DEFAULTS).replace(
        '"fresh.Shared"', '{"type": "record", "name": "S", "fields": [{"name": "id", "type": "string"}]}'
    )
)
# From the table of fingerprints in Avro's own tests.
KNOWN = [
    ('"null"', 0x63DD24E7CC258F8A),
    ('"boolean"', 0x9F42FC78A4D4F764),
    ('"int"', 0x7275D51A3F395C8F),
    ('"string"', 0x8F014872634503C7),
]


@pytest.mark.parametrize(("schema", "expected"), KNOWN)
def test_fingerprints_are_those_that_avro_publishes(schema: str, expected: int) -> None:
    assert fingerprint(parse(schema)) == expected


SCHEMAS = [
    SHARED_INSIDE,
    record("Twice", field("a", record("Inner", field("n", "int"))), field("b", "Inner"), aliases=["Old", "other.Old"]),
    record("Spaces", field("a", {"type": "array", "items": {"type": "map", "values": ["null", "string"]}}), doc="x"),
    {
        "type": "record",
        "name": "a.b.Dotted",
        "fields": [{"name": "x", "type": {"type": "fixed", "name": "F", "size": 3}}],
    },
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_canonical_form_is_that_of_another_implementation(schema: Any) -> None:
    parsed = parse(json.dumps(schema))
    canonical = fastavro.schema.to_parsing_canonical_form(schema)

    assert canonical_form(parsed) == canonical
    expected = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    assert fingerprint(parsed).to_bytes(8, "little").hex() == expected


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_normal_form_means_the_same(schema: Any) -> None:
    parsed = parse(json.dumps(schema))

    assert parse(to_json(parsed)) == parsed


def test_a_type_is_told_after_those_that_it_is_made_of() -> None:
    outer = parse(json.dumps(record("Outer", field("a", record("Inner")), field("b", record("Other")))))

    assert [of.name for of in named_types(outer)] == ["fresh.Inner", "fresh.Other", "fresh.Outer"]


def test_attributes_that_are_not_avros_are_passed_over_in_schemas_of_others() -> None:
    parsed = parse(
        '{"type": "record", "name": "R", "owner": "me", "fields": [{"name": "x", "type": "int", "order": "ignore"}]}'
    )

    assert isinstance(parsed, Record)
    assert "owner" not in to_json(parsed)


def deep(levels: int) -> Any:
    return "int" if not levels else {"type": "array", "items": deep(levels - 1)}


def doubling(levels: int) -> dict[str, Any]:
    inner: Any = "int"
    for n in range(levels):
        inner = record(f"R{n}", field("a", inner), field("b", f"R{n - 1}" if n else "int"))
    return dict(inner)


REFUSED = [
    ("not JSON", "{", "expected JSON"),
    ("no type", "{}", "expected a type"),
    ("a number", "5", "expected a type"),
    ("unknown name", '"Nowhere"', "expected a defined type"),
    ("record without name", '{"type": "record", "fields": []}', "expected a text as name"),
    ("record without fields", '{"type": "record", "name": "R"}', "expected a list of fields"),
    ("bad name", '{"type": "record", "name": "R-1", "fields": []}', "expected a name of letters"),
    ("name of a primitive", '{"type": "record", "name": "int", "fields": []}', "expected a name of letters"),
    ("bad namespace", '{"type": "record", "name": "R", "namespace": 5, "fields": []}', "as namespace"),
    ("bad field", '{"type": "record", "name": "R", "fields": [5]}', "expected a field"),
    (
        "bad field name",
        '{"type": "record", "name": "R", "fields": [{"name": "a b", "type": "int"}]}',
        "R.a b: expected a name",
    ),
    ("twice", json.dumps(record("R", field("a", "int"), field("a", "int"))), "fields of different names"),
    ("two definitions", json.dumps(record("R", field("a", record("S")), field("b", record("S")))), "found a second"),
    ("inside itself", json.dumps(record("R", field("a", ["null", "R"]))), "do not contain themselves"),
    ("defined in itself", json.dumps(record("R", field("a", record("R")))), "found a second"),
    ("no symbols", '{"type": "enum", "name": "E", "symbols": []}', "expected different symbols"),
    ("symbols twice", '{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "expected different symbols"),
    ("numbers as symbols", '{"type": "enum", "name": "E", "symbols": [1]}', "a list of texts as symbols"),
    (
        "unknown default symbol",
        '{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}',
        "the default to be one of",
    ),
    ("size", '{"type": "fixed", "name": "F", "size": -1}', "a size in bytes"),
    ("empty union", "[]", "a union of different types"),
    ("union of a union", '[["null"]]', "a union of different types"),
    ("union of one type twice", '["int", "int"]', "a union of different types"),
    ("empty items", '{"type": "array", "items": "null"}', "at least one byte"),
    ("empty fixed items", '{"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}', "at least one byte"),
    ("deep", json.dumps(deep(40)), "at most 32 levels"),
    ("very deep", '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, "expected JSON|levels"),
    ("wide", json.dumps(doubling(20)), "10000 types"),
    ("long", " " * 1_000_001, "at most 1000000 characters"),
    *(
        (f"default of {kind}", json.dumps(record("R", field("a", kind, default=default))), "a default of its type")
        for kind, default in (
            ("int", 2**31),
            ("int", True),
            ("long", 1.5),
            ("boolean", 0),
            ("string", None),
            ("bytes", "\u0100"),
            ("double", "1"),
            (["null", "int"], 5),
        )
    ),
]


@pytest.mark.parametrize(("schema", "reason"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_not_avro_or_not_bounded_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(BadSchema, match=reason):
        parse(schema)
