"""`Any` stands only where types end: in codecs, and where people's JSON is read. The table may only shrink."""

import ast
from collections import Counter
from pathlib import Path
from typing import Final

from tests.tidy.files import name_of, parsed, python_files

# Modules that mention `Any`, and how often. A unit that is not in the table is not counted yet.
ALLOWED: Final[dict[str, dict[str, int]]] = {
    "gateway": {
        "gateway/kapelle/api/looking.py": 2,  # one cache for the answers to all questions
        "gateway/kapelle/cli/reach.py": 1,  # the stubs of confluent_kafka know no callbacks
        "gateway/kapelle/cli/reporting.py": 1,  # the statistics of librdkafka are JSON
        "gateway/kapelle/cli/root.py": 1,  # Typer does not export the class of its contexts
        "gateway/kapelle/cli/text/letters.py": 1,  # dead letters in the JSON of the API
    },
    "sdk": {
        "sdk/kapelle/client/results.py": 1,  # the JSON of the API
        "sdk/kapelle/testing/engine.py": 4,  # parameters of tasks are JSON; each processor has its own tables
        "sdk/kapelle/worker/context.py": 1,  # parameters of a task are JSON
        "sdk/kapelle/worker/steps.py": 4,  # the annotations of a step's function, and its arguments
    },
}


def mentions(path: Path) -> int:
    """How often a module names `Any`, imports excepted."""
    return sum(_is_any(node) for node in ast.walk(parsed(path)))


def _is_any(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in ("typing.Any", "t.Any")
    return isinstance(node, ast.Name) and node.id == "Any"


def test_no_module_mentions_any_more_often_than_the_table_allows() -> None:
    found = {unit: Counter({name_of(path): mentions(path) for path in python_files(unit)}) for unit in ALLOWED}

    too_many = {
        name: f"Expected at most {ALLOWED[unit].get(name, 0)}, but found {count}"
        for unit, counted in found.items()
        for name, count in counted.items()
        if count > ALLOWED[unit].get(name, 0)
    }

    assert too_many == {}, "use a type, object, a Protocol or a TypedDict"


def test_the_table_shrinks_with_the_code() -> None:
    listed = [(name, count) for modules in ALLOWED.values() for name, count in modules.items()]
    paths = {name_of(path): path for unit in ALLOWED for path in python_files(unit)}

    stale = {name: count for name, count in listed if name not in paths or mentions(paths[name]) < count}

    assert stale == {}, "lower these numbers"
