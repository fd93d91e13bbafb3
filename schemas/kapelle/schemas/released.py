"""The released versions of contracts, which stay for ever. In `released/<full name>` there are, for each version:

- `1.avsc`, the schema, self-contained;
- `1.json`, sample values, for people;
- `1.golden`, the same values in single-object encoding, one line of hex each.
"""

from pathlib import Path

import msgspec

from kapelle.schemas.errors import BadSchema
from kapelle.schemas.model import Record, fingerprint, to_json
from kapelle.schemas.parsing import parse


class Version(msgspec.Struct, frozen=True):
    """One released version of a contract."""

    number: int
    of: Record
    fingerprint: int
    schema: str


def read_released(directory: Path) -> dict[str, tuple[Version, ...]]:
    """The released versions by full name, oldest first."""
    if not directory.is_dir():
        raise BadSchema(str(directory), "expected a directory of released schemas")
    folders = sorted(path for path in directory.iterdir() if path.is_dir())
    return {folder.name: tuple(_read_version(file) for file in _in_order(folder)) for folder in folders}


def _in_order(folder: Path) -> list[Path]:
    files = {int(file.stem): file for file in folder.glob("*.avsc") if file.stem.isdecimal()}
    if not files or set(files) != set(range(1, len(files) + 1)):
        raise BadSchema(str(folder), f"expected versions 1, 2, 3 and so on, but found {sorted(files)}")
    return [files[number] for number in sorted(files)]


def _read_version(file: Path) -> Version:
    where = f"{file.parent.name}/{file.name}"
    of = parse(file.read_text(), where=where)
    if not isinstance(of, Record) or of.name != file.parent.name:
        raise BadSchema(where, f"expected a record named {file.parent.name}")
    return Version(int(file.stem), of, fingerprint(of), to_json(of))
