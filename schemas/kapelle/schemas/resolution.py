"""Reading data of one schema as another: Avro's resolution rules, as a plan.

The plan is data, and it has two uses: `reading` turns it into a reader, and `compatibility` lists the refusals in it.
So whatever the check calls compatible is what the codec can read.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from kapelle.schemas.model import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, short_name

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Rule(StrEnum):
    """The rule of Avro's schema resolution that a pair of schemas breaks."""

    TYPE = "the types are the same, or the writer's can be promoted to the reader's"
    NAME = "named types have one name, or the reader has the writer's as an alias"
    DEFAULT = "a field that the writer lacks has a default in the reader"
    SYMBOL = "every symbol of the writer is known to the reader, or the reader has a default symbol"
    BRANCH = "every type that the writer may choose is one that the reader may choose"
    SIZE = "fixed types have one size"


class Refused(msgspec.Struct, frozen=True):
    """What cannot be read, where, and by which rule."""

    path: str
    rule: Rule
    detail: str


class Scalar(msgspec.Struct, frozen=True):
    """Read one primitive and take it for another."""

    written: str
    wanted: str


class Sized(msgspec.Struct, frozen=True):
    """Read a known number of bytes."""

    size_bytes: int


class Symbols(msgspec.Struct, frozen=True):
    """For each of the writer's symbols, the reader's."""

    table: tuple[str | Refused, ...]


class Items(msgspec.Struct, frozen=True):
    """Read an array."""

    item: "Plan"


class Entries(msgspec.Struct, frozen=True):
    """Read a map."""

    value: "Plan"


class Choice(msgspec.Struct, frozen=True):
    """For each of the writer's branches, how it is read."""

    branches: tuple["Plan", ...]


class Fields(msgspec.Struct, frozen=True):
    """For each of the writer's fields, the reader's name for it, or None to pass over it."""

    steps: tuple[tuple[str | None, "Plan"], ...]
    missing: tuple[Refused, ...] = ()


Plan = Scalar | Sized | Symbols | Items | Entries | Choice | Fields | Refused


def resolve(writer: Type, reader: Type, path: str = "") -> Plan:
    """How to read what `writer` wrote as `reader`."""
    match writer, reader:
        case Union(branches=branches), _:
            return Choice(tuple(_branch(branch, reader, path) for branch in branches))
        case _, Union():
            return _branch(writer, reader, path)
        case Primitive(name=written), Primitive(name=reads):
            if written == reads or reads in PROMOTIONS.get(written, ()):
                return Scalar(written, reads)
        case Array(items=written_item), Array(items=wanted_item):
            return Items(resolve(written_item, wanted_item, f"{path}[]"))
        case Map(values=written_value), Map(values=wanted_value):
            return Entries(resolve(written_value, wanted_value, f"{path}{{}}"))
        case (Record(), Record()) | (Enum(), Enum()) | (Fixed(), Fixed()):
            return _named(writer, reader, path)
    return Refused(path, Rule.TYPE, f"expected {_kind(reader)}, but found {_kind(writer)}")


def refusals(plan: Plan) -> Iterator[Refused]:
    """Everything in a plan that cannot be read."""
    match plan:
        case Refused():
            yield plan
        case Items(item=inner) | Entries(value=inner):
            yield from refusals(inner)
        case Choice(branches=branches):
            for branch in branches:
                yield from refusals(branch)
        case Symbols(table=table):
            yield from (symbol for symbol in table if isinstance(symbol, Refused))
        case Fields(steps=steps, missing=missing):
            for _, step in steps:
                yield from refusals(step)
            yield from missing


def _branch(written: Type, reader: Type, path: str) -> Plan:
    """A type that was written, as the first of the reader's branches that can take it."""
    if not isinstance(reader, Union):
        plan = resolve(written, reader, path)
        if isinstance(plan, Refused) and plan.rule is Rule.TYPE:
            return Refused(path, Rule.BRANCH, plan.detail)
        return plan
    for branch in reader.branches:
        plan = resolve(written, branch, path)
        if not any(refusals(plan)):
            return plan
    # The branch that is nearest says best what is wrong.
    near = [b for b in reader.branches if type(b) is type(written) and not isinstance(b, Primitive)]
    if len(near) == 1:
        return resolve(written, near[0], path)
    kinds = ", ".join(_kind(branch) for branch in reader.branches)
    return Refused(path, Rule.BRANCH, f"expected one of {kinds}, but found {_kind(written)}")


def _named(writer: Type, reader: Type, path: str) -> Plan:
    match writer, reader:
        case ((Record() | Enum() | Fixed()), (Record() | Enum() | Fixed())):
            known = {short_name(name) for name in (reader.name, *reader.aliases)}
            if short_name(writer.name) not in known:
                return Refused(path, Rule.NAME, f"expected {reader.name}, but found {writer.name}")
    match writer, reader:
        case Fixed(size_bytes=written), Fixed(size_bytes=expected):
            if written == expected:
                return Sized(written)
            return Refused(path, Rule.SIZE, f"expected {expected} bytes, but found {written}")
        case Enum(), Enum():
            return _symbols(writer, reader, path)
        case Record(), Record():
            return _fields(writer, reader, path or reader.name)
    raise AssertionError(writer)


def _symbols(writer: Enum, reader: Enum, path: str) -> Symbols:
    def known(symbol: str) -> str | Refused:
        if symbol in reader.symbols:
            return symbol
        if reader.default is not None:
            return reader.default
        return Refused(path, Rule.SYMBOL, f"expected one of {', '.join(reader.symbols)}, but found {symbol}")

    return Symbols(tuple(map(known, writer.symbols)))


def _fields(writer: Record, reader: Record, path: str) -> Fields:
    written = {field.name: field for field in writer.fields}
    taken: dict[str, Field] = {}
    missing: list[Refused] = []
    for field in reader.fields:
        source = next((name for name in (field.name, *field.aliases) if name in written and name not in taken), None)
        if source is not None:
            taken[source] = field
        elif field.required:
            detail = f"expected a default, since {writer.name} of the writer has no such field"
            missing.append(Refused(f"{path}.{field.name}", Rule.DEFAULT, detail))

    def step(field: Field) -> tuple[str | None, Plan]:
        source = taken.get(field.name)
        if source is None:
            return None, resolve(field.type, field.type)
        return source.name, resolve(field.type, source.type, f"{path}.{source.name}")

    return Fields(tuple(map(step, writer.fields)), tuple(missing))


def _kind(of: Type) -> str:
    match of:
        case Primitive(name=name):
            return name
        case Record(name=name) | Enum(name=name) | Fixed(name=name):
            return f"{type(of).__name__.lower()} {name}"
        case Union(branches=branches):
            return f"a union of {', '.join(map(_kind, branches))}"
    return type(of).__name__.lower()
