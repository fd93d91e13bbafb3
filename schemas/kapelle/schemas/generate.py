"""Make the Python module of contract types from a directory of `.avsc` files.

python -m kapelle.schemas.generate SOURCE_DIR TARGET.py [--released DIR] [--check]
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kapelle.schemas.emit import emit
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.model import Named, fingerprint
from kapelle.schemas.released import Version, read_released
from kapelle.schemas.sources import read_sources


def generate(source: Path, released: Path | None = None) -> str:
    """The text of the module."""
    types = read_sources(source)
    versions = read_released(released) if released else {}
    return emit(types, {of.name: _earlier(of, versions) for of in types})


def _earlier(of: Named, versions: Mapping[str, Sequence[Version]]) -> list[str]:
    """The released schemas whose records this contract reads, under its own name and those that it had."""
    earlier = (version for name in (*of.aliases, of.name) for version in versions.get(name, ()))
    return [version.schema for version in earlier if version.fingerprint != fingerprint(of)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kapelle.schemas.generate", description=__doc__)
    parser.add_argument("source", type=Path, help="directory of .avsc files")
    parser.add_argument("target", type=Path, help="Python module to write")
    parser.add_argument("--released", type=Path, help="directory of released schemas, whose bytes stay readable")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the module is not as it would be")
    options = parser.parse_args(arguments)
    try:
        text = generate(options.source, options.released)
    except SchemaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not options.check:
        options.target.write_text(text)
        return 0
    if options.target.exists() and options.target.read_text() == text:
        return 0
    sys.stderr.write(
        f"Expected {options.target} to be up to date with {options.source}, but it is not: generate it again\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
