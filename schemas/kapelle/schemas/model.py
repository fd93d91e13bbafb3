"""Avro schemas as a small tree of types, with their normal JSON, canonical form and fingerprint.

Every limit that keeps decoding bounded is held here, when a schema is read, so that no reader of bytes has to:

1. A schema contains itself nowhere: nesting is known beforehand, so hostile bytes cannot exhaust the stack.
2. An array's item takes at least one byte, so a count is never worth more than the bytes that follow it.
3. Depth, and the number of types after every name is replaced by what it stands for, have limits.

The fingerprint is CRC-64-AVRO of the parsing canonical form. That form leaves out doc, aliases, defaults and logical
types: two schemas with one fingerprint write the same bytes.
"""

import json
from collections.abc import Iterator
from typing import Final

import msgspec

DEPTH_MAX: Final = 32
TYPES_MAX: Final = 10_000
SCHEMA_BYTES_MAX: Final = 1_000_000

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Primitive(msgspec.Struct, frozen=True):
    """One of Avro's eight primitive types. A logical type is kept for others to see; values stay what they are."""

    name: str
    logical: str | None = None


class Enum(msgspec.Struct, frozen=True):
    """Named symbols. `default` stands for symbols that a reader does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str = ""


class Fixed(msgspec.Struct, frozen=True):
    """A known number of bytes."""

    name: str
    size_bytes: int
    aliases: tuple[str, ...] = ()
    doc: str = ""


class Array(msgspec.Struct, frozen=True):
    """Any number of items of one type."""

    items: "Type"


class Map(msgspec.Struct, frozen=True):
    """Values of one type by string."""

    values: "Type"


class Union(msgspec.Struct, frozen=True):
    """One of several types."""

    branches: tuple["Type", ...]


class Field(msgspec.Struct, frozen=True):
    """A field of a record. `default` is in Avro's JSON form, or UNSET."""

    name: str
    type: "Type"
    default: object = msgspec.UNSET
    aliases: tuple[str, ...] = ()
    doc: str = ""

    @property
    def required(self) -> bool:
        return self.default is msgspec.UNSET


class Record(msgspec.Struct, frozen=True):
    """Named fields in the order of their bytes."""

    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()
    doc: str = ""


Named = Enum | Fixed | Record
Type = Primitive | Enum | Fixed | Array | Map | Union | Record


def short_name(full_name: str) -> str:
    """The name without its namespace."""
    return full_name.rpartition(".")[2]


def children(of: Type) -> Iterator[Type]:
    """The types directly inside a type."""
    match of:
        case Record(fields=fields):
            yield from (field.type for field in fields)
        case Union(branches=branches):
            yield from branches
        case Array(items=inner) | Map(values=inner):
            yield inner


def named_types(of: Type) -> Iterator[Named]:
    """Every named type in a type, each once, those that others are made of first."""
    seen: set[str] = set()

    def walk(at: Type) -> Iterator[Named]:
        if isinstance(at, Named):
            if at.name in seen:
                return
            seen.add(at.name)
        for child in children(at):
            yield from walk(child)
        if isinstance(at, Named):
            yield at

    return walk(of)


def nullable(of: Type) -> tuple[Type, int] | None:
    """For a union of null and one other type: that type, and the index of null. None for any other type."""
    match of:
        case Union(branches=(Primitive(name="null"), other)):
            return other, 0
        case Union(branches=(other, Primitive(name="null"))):
            return other, 1
    return None


def to_json(of: Type) -> str:
    """The normal form: one line of ASCII, full names, each name defined where it first appears, nothing lost.

    It has no single quote, so that it can stand between two of them in generated code.
    """
    return json.dumps(_plain(of, set(), canonical=False), separators=(",", ":")).replace("'", "\\u0027")


def canonical_form(of: Type) -> str:
    """Avro's parsing canonical form."""
    return json.dumps(_plain(of, set(), canonical=True), separators=(",", ":"), ensure_ascii=False)


def _plain(of: Type, seen: set[str], *, canonical: bool) -> object:
    """The schema as JSON data; attributes come in the order that the canonical form asks for."""
    if isinstance(of, Named):
        if of.name in seen:
            return of.name
        seen.add(of.name)
    match of:
        case Primitive(name=name, logical=logical):
            return name if canonical or logical is None else {"type": name, "logicalType": logical}
        case Array(items=items):
            return {"type": "array", "items": _plain(items, seen, canonical=canonical)}
        case Map(values=values):
            return {"type": "map", "values": _plain(values, seen, canonical=canonical)}
        case Union(branches=branches):
            return [_plain(branch, seen, canonical=canonical) for branch in branches]
        case Enum(name=name, symbols=symbols, default=default):
            plain: dict[str, object] = {"name": name, "type": "enum", "symbols": list(symbols)}
            extra = {} if default is None else {"default": default}
        case Fixed(name=name, size_bytes=size):
            plain, extra = {"name": name, "type": "fixed", "size": size}, {}
        case Record(name=name, fields=fields):
            plain = {"name": name, "type": "record"}
            plain["fields"] = [_plain_field(field, seen, canonical=canonical) for field in fields]
            extra = {}
    return plain if canonical else plain | extra | _notes(of.aliases, of.doc)


def _plain_field(field: Field, seen: set[str], *, canonical: bool) -> dict[str, object]:
    plain = {"name": field.name, "type": _plain(field.type, seen, canonical=canonical)}
    if canonical:
        return plain
    return plain | ({} if field.required else {"default": field.default}) | _notes(field.aliases, field.doc)


def _notes(aliases: tuple[str, ...], doc: str) -> dict[str, object]:
    return ({"aliases": list(aliases)} if aliases else {}) | ({"doc": doc} if doc else {})


_EMPTY: Final = 0xC15D213AA4D7A795


def _crc_row(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_EMPTY & -(byte & 1))
    return byte


_CRC_TABLE: Final = tuple(_crc_row(byte) for byte in range(256))


def fingerprint(of: Type) -> int:
    """CRC-64-AVRO of the canonical form."""
    crc = _EMPTY
    for byte in canonical_form(of).encode():
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc
