"""The supported part of Avro. Other types are refused with their file and field."""

import keyword
from collections.abc import Sequence
from typing import Final

from kapelle.schemas.errors import BadSchema
from kapelle.schemas.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    children,
    named_types,
    nullable,
    short_name,
)

_TAKEN_BY_CONTRACT: Final = {"to_avro", "from_avro"}
_TAKEN_BY_MODULE: Final = {"ClassVar", "Contract", "Final", "Self", "StrEnum", "msgspec", "wire"}


def every_type(types: Sequence[Named]) -> dict[str, Named]:
    """All named types, those that others are made of first; refused if Python or we cannot have them."""
    every: dict[str, Named] = {}
    taken = dict.fromkeys(_TAKEN_BY_MODULE, "the module itself")
    own = {of.name for of in types}
    for of in types:
        for inner in named_types(of):
            file = f"{short_name(inner.name if inner.name in own else of.name)}.avsc"
            if every.setdefault(inner.name, inner) != inner:
                raise BadSchema(file, f"expected one definition of {inner.name}, but another file has a different one")
            name = short_name(inner.name)
            owner = taken.setdefault(name, inner.name)
            if owner != inner.name or keyword.iskeyword(name) or not name[0].isupper():
                why = f"taken by {owner}" if owner != inner.name else "not the name of a Python class"
                raise BadSchema(file, f"expected a name of its own in CapWords, but {inner.name!r} is {why}")
            _refuse_unsupported(inner, f"{file}: {inner.name}")
    return every


def _refuse_unsupported(of: Named, where: str) -> None:
    match of:
        case Enum(symbols=symbols):
            for symbol in symbols:
                if not symbol.isupper() or symbol.startswith("_"):
                    raise BadSchema(where, f"expected symbols in CAPITALS, but found {symbol!r}")
        case Record(fields=fields):
            for field in fields:
                if keyword.iskeyword(field.name) or field.name in _TAKEN_BY_CONTRACT or not field.name[0].islower():
                    reason = "expected a field name in lower case that Python does not use itself"
                    raise BadSchema(f"{where}.{field.name}", reason)
                _refuse_type(field.type, f"{where}.{field.name}", field.name)
        case Fixed():
            raise BadSchema(where, "expected a type that contracts may use, but found fixed: use bytes")


def _refuse_type(of: Type, where: str, name: str) -> None:
    inner = nullable(of)
    match of:
        case Primitive(name="null"):
            raise BadSchema(where, "expected null only in a union with one other type")
        case Primitive(name="float"):
            # Python's floats have 64 bits: an event as it was decided would differ from the same event read back.
            raise BadSchema(where, "expected a type that contracts may use, but found float: use double")
        case Primitive(logical=str(logical)) if (of.name, logical) != ("long", "timestamp-millis"):
            raise BadSchema(where, f"expected no logical type but timestamp-millis of a long, but found {logical}")
        case Primitive(logical="timestamp-millis") if not name.endswith("_ms"):
            raise BadSchema(where, "expected a field of milliseconds to have a name that ends in _ms")
        case Primitive() | Enum() | Record() | Fixed():
            return  # named types are looked at by themselves
        case Array() | Map():
            for child in children(of):
                _refuse_type(child, where, name)
        case _ if inner:
            _refuse_type(inner[0], where, name)
        case _:
            raise BadSchema(where, "expected a type that contracts may use: unions are of null and one other type")
