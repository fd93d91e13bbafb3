"""What a contract may become: every kind of change, both ways, and the codec agrees with the check."""

import json
import struct
from typing import Any

import msgspec
import pytest

from kapelle.schemas import Catalog, Codec, Unresolvable
from kapelle.schemas.compatibility import Direction, Incompatibility, compatible
from kapelle.schemas.model import fingerprint
from kapelle.schemas.parsing import parse
from kapelle.schemas.resolution import Rule
from tests.unit.schemas.fresh import contract_of, field, record

BACKWARD, FORWARD = Direction.BACKWARD, Direction.FORWARD


class Change(msgspec.Struct, frozen=True):
    """A change of one record: its fields before and after, and what is broken by it, by direction and rule."""

    name: str
    old: list[dict[str, Any]]
    new: list[dict[str, Any]]
    broken: dict[Direction, Rule] = {}
    written: dict[str, Any] | None = None
    read: dict[str, Any] | None = None


def enum(*symbols: str, **extra: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "Mood", "symbols": list(symbols), **extra}


def inner(*fields: dict[str, Any], name: str = "Inner", **extra: Any) -> dict[str, Any]:
    return record(name, *fields, **extra)


def several(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


def named(of: Any) -> dict[str, Any]:
    return {"type": "map", "values": of}


A = field("a", "int")
CHANGES = [
    Change("nothing", [A], [A], {}, {"a": 1}, {"a": 1}),
    Change("a new field with a default", [A], [A, field("b", "string", default="x")], {}, {"a": 1}, {"a": 1, "b": "x"}),
    Change("a new field without one", [A], [A, field("b", "string")], {BACKWARD: Rule.DEFAULT}, {"a": 1}),
    Change(
        "a field with a default goes",
        [field("a", "int", default=0), field("b", "int")],
        [field("b", "int")],
        {},
        {"a": 1, "b": 2},
        {"b": 2},
    ),
    Change(
        "a field without one goes",
        [A, field("b", "int")],
        [field("b", "int")],
        {FORWARD: Rule.DEFAULT},
        {"a": 1, "b": 2},
        {"b": 2},
    ),
    Change(
        "fields change places",
        [A, field("b", "string")],
        [field("b", "string"), A],
        {},
        {"a": 1, "b": "x"},
        {"a": 1, "b": "x"},
    ),
    Change(
        "a field gets a new name", [A], [field("z", "int", aliases=["a"])], {FORWARD: Rule.DEFAULT}, {"a": 1}, {"z": 1}
    ),
    Change("int becomes long", [A], [field("a", "long")], {FORWARD: Rule.TYPE}, {"a": -1}, {"a": -1}),
    Change("int becomes double", [A], [field("a", "double")], {FORWARD: Rule.TYPE}, {"a": 3}, {"a": 3.0}),
    Change(
        "long becomes double", [field("a", "long")], [field("a", "double")], {FORWARD: Rule.TYPE}, {"a": 3}, {"a": 3.0}
    ),
    Change("string becomes bytes", [field("a", "string")], [field("a", "bytes")], {}, {"a": "ä"}, {"a": "ä".encode()}),
    Change("int becomes string", [A], [field("a", "string")], {BACKWARD: Rule.TYPE, FORWARD: Rule.TYPE}, {"a": 1}),
    Change("a field may now be null", [A], [field("a", ["null", "int"])], {FORWARD: Rule.BRANCH}, {"a": 1}, {"a": 1}),
    Change(
        "null moves to the end", [field("a", ["null", "int"])], [field("a", ["int", "null"])], {}, {"a": 1}, {"a": 1}
    ),
    Change(
        "a nullable int becomes a nullable long",
        [field("a", ["null", "int"])],
        [field("a", ["long", "null"])],
        {FORWARD: Rule.BRANCH},
        {"a": None},
        {"a": None},
    ),
    Change(
        "a field may no longer be null", [field("a", ["null", "int"])], [A], {BACKWARD: Rule.BRANCH}, {"a": 1}, {"a": 1}
    ),
    Change("a null that may no longer be", [field("a", ["null", "int"])], [A], {BACKWARD: Rule.BRANCH}, {"a": None}),
    Change(
        "a new symbol",
        [field("a", enum("X"))],
        [field("a", enum("X", "Y"))],
        {FORWARD: Rule.SYMBOL},
        {"a": "X"},
        {"a": "X"},
    ),
    Change(
        "a new symbol where readers have a default",
        [field("a", enum("X", default="X"))],
        [field("a", enum("X", "Y", default="X"))],
        {},
        {"a": "X"},
        {"a": "X"},
    ),
    Change(
        "a symbol goes",
        [field("a", enum("X", "Y"))],
        [field("a", enum("Y"))],
        {BACKWARD: Rule.SYMBOL},
        {"a": "Y"},
        {"a": "Y"},
    ),
    Change(
        "a symbol that has gone",
        [field("a", enum("X", "Y"))],
        [field("a", enum("Y"))],
        {BACKWARD: Rule.SYMBOL},
        {"a": "X"},
    ),
    Change(
        "a symbol goes and readers have a default",
        [field("a", enum("X", "Y"))],
        [field("a", enum("Y", default="Y"))],
        {},
        {"a": "X"},
        {"a": "Y"},
    ),
    Change(
        "symbols change places", [field("a", enum("X", "Y"))], [field("a", enum("Y", "X"))], {}, {"a": "X"}, {"a": "X"}
    ),
    Change(
        "an inner record grows",
        [field("r", inner(A))],
        [field("r", inner(A, field("b", "int", default=7)))],
        {},
        {"r": {"a": 1}},
        {"r": {"a": 1, "b": 7}},
    ),
    Change(
        "an inner record in an array grows",
        [field("r", several(inner(A)))],
        [field("r", several(inner(A, field("b", "int"))))],
        {BACKWARD: Rule.DEFAULT},
        {"r": [{"a": 1}]},
    ),
    Change(
        "an inner record is renamed",
        [field("r", inner(A))],
        [field("r", inner(A, name="Other"))],
        {BACKWARD: Rule.NAME, FORWARD: Rule.NAME},
        {"r": {"a": 1}},
    ),
    Change(
        "an inner record is renamed with an alias",
        [field("r", inner(A))],
        [field("r", inner(A, name="Other", aliases=["Inner"]))],
        {FORWARD: Rule.NAME},
        {"r": {"a": 1}},
        {"r": {"a": 1}},
    ),
    Change(
        "an inner record may be null and grows",
        [field("r", ["null", inner(A)])],
        [field("r", ["null", inner(A, field("b", "int"))])],
        {BACKWARD: Rule.DEFAULT},
        {"r": None},
        {"r": None},
    ),
    Change(
        "items are promoted",
        [field("x", several("int"))],
        [field("x", several("long"))],
        {FORWARD: Rule.TYPE},
        {"x": [1, 2]},
        {"x": (1, 2)},
    ),
    Change(
        "values are promoted",
        [field("x", named("int"))],
        [field("x", named("double"))],
        {FORWARD: Rule.TYPE},
        {"x": {"k": 1}},
        {"x": {"k": 1.0}},
    ),
    Change(
        "an array becomes a map",
        [field("x", several("int"))],
        [field("x", named("int"))],
        {BACKWARD: Rule.TYPE, FORWARD: Rule.TYPE},
        {"x": [1]},
    ),
    Change(
        "an enum becomes a string",
        [field("a", enum("X"))],
        [field("a", "string")],
        {BACKWARD: Rule.TYPE, FORWARD: Rule.TYPE},
        {"a": "X"},
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_each_change_breaks_what_avro_says_it_breaks(change: Change) -> None:
    old, new = json.dumps(record("R", *change.old)), json.dumps(record("R", *change.new))

    assert {broken.direction: broken.rule for broken in compatible(old, new)} == change.broken


@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_the_codec_reads_old_records_where_they_can_be_read(change: Change) -> None:
    old = contract_of(record("R", *change.old))
    new = contract_of(record("R", *change.new), earlier=[old.SCHEMA])
    data = Codec(Catalog.of(old)).encode(msgspec.convert(change.written, old))
    codec = Codec(Catalog.of(new))

    if change.read is None:
        with pytest.raises(Unresolvable, match=r"fresh\.R"):
            codec.decode(data)
    else:
        assert msgspec.to_builtins(codec.decode(data), builtin_types=(bytes,)) == change.read


def test_a_float_that_others_wrote_is_read_as_a_double() -> None:
    theirs = json.dumps(record("R", field("a", "float")))
    ours = contract_of(record("R", field("a", "double")), earlier=[theirs])
    mark = b"\xc3\x01" + fingerprint(parse(theirs)).to_bytes(8, "little")

    assert Codec(Catalog.of(ours)).decode(mark + struct.pack("<f", 0.5)) == ours(0.5)


def test_an_incompatibility_names_the_path_the_direction_and_the_rule() -> None:
    old = json.dumps(record("R", field("r", several(inner(field("m", named("string")))))))
    new = json.dumps(record("R", field("r", several(inner(field("m", named("int")))))))

    (found,) = compatible(old, new, (BACKWARD,))

    assert found == Incompatibility(BACKWARD, "fresh.R.r[].m{}", Rule.TYPE, "expected int, but found string")
    assert str(found).startswith(
        "fresh.R.r[].m{}: expected int, but found string (BACKWARD: the new reads the old; TYPE"
    )


def test_one_direction_can_be_asked_for_alone() -> None:
    old, new = json.dumps(record("R", A)), json.dumps(record("R", A, field("b", "int")))

    assert [broken.direction for broken in compatible(old, new, (BACKWARD,))] == [BACKWARD]
    assert compatible(old, new, (FORWARD,)) == []


def test_a_record_of_another_name_is_refused() -> None:
    found = compatible(json.dumps(record("R", A)), json.dumps(record("S", A)))

    assert [broken.rule for broken in found] == [Rule.NAME, Rule.NAME]


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


WIDE = [
    ("a fixed type grows", fixed(2), fixed(3), [Rule.SIZE]),
    ("a fixed type stays", fixed(2), fixed(2), []),
    ("a union grows", ["null", "int"], ["null", "int", "string"], []),
    ("a union shrinks", ["null", "int", "boolean"], ["null", "int"], [Rule.BRANCH]),
    ("a union loses two", ["null", "int", "boolean"], "string", [Rule.BRANCH] * 3),
    ("a type becomes a union with it", "int", ["string", "long"], []),
    ("a type becomes a union without it", "int", ["string", "null"], [Rule.BRANCH]),
    ("bytes become a fixed type", "bytes", fixed(2), [Rule.TYPE]),
]


@pytest.mark.parametrize(("old", "new", "broken"), [case[1:] for case in WIDE], ids=[case[0] for case in WIDE])
def test_schemas_of_others_may_use_all_of_avro(old: Any, new: Any, broken: list[Rule]) -> None:
    found = compatible(json.dumps(record("R", field("x", old))), json.dumps(record("R", field("x", new))), (BACKWARD,))

    assert [incompatibility.rule for incompatibility in found] == broken


def test_a_record_of_a_writer_that_uses_all_of_avro_is_read() -> None:
    reader = contract_of(record("R", field("x", ["null", "long"]), field("y", "int")))
    catalog = Catalog.of(reader)
    wide = record("R", field("gone", fixed(3)), field("x", ["string", "int", "null"]), field("y", ["int"]))
    head = b"\xc3\x01" + catalog.learn(json.dumps(wide)).to_bytes(8, "little")
    codec = Codec(catalog)

    assert codec.decode(head + b"abc" + b"\x02\x0a" + b"\x00\x04") == reader(5, 2)
    assert codec.decode(head + b"abc" + b"\x04" + b"\x00\x04") == reader(None, 2)
    with pytest.raises(Unresolvable, match=r"fresh\.R\.x .* but found string"):
        codec.decode(head + b"abc" + b"\x00\x02s" + b"\x00\x04")
