"""Contracts made in a test, from schemas written in the test."""

import itertools
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kapelle.schemas import Contract
from kapelle.schemas.emit import emit
from kapelle.schemas.sources import read_sources

_numbers = itertools.count(1)


def record(name: str, *fields: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "fresh", "fields": list(fields), **extra}


def field(name: str, of: Any, **extra: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **extra}


def write_sources(directory: Path, *schemas: dict[str, Any]) -> Path:
    """A directory of one file per schema."""
    directory.mkdir(exist_ok=True)
    for schema in schemas:
        (directory / f"{schema['name']}.avsc").write_text(json.dumps(schema))
    return directory


def source_of(*schemas: dict[str, Any], earlier: Mapping[str, Sequence[str]] | None = None) -> str:
    """The generated text for some schemas."""
    with tempfile.TemporaryDirectory() as directory:
        return emit(read_sources(write_sources(Path(directory), *schemas)), earlier or {})


def module_of(*schemas: dict[str, Any], earlier: Mapping[str, Sequence[str]] | None = None) -> ModuleType:
    """The generated module for some schemas."""
    module = ModuleType(f"fresh_contracts_{next(_numbers)}")
    sys.modules[module.__name__] = module
    exec(source_of(*schemas, earlier=earlier), vars(module))  # noqa: S102 - generated from the test's own schemas
    return module


def contract_of(schema: dict[str, Any], *others: dict[str, Any], earlier: Sequence[str] = ()) -> type[Contract]:
    """The generated type of the first of some schemas."""
    module = module_of(schema, *others, earlier={f"fresh.{schema['name']}": earlier} if earlier else None)
    contract: type[Contract] = getattr(module, schema["name"])
    return contract


ALL = record(
    "Everything",
    field("flag", "boolean"),
    field("small", "int"),
    field("large", "long"),
    field("whole", "double"),
    field("raw", "bytes"),
    field("text", "string", doc='It\'s a "text" with a doc that is so long that the generator has to wrap it, ' * 2),
    field("mood", {"type": "enum", "name": "Mood", "symbols": ["CALM", "VERY_LOUD"]}),
    field("inner", record("Inner", field("n", "long"), field("mood", "Mood"), doc='Ends with a quote: "x"')),
    field("maybe", ["null", "string"]),
    field("perhaps", ["long", "null"]),
    field("moods", {"type": "array", "items": "Mood"}),
    field("inners", {"type": "array", "items": "Inner"}),
    field("holes", {"type": "array", "items": ["null", "int"]}),
    field("grid", {"type": "array", "items": {"type": "array", "items": "double"}}),
    field("by_name", {"type": "map", "values": "long"}),
    field("deep", {"type": "map", "values": {"type": "array", "items": ["null", "Inner"]}}),
    field("when_ms", {"type": "long", "logicalType": "timestamp-millis"}),
    field("shared", "fresh.Shared"),
    doc="One field of every kind.",
)
SHARED = record("Shared", field("id", "string"), doc="Used by others, and a contract of its own.")
DEFAULTS = record(
    "Defaults",
    field("flag", "boolean", default=True),
    field("needed", "string"),
    field("small", "int", default=-5),
    field("whole", "double", default=2),
    field("raw", "bytes", default='\u00ff"\\a'),
    field("text", "string", default='it\'s "ä" \\'),
    field("mood", {"type": "enum", "name": "Temper", "symbols": ["CALM", "LOUD"], "default": "CALM"}, default="LOUD"),
    field("maybe", ["null", "string"], default=None),
    field("perhaps", ["long", "null"], default=7),
    field("one", {"type": "array", "items": "string"}, default=["a"]),
    field("two", {"type": "array", "items": "int"}, default=[1, 2]),
    field("empty", {"type": "map", "values": "string"}, default={}),
    field("filled", {"type": "map", "values": "string"}, default={"b": "2", "a": "1"}),
    field("shared", "fresh.Shared", default={"id": "x"}),
)
