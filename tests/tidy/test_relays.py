"""Relays, the read model and the ways in are units that can be taken apart: imports go in one direction only."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.files import REPOSITORY, UNITS, name_of, parsed, python_files

WAYS_IN = {"api", "cli"}
RELAYS = {"lineage", "registry", "relay", "sinks", "sources", "tracing"}
# For each package those that it never imports, whether at the top, within a function or for types alone.
NEVER = {
    **{relay: WAYS_IN | {"views"} for relay in RELAYS},
    "relay": WAYS_IN | {"views"} | RELAYS - {"relay"},  # the kit knows no relay
    "views": WAYS_IN | RELAYS,
}


def package_of(path: Path) -> str:
    parts = path.parts
    return parts[parts.index("kapelle") + 1]


def packages_imported(path: Path) -> Iterator[tuple[str, int]]:
    """The packages of ours that a module imports, with the lines."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for parts in (f"{module}{alias.name}".split(".") for alias in node.names):
                if parts[0] == "kapelle" and len(parts) > 1:
                    yield parts[1], node.lineno


def written() -> list[tuple[str, Path]]:
    inside = [path for unit in UNITS for path in python_files(f"{unit}/kapelle")]
    return [(package_of(path.relative_to(REPOSITORY)), path) for path in inside]


def test_relays_import_no_way_in_and_no_view_and_views_import_no_relay() -> None:
    found = [
        f"{name_of(path)}:{line} imports kapelle.{imported}"
        for package, path in written()
        for imported, line in packages_imported(path)
        if imported in NEVER.get(package, set())
    ]

    assert found == []


def test_every_package_under_this_rule_exists() -> None:
    assert NEVER.keys() <= {package for package, _ in written()}
