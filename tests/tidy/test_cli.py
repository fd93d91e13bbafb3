"""The command line is in order: no command knows another, and each shared option is declared once."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.files import REPOSITORY, name_of, parsed, python_files

CLI = "gateway/kapelle/cli"
COMMANDS = "kapelle.cli.commands"
# Other options may share a name and differ in meaning, such as --file.
SHARED = (
    "--bootstrap-servers",
    "--app",
    "--partitions",
    "--config",
    "-X",
    "--url",
    "--request-id",
    "--log-level",
    "--log-format",
    "--metrics-port",
    "--metrics",
    "--session-timeout-ms",
    "-o",
)


def imported(path: Path) -> Iterator[str]:
    """The full names of all modules and attributes that a module imports, also inside functions."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def declared() -> Iterator[str]:
    """Every flag of every option that the modules of the command line declare."""
    for path in python_files(CLI):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option":
                for given in node.args:
                    if isinstance(given, ast.Constant) and isinstance(given.value, str):
                        yield given.value


def test_no_command_module_imports_another_command_module() -> None:
    found = [
        f"{name_of(path)}: {name}"
        for path in python_files(f"{CLI}/commands")
        for name in imported(path)
        if name.startswith(f"{COMMANDS}.")
    ]

    assert found == []


def test_what_commands_share_imports_no_command_module() -> None:
    shared = [path for path in python_files(CLI) if not path.is_relative_to(REPOSITORY / CLI / "commands")]

    assert [f"{name_of(path)}: {name}" for path in shared for name in imported(path) if COMMANDS in name] == []


def test_each_shared_option_is_declared_once() -> None:
    counted = Counter(declared())

    assert {name: counted[name] for name in SHARED} == dict.fromkeys(SHARED, 1)


def test_one_function_decides_between_text_and_json() -> None:
    compared = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files(CLI)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr == "JSON" and ast.unparse(node.value).endswith("Form")
    ]

    assert compared == []
