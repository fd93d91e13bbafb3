"""The packages of processors have the same modules, register alike, and name the fields of contracts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.schemas import contracts
from tests.tidy.files import REPOSITORY, name_of, parsed, python_files

PACKAGES = sorted(path.parent for path in (REPOSITORY / "processors/kapelle/processors").glob("*/processor.py"))
CONTRACTS = {name for name in contracts.__all__ if hasattr(getattr(contracts, name), "__struct_fields__")}
POSITIONS_MAX = 3
PLACES = {"applies": "applying.py", "reads": "documents.py"}


def registrations(module: Path) -> Iterator[str]:
    """The methods of processors by which a module registers something."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef):
            for one in node.decorator_list:
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
                    yield one.func.attr


def test_the_processors_are_found() -> None:
    assert [path.name for path in PACKAGES] == [
        "intake",
        "permits",
        "publisher",
        "runs",
        "signals",
        "triggers",
        "workflows",
    ]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_processor_has_its_tables_and_the_entry_to_its_decisions(package: Path) -> None:
    assert (package / "tables.py").exists()
    assert (package / "deciding.py").exists()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_events_are_applied_and_documents_read_in_modules_of_that_name(package: Path) -> None:
    elsewhere = [
        f"{module.name}: {name}"
        for module in sorted(package.glob("*.py"))
        for name in registrations(module)
        if not module.name.endswith(PLACES.get(name, module.name))
    ]

    assert elsewhere == []


def made(module: Path) -> Iterator[tuple[ast.Call, str]]:
    """The calls that make a contract, each with the name of the contract."""
    tree = parsed(module)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    types = {name.name for one in imported if one.module == "kapelle.schemas.contracts" for name in one.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in types & CONTRACTS:
                yield node, called.id
            elif isinstance(called, ast.Attribute) and called.attr in CONTRACTS:
                yield node, called.attr


def is_by_position(call: ast.Call) -> bool:
    return len(call.args) > POSITIONS_MAX or any(isinstance(one, ast.Starred) for one in call.args)


def test_contracts_with_many_fields_are_made_by_name() -> None:
    modules = python_files("processors")
    calls = [(module, call, name) for module in modules for call, name in made(module)]
    by_position = [f"{name_of(module)}:{call.lineno} {name}" for module, call, name in calls if is_by_position(call)]

    assert len(calls) > len(CONTRACTS) // 2
    assert by_position == []
