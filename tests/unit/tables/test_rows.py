"""Rows carry a version: older ones are read for ever, and what cannot be read is named."""

from enum import StrEnum, auto
from typing import Any

import msgspec
import pytest

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.tables import RowForm, TableSpec, table
from kapelle.topology.tables.errors import BadRow, RowCorrupt, RowTooLarge, RowVersionUnknown
from kapelle.topology.tables.rows import ROW_BYTES_MAX, RowCodec


class Name(msgspec.Struct, frozen=True):
    name: str


class Names(msgspec.Struct, frozen=True):
    names: tuple[str, ...]


class Person(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    tags: frozenset[str] = frozenset()
    extra: Any = None


class Mood(StrEnum):
    CALM = auto()


class Loose(msgspec.Struct):
    name: str


PEOPLE = table(
    "people",
    key=tuple[str],
    row=Person,
    form=RowForm(
        version=3,
        upgrades={
            1: (Name, lambda old: Names((old.name,))),
            2: (Names, lambda old: Person(old.names, frozenset(["upgraded"]))),
        },
    ),
)


def declared(row: Any, form: RowForm | None = None) -> TableSpec[Any, Any]:
    return table("people", key=tuple[str], row=row, form=form)


def plain(row: Any) -> bool:
    return RowCodec(declared(row)).is_plain


def test_only_rows_that_are_the_same_when_they_are_read_again_are_plain() -> None:
    assert plain(msgspec.defstruct("Flat", [("a", str), ("b", int | None), ("c", bool), ("d", Mood)], frozen=True))
    assert plain(msgspec.defstruct("Nested", [("a", Name), ("b", tuple[str, ...])], frozen=True))

    for of in (dict[str, int], frozenset[str], float, int | float, tuple[float, ...], tuple[dict[str, int], ...], Any):
        assert not plain(msgspec.defstruct("Deep", [("a", of)], frozen=True))


def test_a_row_is_its_version_and_msgpack() -> None:
    codec = RowCodec(declared(Name))

    assert codec.encode(Name("ada")) == b"\x01\x81\xa4name\xa3ada"
    assert codec.decode(b"\x01\x81\xa4name\xa3ada", ("k",)) == Name("ada")


def test_older_rows_are_upgraded_step_by_step() -> None:
    codec = RowCodec(PEOPLE)
    first = b"\1" + msgspec.msgpack.encode(Name("ada"))
    second = b"\2" + msgspec.msgpack.encode(Names(("ada", "bob")))

    assert codec.decode(first, ("k",)) == Person(("ada",), frozenset(["upgraded"]))
    assert codec.decode(second, ("k",)) == Person(("ada", "bob"), frozenset(["upgraded"]))
    assert codec.encode(codec.decode(first, ("k",)))[:1] == b"\3"


def test_a_row_of_an_unknown_version_is_refused_with_its_coordinates() -> None:
    with pytest.raises(RowVersionUnknown) as refused:
        RowCodec(PEOPLE).decode(b"\4\x80", ("ada",))

    error = refused.value
    assert (error.table, error.key, error.version, error.known) == ("people", ("ada",), 4, (1, 2, 3))


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (b"", None),
        (b"\3", 3),
        (b"\3\x81", 3),
        (b"\3\x80", 3),
        (b"\3\x81\xa5names\xa1a", 3),
        (b"\3\xc1", 3),
        (b"\1\x80", 1),
    ],
)
def test_a_corrupt_row_is_refused_with_its_coordinates(value: bytes, version: int | None) -> None:
    with pytest.raises(RowCorrupt) as refused:
        RowCodec(PEOPLE).decode(value, ("ada",))

    assert (refused.value.table, refused.value.key, refused.value.version) == ("people", ("ada",), version)


def test_a_row_with_bytes_after_its_end_is_corrupt() -> None:
    codec = RowCodec(PEOPLE)

    with pytest.raises(RowCorrupt, match="ada"):
        codec.decode(codec.encode(Person(())) + b"\0", ("ada",))


def test_a_row_beyond_the_limit_is_refused_with_its_size() -> None:
    codec = RowCodec(declared(Name))
    # The version, the map, "name", and the length of a long string: 1 + 1 + 5 + 5 bytes.
    fits = Name("x" * (ROW_BYTES_MAX - 12))

    assert len(codec.encode(fits)) == ROW_BYTES_MAX
    with pytest.raises(RowTooLarge) as refused:
        codec.encode(Name(fits.name + "x"))

    assert (refused.value.size_bytes, refused.value.limit_bytes) == (ROW_BYTES_MAX + 1, ROW_BYTES_MAX)


@pytest.mark.parametrize("row", [Name("ada"), None, {"names": []}])
def test_a_row_of_another_type_is_refused(row: Any) -> None:
    with pytest.raises(BadRow, match="Expected a row of Person in table 'people'"):
        RowCodec(PEOPLE).encode(row)


@pytest.mark.parametrize("extra", [object(), 2**70, "\ud800"])
def test_a_row_that_msgpack_cannot_hold_is_refused(extra: Any) -> None:
    with pytest.raises(BadRow, match="that msgpack can hold"):
        RowCodec(PEOPLE).encode(Person((), extra=extra))


def test_equal_rows_are_equal_bytes_whatever_the_order_of_their_sets() -> None:
    codec = RowCodec(PEOPLE)
    one = Person((), frozenset(["a", "b", "c", "d"]), {"x": 1, "y": 2})
    other = Person((), frozenset(["d", "c", "b", "a"]), {"y": 2, "x": 1})

    assert codec.encode(one) == codec.encode(other)


@pytest.mark.parametrize("row", [Loose, dict, int])
def test_a_row_type_that_is_no_frozen_struct_is_refused_when_declared(row: Any) -> None:
    with pytest.raises(BadDeclaration, match=r"'people' to be a frozen msgspec\.Struct"):
        RowCodec(declared(row))


@pytest.mark.parametrize("version", [0, -1, 256])
def test_a_version_that_is_no_byte_is_refused_when_declared(version: int) -> None:
    with pytest.raises(BadDeclaration, match="to be within 1 and 255"):
        RowCodec(declared(Name, RowForm(version=version)))


@pytest.mark.parametrize("known", [[1], [1, 3], [2, 4], [3], [0, 1, 2]])
def test_upgrades_with_a_gap_are_refused_when_declared(known: list[int]) -> None:
    form = RowForm(version=3, upgrades={version: (Name, lambda old: old) for version in known})

    with pytest.raises(BadDeclaration, match="without a gap to version 3"):
        RowCodec(declared(Name, form))


def test_an_upgrade_that_leads_elsewhere_is_refused() -> None:
    codec = RowCodec(declared(Person, RowForm(version=2, upgrades={1: (Name, lambda old: old)})))

    with pytest.raises(BadRow, match="from the upgrade of version 1"):
        codec.decode(b"\1" + msgspec.msgpack.encode(Name("ada")), ("k",))
