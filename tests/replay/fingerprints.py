"""Fingerprints of what each `apply` arm does: `python -m tests.replay.fingerprints` pins those of today.

A fingerprint is made of the code of an arm and of everything of the project that it calls or names, without what makes
no difference to a fold: comments, docstrings, annotations, decorators, the names of functions, rows and local
variables, and the modules that they stand in. So an arm can be moved and its parts renamed, but not changed.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from kapelle.schemas import Contract
from kapelle.topology.page import PROCESSORS

PINNED = Path(__file__).parent / "fingerprints.json"
CHARS = 16


def arms() -> dict[str, Callable[..., Any]]:
    """Every arm of the product, by processor and event."""
    return {
        f"{processor.name}/{contract.__name__}": apply
        for processor in PROCESSORS
        for contract, apply in sorted(processor.appliers.items(), key=lambda arm: arm[0].__name__)
    }


def fingerprint(apply: Callable[..., Any]) -> str:
    """What an arm does, in a few characters."""
    return sha256(_described(apply, ()).encode()).hexdigest()[:CHARS]


def _described(value: Any, inside: tuple[Any, ...]) -> str:
    """A value that an arm names: code and rows of the project as they are written, all else by its value."""
    if any(value is one for one in inside):
        return "itself"
    if isinstance(value, FunctionType) and value.__module__.split(".")[0] in {"kapelle", "tests"}:
        names = {**value.__globals__, **inspect.getclosurevars(value).nonlocals}
        return _code(value, names, (*inside, value))
    if isinstance(value, type):
        return _class(value, inside)
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    if isinstance(value, ModuleType) or not _says_its_value(value):
        return type(value).__name__
    return repr(value)


def _class(value: type, inside: tuple[Any, ...]) -> str:
    # Contracts are pinned by their schemas, and enums are a part of those.
    if value.__module__.split(".")[0] != "kapelle" or issubclass(value, Contract | Enum):
        return value.__name__
    return _code(value, vars(inspect.getmodule(value)), (*inside, value))


def _says_its_value(value: Any) -> bool:
    return " at 0x" not in repr(value)


def _code(found: Any, names: Mapping[str, Any], inside: tuple[Any, ...]) -> str:
    """Code as text, with what its global names mean."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
    plain = _Plain({name: f"v{number}" for number, name in enumerate(_locals(tree))}).visit(tree)
    used = dict.fromkeys(node.id for node in ast.walk(plain) if isinstance(node, ast.Name) and node.id in names)
    meaning = [_described(names[name], inside) for name in used]
    renamed = _Plain({name: f"g{number}" for number, name in enumerate(used)}).visit(plain)
    return "\n".join([ast.unparse(renamed), *meaning])


def _locals(tree: ast.AST) -> Iterator[str]:
    """The names that a function gives by itself, in order. Fields of a class keep theirs: others call them by it."""
    if isinstance(tree, ast.ClassDef):
        return
    seen = set()
    for node in ast.walk(tree):
        stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        name = node.arg if isinstance(node, ast.arg) else node.id if stored and isinstance(node, ast.Name) else None
        if name is not None and name not in seen:
            seen.add(name)
            yield name


class _Plain(ast.NodeTransformer):
    """Takes away what makes no difference, and renames what may have any name."""

    def __init__(self, renamed: Mapping[str, str]) -> None:
        self._renamed = renamed

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name, node.decorator_list, node.returns = "f", [], None
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = "k"
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        node.arg = self._renamed.get(node.arg, node.arg)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._renamed.get(node.id, node.id)
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return (body[1:] if is_text else body) or [ast.Pass()]


def pinned() -> dict[str, str]:
    """The fingerprints as they were when the arms were released."""
    found: dict[str, str] = json.loads(PINNED.read_text())
    return found


def main() -> None:
    today = {name: fingerprint(apply) for name, apply in arms().items()}
    PINNED.write_text(json.dumps(today, indent=2) + "\n")


if __name__ == "__main__":
    main()
