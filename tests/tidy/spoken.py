"""The texts that code shows to users: messages of refusals and exceptions, log lines, and public docstrings."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.files import REPOSITORY, UNITS, is_generated, name_of, parsed

PUBLIC = ("client", "worker", "testing")  # packages of `sdk` whose docstrings users read


def modules(*units: str) -> list[Path]:
    """The modules of units, without generated ones: the texts of contracts are read by themselves."""
    found = sorted(path for unit in units for path in (REPOSITORY / unit / "kapelle").rglob("*.py"))
    return [path for path in found if not is_generated(path)]


def messages() -> Iterator[tuple[str, str]]:
    """Every text of several words in the units that is not a docstring: messages, reasons, log lines and help texts."""
    for path in modules(*UNITS):
        tree = parsed(path)
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
        for node in ast.walk(tree):
            text = None if id(node) in skipped else text_of(node)
            if text is not None and len(text.split()) > 1:
                yield f"{name_of(path)}:{node.lineno}", text  # type: ignore[attr-defined] # a text has a line


def text_of(node: ast.AST) -> str | None:
    """The text of a literal, with a place-holder for each value in it. None if it is something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    return None


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of the packages that users import: of modules, and of public classes and functions."""
    for path in modules("sdk"):
        if path.relative_to(REPOSITORY / "sdk" / "kapelle").parts[0] not in PUBLIC:
            continue
        for node in public(parsed(path)):
            text = ast.get_docstring(node)
            if text is not None:
                yield f"{name_of(path)}: {getattr(node, 'name', 'the module')}", text


def public(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """A module or a class, and all classes, methods and functions in it whose names are public."""
    yield node
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
            yield from public(inner)
