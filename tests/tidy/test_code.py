"""Code is small, opens with its purpose, and tests prove what they say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.files import is_generated, name_of, parsed, python_files

MODULE_LINES_MAX = 500
TEST_MODULE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
TEST_NAME_WORDS_MIN = 3

SKIPPING = {"skip", "skipif", "importorskip", "xfail"}
# Where things take time: a broker, processes, or the waiting that is the subject itself.
MAY_SLEEP = ("tests/integration", "tests/support", "tests/proof", "benchmarks")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def written_files() -> list[Path]:
    return [path for path in python_files() if not is_generated(path)]


def functions_of(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, Function))


def names_used(path: Path) -> Iterator[tuple[str, int]]:
    """Every plain or dotted name of a module with its line: `pytest.skip` gives both `pytest` and `skip`."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno


def test_modules_end_before_they_are_too_long_to_read() -> None:
    def lines_max(path: Path) -> int:
        return TEST_MODULE_LINES_MAX if name_of(path).startswith("tests/") else MODULE_LINES_MAX

    sizes = {path: len(path.read_text().splitlines()) for path in written_files()}

    assert [f"{name_of(path)}: {size} lines" for path, size in sizes.items() if size > lines_max(path)] == []


def test_functions_fit_on_one_screen() -> None:
    long = [
        f"{name_of(path)}:{found.lineno} {found.name}: {size} lines"
        for path in written_files()
        for found in functions_of(path)
        if (size := (found.end_lineno or found.lineno) - found.lineno + 1) > FUNCTION_LINES_MAX
    ]

    assert long == []


def test_every_module_opens_with_a_sentence_of_purpose() -> None:
    def purpose(path: Path) -> str:
        return (ast.get_docstring(parsed(path)) or "").strip()

    # An empty `__init__.py` marks a folder of tests; one in the package says what the package is for.
    silent = [
        name_of(path)
        for path in python_files()
        if not purpose(path) and (path.read_text() or not name_of(path).startswith("tests/"))
    ]

    assert silent == []


def skips_in(path: Path) -> Iterator[tuple[str, int]]:
    """Every way to leave a test out, of pytest or unittest. A step of a workflow may well be skipped."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and node.attr in SKIPPING:
            owner = node.value
            if getattr(owner, "id", getattr(owner, "attr", "")) in {"pytest", "mark", "unittest"}:
                yield node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module in {"pytest", "unittest"}:
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in SKIPPING)


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    found = [f"{name_of(path)}:{line} {name}" for path in python_files("tests") for name, line in skips_in(path)]

    assert found == []


def test_no_test_uses_a_mock() -> None:
    found = [
        f"{name_of(path)}:{line}"
        for path in python_files("tests")
        for name, line in names_used(path)
        if name in {"unittest.mock", "mock", "MagicMock", "Mock", "mocker"}
    ]

    assert found == []


def test_only_tests_of_real_processes_sleep() -> None:
    found = [
        f"{name_of(path)}:{line}"
        for path in python_files("tests")
        if not name_of(path).startswith(MAY_SLEEP)
        for name, line in names_used(path)
        if name == "sleep"
    ]

    assert found == []


def test_names_of_tests_are_sentences() -> None:
    short = [
        f"{name_of(path)}:{found.lineno} {found.name}"
        for path in python_files("tests")
        for found in functions_of(path)
        if found.name.startswith("test_") and len(found.name.split("_")) - 1 < TEST_NAME_WORDS_MIN
    ]

    assert short == []


def test_no_route_and_no_command_speaks_sql() -> None:
    found = [
        f"{path}: {node.value.split(maxsplit=1)[0]}"
        for path in python_files("gateway")
        if {"api", "cli"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)\s", node.value)
    ]

    assert not found
