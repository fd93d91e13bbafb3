"""From schema JSON to the tree of types. Whatever is wrong is refused here, naming the place."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.schemas.errors import BadSchema
from kapelle.schemas.model import (
    DEPTH_MAX,
    PRIMITIVES,
    SCHEMA_BYTES_MAX,
    TYPES_MAX,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    children,
)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

# What each kind of definition may say. A source is refused when it says more: most such words are spelling mistakes.
_COMMON: Final = frozenset({"type", "name", "namespace", "doc", "aliases"})
_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    "record": _COMMON | {"fields"},
    "enum": _COMMON | {"symbols", "default"},
    "fixed": _COMMON | {"size"},
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
    "field": frozenset({"type", "name", "doc", "aliases", "default"}),
    "primitive": frozenset({"type", "logicalType"}),
}

Lookup = Callable[[str], Named | None]
"""Finds a type that is defined outside of the schema at hand."""


def parse(schema_json: str, *, where: str = "schema") -> Type:
    """Read one self-contained schema, as writers publish it. Attributes that are not Avro's are passed over."""
    return Parser(where).parse(load_json(schema_json, where))


def load_json(text: str, where: str) -> object:
    """JSON, bounded in size and depth."""
    if len(text) > SCHEMA_BYTES_MAX:
        raise BadSchema(where, f"expected at most {SCHEMA_BYTES_MAX} characters, but found {len(text)}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSchema(where, f"expected JSON, but {error}") from error


class Parser:
    """One reading of one schema. `strict` refuses unknown attributes; `lookup` finds types of other sources."""

    def __init__(self, where: str, *, strict: bool = False, lookup: Lookup = lambda _: None) -> None:
        self._where = where
        self._strict = strict
        self._lookup = lookup
        self._names: dict[str, Named] = {}
        self._open: list[str] = []

    def parse(self, plain: object) -> Type:
        type_ = self._type(plain, "", ())
        depth, count = _measure(type_, {})
        if depth > DEPTH_MAX or count > TYPES_MAX:
            raise self._bad(
                (), f"expected at most {DEPTH_MAX} levels and {TYPES_MAX} types, but found {depth}, {count}"
            )
        return type_

    def _bad(self, path: tuple[str, ...], reason: str) -> BadSchema:
        return BadSchema(": ".join((self._where, ".".join(path))) if path else self._where, reason)

    def _type(self, plain: object, namespace: str, path: tuple[str, ...]) -> Type:
        if len(path) > DEPTH_MAX:
            raise self._bad(path, f"expected at most {DEPTH_MAX} levels")
        match plain:
            case str():
                return self._by_name(plain, namespace, path)
            case list():
                return self._union(plain, namespace, path)
            case {"type": dict() | list() as inner, **rest} if not rest:
                return self._type(inner, namespace, path)
            case {"type": str(kind)} if isinstance(plain, dict):
                return self._definition(kind, plain, namespace, path)
        raise self._bad(path, f"expected a type, but found {plain!r:.80}")

    def _by_name(self, name: str, namespace: str, path: tuple[str, ...]) -> Type:
        if name in PRIMITIVES:
            return Primitive(name)
        full_name = _qualified(name, namespace)
        if full_name in self._open:
            raise self._bad(path, f"expected types that do not contain themselves, but {full_name} does")
        named = self._names.get(full_name) or self._lookup(full_name)
        if named is None:
            raise self._bad(path, f"expected a defined type, but found {full_name!r}")
        return named

    def _union(self, plain: list[object], namespace: str, path: tuple[str, ...]) -> Union:
        branches = tuple(self._type(branch, namespace, path) for branch in plain)
        kinds = [b.name if isinstance(b, Named | Primitive) else type(b).__name__ for b in branches]
        if not branches or len(set(kinds)) < len(kinds) or any(isinstance(b, Union) for b in branches):
            raise self._bad(path, f"expected a union of different types that are not unions, but found {kinds}")
        return Union(branches)

    def _definition(self, kind: str, plain: dict[str, object], namespace: str, path: tuple[str, ...]) -> Type:
        self._attributes(plain, kind if kind in _ATTRIBUTES else "primitive", path)
        match kind:
            case "array":
                items = self._type(plain.get("items"), namespace, (*path, "[]"))
                if not _bytes_min(items):
                    raise self._bad(path, "expected items that take at least one byte, or a count could be endless")
                return Array(items)
            case "map":
                return Map(self._type(plain.get("values"), namespace, (*path, "{}")))
            case "record" | "enum" | "fixed":
                return self._named(kind, plain, namespace, path)
        type_ = self._by_name(kind, namespace, path)
        logical = plain.get("logicalType")
        return Primitive(type_.name, logical) if isinstance(type_, Primitive) and isinstance(logical, str) else type_

    def _named(self, kind: str, plain: dict[str, object], namespace: str, path: tuple[str, ...]) -> Named:
        given = plain.get("namespace", namespace)
        if not isinstance(given, str):
            raise self._bad(path, f"expected a text as namespace, but found {given!r}")
        full_name = _qualified(self._text(plain, "name", path), given)
        if not all(_NAME.fullmatch(part) for part in full_name.split(".")) or full_name in PRIMITIVES:
            raise self._bad(path, f"expected a name of letters, digits and _, but found {full_name!r}")
        if full_name in self._names or full_name in self._open:
            raise self._bad(path, f"expected one definition of {full_name}, but found a second")
        inside = full_name.rpartition(".")[0]
        aliases = tuple(_qualified(alias, inside) for alias in self._texts(plain, "aliases", path))
        doc = str(plain.get("doc", ""))
        self._open.append(full_name)
        named: Named
        match kind:
            case "record":
                named = Record(full_name, self._fields(plain, inside, path or (full_name,)), aliases, doc)
            case "enum":
                named = self._enum(plain, full_name, aliases, path)
            case _:
                named = Fixed(full_name, self._size(plain, path), aliases, doc)
        self._open.pop()
        self._names[full_name] = named
        return named

    def _enum(self, plain: dict[str, object], full_name: str, aliases: tuple[str, ...], path: tuple[str, ...]) -> Enum:
        symbols = self._texts(plain, "symbols", path)
        if not symbols or len(set(symbols)) < len(symbols) or not all(map(_NAME.fullmatch, symbols)):
            raise self._bad(path, f"expected different symbols of letters, digits and _, but found {list(symbols)}")
        default = plain.get("default")
        if default is not None and default not in symbols:
            raise self._bad(path, f"expected the default to be one of {list(symbols)}, but found {default!r}")
        return Enum(full_name, symbols, default, aliases, str(plain.get("doc", "")))

    def _fields(self, plain: dict[str, object], namespace: str, path: tuple[str, ...]) -> tuple[Field, ...]:
        listed = plain.get("fields")
        if not isinstance(listed, list):
            raise self._bad(path, f"expected a list of fields, but found {listed!r:.80}")
        fields = tuple(self._field(field, namespace, path) for field in listed)
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise self._bad(path, f"expected fields of different names, but found {names}")
        return fields

    def _field(self, plain: object, namespace: str, path: tuple[str, ...]) -> Field:
        if not isinstance(plain, dict):
            raise self._bad(path, f"expected a field, but found {plain!r:.80}")
        name = self._text(plain, "name", path)
        path = (*path, name)
        if not _NAME.fullmatch(name):
            raise self._bad(path, "expected a name of letters, digits and _")
        self._attributes(plain, "field", path)
        of = self._type(plain.get("type"), namespace, path)
        default = plain.get("default", msgspec.UNSET)
        if default is not msgspec.UNSET and not fits_default(of, default):
            raise self._bad(path, f"expected a default of its type, but found {default!r:.80}")
        return Field(name, of, default, self._texts(plain, "aliases", path), str(plain.get("doc", "")))

    def _attributes(self, plain: dict[str, object], kind: str, path: tuple[str, ...]) -> None:
        extra = set(plain) - _ATTRIBUTES[kind]
        if self._strict and extra:
            raise self._bad(path, f"expected only {sorted(_ATTRIBUTES[kind])} in a {kind}, but found {sorted(extra)}")

    def _text(self, plain: dict[str, object], attribute: str, path: tuple[str, ...]) -> str:
        text = plain.get(attribute)
        if not isinstance(text, str):
            raise self._bad(path, f"expected a text as {attribute}, but found {text!r:.80}")
        return text

    def _texts(self, plain: dict[str, object], attribute: str, path: tuple[str, ...]) -> tuple[str, ...]:
        texts = plain.get(attribute, [])
        if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
            raise self._bad(path, f"expected a list of texts as {attribute}, but found {texts!r:.80}")
        return tuple(texts)

    def _size(self, plain: dict[str, object], path: tuple[str, ...]) -> int:
        size = plain.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= SCHEMA_BYTES_MAX:
            raise self._bad(path, f"expected a size in bytes, but found {size!r}")
        return size


def _qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _bytes_min(of: Type) -> int:
    """The fewest bytes that a value can take."""
    match of:
        case Primitive(name=name):
            return {"null": 0, "float": 4, "double": 8}.get(name, 1)
        case Fixed(size_bytes=size):
            return size
        case Record(fields=fields):
            return sum(_bytes_min(field.type) for field in fields)
    return 1


def _measure(of: Type, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """How deep a type is, and how many types it holds when every name is replaced by what it stands for."""
    if isinstance(of, Named) and of.name in known:
        return known[of.name]
    inner = [_measure(child, known) for child in children(of)]
    measure = 1 + max((depth for depth, _ in inner), default=0), 1 + sum(count for _, count in inner)
    if isinstance(of, Named):
        known[of.name] = measure
    return measure


def _is_int(plain: object, bits: int) -> bool:
    return isinstance(plain, int) and not isinstance(plain, bool) and -(2 ** (bits - 1)) <= plain < 2 ** (bits - 1)


def _is_number(plain: object) -> bool:
    return isinstance(plain, int | float) and not isinstance(plain, bool)


def _is_latin(plain: object) -> bool:
    return isinstance(plain, str) and all(ord(c) < 256 for c in plain)


_SCALARS: Final[Mapping[str, Callable[[object], bool]]] = {
    "null": lambda plain: plain is None,
    "boolean": lambda plain: isinstance(plain, bool),
    "int": lambda plain: _is_int(plain, 32),
    "long": lambda plain: _is_int(plain, 64),
    "float": _is_number,
    "double": _is_number,
    "bytes": _is_latin,
    "string": lambda plain: isinstance(plain, str),
}


def fits_default(of: Type, plain: object) -> bool:
    """Whether a default is of its type. A default of a union is of its first branch."""
    match of:
        case Primitive(name=name):
            return _SCALARS[name](plain)
        case Fixed(size_bytes=size):
            return isinstance(plain, str) and _is_latin(plain) and len(plain) == size
        case Enum(symbols=symbols):
            return plain in symbols
        case Array(items=items):
            return isinstance(plain, list) and all(fits_default(items, item) for item in plain)
        case Map(values=values):
            return isinstance(plain, dict) and all(fits_default(values, value) for value in plain.values())
        case Union(branches=branches):
            return fits_default(branches[0], plain)
        case Record(fields=fields):
            return isinstance(plain, dict) and all(
                fits_default(f.type, plain[f.name]) if f.name in plain else not f.required for f in fields
            )
