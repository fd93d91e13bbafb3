"""The import graph has no cycles, also when imports for the type checker alone are counted.

A module is read, tested and moved together with what it imports. In a cycle that is the whole cycle. `TYPE_CHECKING`
hides a cycle from the interpreter, but not from the reader.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.tidy.files import UNITS, parsed, python_files


def module_of(path: Path) -> str:
    """The dotted name of a file, as it is imported."""
    parts = path.with_suffix("").parts
    start = len(parts) - 1 - parts[::-1].index("kapelle")
    named = parts[start:]
    return ".".join(named[:-1] if named[-1] == "__init__" else named)


@cache
def modules() -> Mapping[str, Path]:
    return {module_of(path): path for path in python_files(*UNITS) if "kapelle" in path.parts}


def imported(name: str, path: Path) -> Iterator[str]:
    """The modules of the project that a module names in an import, wherever in it that stands.

    `from a.b import c` is an import of `a.b.c` if that is a module. The packages on the way to it do not count.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.rsplit(".", node.level - 1)[0]
                base = f"{above}.{node.module}" if node.module else above
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole in modules() else base


@cache
def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: {one for one in imported(name, path) if one in known and one != name} for name, path in known.items()}


def cycles_of(graph: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The sets of nodes that all lead to each other (Tarjan, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []
    for root in graph:
        if root in number:
            continue
        work = [(root, iter(sorted(graph[root])))]
        number[root] = low[root] = len(number)
        stack.append(root)
        while work:
            node, following = work[-1]
            after = next(following, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(frozenset(stack[at:]))
                    del stack[at:]
            elif after not in number:
                number[after] = low[after] = len(number)
                stack.append(after)
                work.append((after, iter(sorted(graph[after]))))
            elif after in stack:
                low[node] = min(low[node], number[after])
    return found


def test_a_cycle_is_found_however_long_it_is() -> None:
    knot = {"a": {"b"}, "b": {"c"}, "c": {"d", "a"}, "d": {"e"}, "e": set(), "f": {"d"}}

    assert cycles_of(knot) == [frozenset({"a", "b", "c"})]
    assert cycles_of({**knot, "c": {"d"}}) == []


def test_imports_for_the_type_checker_count(tmp_path: Path) -> None:
    path = tmp_path / "draft.py"
    path.write_text("""
from typing import TYPE_CHECKING
from . import tables
if TYPE_CHECKING:
    from kapelle.processors.processor import Processor
def late() -> None:
    from kapelle.processors import messages
""")

    assert set(imported("kapelle.processors.draft", path)) == {
        "typing",
        "kapelle.processors.tables",
        "kapelle.processors.processor",
        "kapelle.processors.messages",
    }


def test_no_modules_import_each_other() -> None:
    assert [" <-> ".join(sorted(one)) for one in cycles_of(graph())] == []
