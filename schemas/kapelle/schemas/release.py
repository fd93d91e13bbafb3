"""Release the contracts that have changed: their schemas, and golden bytes that must be readable from then on.

python -m kapelle.schemas.release SOURCE_DIR --released DIR [--only NAME ...]

The golden bytes are written by fastavro, so they also prove that we read what others write.
"""

import argparse
import io
import json
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final
from zlib import crc32

import fastavro
import msgspec

from kapelle.schemas.compatibility import violations
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.model import (
    Array,
    Enum,
    Map,
    Primitive,
    Record,
    Type,
    canonical_form,
    fingerprint,
    nullable,
    to_json,
)
from kapelle.schemas.released import read_released
from kapelle.schemas.sources import read_sources

# For each primitive type a bare value, and a full one made of its field's name, so that no two fields look alike.
_SCALARS: Final[dict[str, tuple[object, Callable[[str], object]]]] = {
    "boolean": (False, lambda _: True),
    "int": (-1, lambda name: crc32(name.encode()) >> 1),
    "long": (-1, lambda name: 1_700_000_000_000 + crc32(name.encode())),
    "float": (0.0, lambda name: len(name) / 2),
    "double": (0.0, lambda name: -len(name) / 4),
    "bytes": (b"", lambda name: b"\x00\xff" + name.encode()),
    "string": ("", lambda name: f"{name} für alle"),
}


def release(source: Path, released: Path, only: Collection[str] = ()) -> list[str]:
    """Write what is new, of all contracts or only of these, and tell it."""
    known = {name: [v.fingerprint for v in versions] for name, versions in read_released(released).items()}
    contracts = [of for of in read_sources(source) if isinstance(of, Record) and (not only or of.name in only)]
    new = [of for of in contracts if fingerprint(of) not in known.get(of.name, [])]
    for of in new:
        _write(of, released / of.name, len(known.get(of.name, [])) + 1)
    return [f"{of.name} {len(known.get(of.name, [])) + 1}" for of in new]


def _write(of: Record, folder: Path, number: int) -> None:
    values = [_sample(of, of.name, full=full) for full in (True, False)]
    golden = "".join(f"{single_object(of, value).hex()}\n" for value in values)
    shown = msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.json").write_text(shown + "\n")
    (folder / f"{number}.golden").write_text(golden)
    (folder / f"{number}.avsc").write_text(json.dumps(json.loads(to_json(of)), indent=2) + "\n")


def single_object(of: Record, value: object) -> bytes:
    """A value in single-object encoding, as fastavro writes it."""
    out = io.BytesIO()
    out.write(b"\xc3\x01" + fingerprint(of).to_bytes(8, "little"))
    # The canonical form has no logical types: milliseconds stay integers.
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(canonical_form(of))), value)
    return out.getvalue()


def _sample(of: Type, name: str, *, full: bool) -> object:
    """A value of a type: with everything that it can have, or with as little as it can have."""
    inner = nullable(of)
    if inner:
        return _sample(inner[0], name, full=full) if full else None
    match of:
        case Primitive(name=kind):
            bare, make = _SCALARS[kind]
            return make(name) if full else bare
        case Enum(symbols=symbols):
            return symbols[-1 if full else 0]
        case Array(items=items):
            return [_sample(items, name, full=True), _sample(items, name, full=False)] if full else []
        case Map(values=values):
            return {"a": _sample(values, name, full=True), "b": _sample(values, name, full=False)} if full else {}
        case Record(fields=fields):
            return {field.name: _sample(field.type, field.name, full=full) for field in fields}
    raise AssertionError(of)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kapelle.schemas.release", description=__doc__)
    parser.add_argument("source", type=Path, help="directory of .avsc files")
    parser.add_argument("--released", type=Path, required=True, help="directory of released schemas")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="full names of the contracts to release")
    options = parser.parse_args(arguments)
    try:
        broken = violations(options.source, options.released)
        done = [] if broken else release(options.source, options.released, options.only)
    except SchemaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in (*broken, *done))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
