"""Random contracts, random values of them, and random changes to them."""

import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import fastavro
from hypothesis import strategies as st

from kapelle.schemas.model import Array, Enum, Map, Primitive, Record, Type, Union, canonical_form
from kapelle.schemas.parsing import parse

Schema = Any
Draw = Callable[[st.SearchStrategy[Any]], Any]

SCALARS = ("boolean", "int", "long", "double", "bytes", "string")
SYMBOLS = ("CALM", "LOUD", "WILD", "GONE")

_DEFAULTS: dict[str, Any] = {
    "boolean": True,
    "int": -3,
    "long": 2**40,
    "double": -0.25,
    "bytes": "\u00ff",
    "string": "für",
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 9000),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=70),
    "string": st.text(max_size=70),
}


@st.composite
def contracts(draw: Draw) -> dict[str, Schema]:
    """The schema of a contract that uses anything that contracts may use."""
    return _record(draw, "Root", itertools.count(1), depth=2)


def _record(draw: Draw, name: str, names: "itertools.count[int]", depth: int) -> dict[str, Schema]:
    fields = [_field(draw, f"f{n}", names, depth) for n in range(draw(st.integers(1, 5)))]
    return {"type": "record", "name": name, "namespace": "fresh", "fields": fields}


def _field(draw: Draw, name: str, names: "itertools.count[int]", depth: int) -> dict[str, Schema]:
    of = _type(draw, names, depth)
    field = {"name": name, "type": of}
    default = _default(of)
    if default is not ... and draw(st.booleans()):
        field["default"] = default
    return field


def _type(draw: Draw, names: "itertools.count[int]", depth: int) -> Schema:
    kinds = ["scalar", "enum", "nullable"] + (["array", "map", "record"] if depth else [])
    match draw(st.sampled_from(kinds)):
        case "enum":
            symbols = list(SYMBOLS[: draw(st.integers(1, 4))])
            enum = {"type": "enum", "name": f"E{next(names)}", "symbols": symbols}
            return enum | ({"default": symbols[0]} if draw(st.booleans()) else {})
        case "nullable":
            inner = draw(st.sampled_from(SCALARS)) if not depth else _type(draw, names, 0)
            if isinstance(inner, list):
                return inner
            return ["null", inner] if draw(st.booleans()) else [inner, "null"]
        case "array":
            return {"type": "array", "items": _type(draw, names, depth - 1)}
        case "map":
            return {"type": "map", "values": _type(draw, names, depth - 1)}
        case "record":
            return _record(draw, f"R{next(names)}", names, depth - 1)
    return draw(st.sampled_from(SCALARS))


def _default(of: Schema) -> Any:
    match of:
        case str():
            return _DEFAULTS[of]
        case [str("null"), _]:
            return None
        case [inner, _]:
            return _default(inner)
        case {"type": "enum", "symbols": [*_, last]}:
            return last
        case {"type": "array"}:
            return []
        case {"type": "map"}:
            return {}
    return ...  # a record may have fields without a default


def values(of: Type) -> st.SearchStrategy[Any]:
    """Plain values of a type. Maps are in the order of their keys, as we write them."""
    match of:
        case Primitive(name=name):
            return _VALUES[name]
        case Enum(symbols=symbols):
            return st.sampled_from(symbols)
        case Array(items=items):
            return st.lists(values(items), max_size=4)
        case Map(values=inner):
            return st.dictionaries(st.text(max_size=5), values(inner), max_size=4).map(
                lambda d: dict(sorted(d.items()))
            )
        case Union(branches=branches):
            return st.one_of(*map(values, branches))
        case Record(fields=fields):
            return st.fixed_dictionaries({field.name: values(field.type) for field in fields})
    raise AssertionError(of)


@st.composite
def evolved(draw: Draw, schema: dict[str, Schema]) -> dict[str, Schema]:
    """A contract after some changes, good and bad ones."""
    fields = [dict(field) for field in schema["fields"]]
    for n in range(draw(st.integers(1, 3))):
        change = draw(st.sampled_from(["add", "drop", "promote", "reorder", "null", "rename", "symbols"]))
        at = draw(st.integers(0, len(fields) - 1))
        _change(draw, change, fields, at, n)
    return schema | {"fields": fields}


def _change(draw: Draw, change: str, fields: list[dict[str, Schema]], at: int, n: int) -> None:
    field = fields[at]
    match change, field["type"]:
        case "add", _:
            of = draw(st.sampled_from(SCALARS))
            default = {"default": _default(of)} if draw(st.booleans()) else {}
            fields.insert(at, {"name": f"new{n}", "type": of, **default})
        case "drop", _ if len(fields) > 1:
            fields.pop(at)
        case "promote", str():
            fields[at] = {"name": field["name"], "type": draw(st.sampled_from(SCALARS))}
        case "reorder", _:
            fields.reverse()
        case "null", str(of):
            fields[at] = {"name": field["name"], "type": ["null", of]}
        case "rename", _:
            alias = [field["name"]] if draw(st.booleans()) else []
            fields[at] = field | {"name": f"was{at}_{n}", "aliases": alias}
        case "symbols", {"type": "enum"} as of:
            symbols = list(SYMBOLS[draw(st.integers(0, 2)) :])
            fields[at] = {"name": field["name"], "type": of | {"symbols": symbols, "default": symbols[0]}}


def fastavro_bytes(schema: dict[str, Schema], value: Any) -> bytes:
    """The record as another implementation writes it."""
    out = io.BytesIO()
    canonical = json.loads(canonical_form(parse(json.dumps(schema))))
    fastavro.schemaless_writer(out, fastavro.parse_schema(canonical), value)
    return out.getvalue()


def fastavro_value(data: bytes, writer: dict[str, Schema], reader: dict[str, Schema]) -> Any:
    """The record as another implementation reads it."""
    out = io.BytesIO(data)
    found: Any = fastavro.schemaless_reader(out, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    for field in reader["fields"]:
        # It leaves a default of bytes as the text that stands for them in JSON.
        if field["type"] in ("bytes", ["bytes", "null"]) and isinstance(found[field["name"]], str):
            found[field["name"]] = found[field["name"]].encode("latin-1")
    return found
