"""Every example of docs/parameters.md runs, and every default and reserved name is documented."""

import json
import re
import runpy
from pathlib import Path

import pytest

from kapelle.processors.params import (
    RESERVED_NAMES,
    STEP,
    WORKFLOW_RESTART,
    WORKFLOW_START,
    Context,
    Mode,
    ParamType,
    WorkflowScope,
    definitions_of,
    evaluate,
)
from kapelle.processors.params import defaults as given
from kapelle.processors.params.durations import UNITS_MS
from kapelle.processors.params.type_defaults import BY_TYPE
from kapelle.processors.params.validators import ANNOTATIONS
from kapelle.processors.sel import Extension, Sel

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "parameters.md").read_text(encoding="utf-8")
PAIR = re.compile(r"^```json\n(.*?)^```\n\ngives\n\n```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("definitions", "values"), PAIR.findall(TEXT))
def test_an_example_of_definitions_gives_its_values(definitions: str, values: str) -> None:
    context = Context(Sel(), 0, "docs", Extension())

    made = evaluate(definitions_of(json.loads(definitions)), WorkflowScope("docs", context.extension), context)

    assert {name: param.value for name, param in made.items()} == json.loads(values)


def test_every_block_of_json_is_part_of_an_example() -> None:
    assert TEXT.count("```json") == 2 * len(PAIR.findall(TEXT)) == 6


@pytest.mark.parametrize("program", PYTHON.findall(TEXT))
def test_an_example_in_python_runs(program: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(program, encoding="utf-8")

    assert runpy.run_path(str(file))


@pytest.mark.parametrize(
    "words",
    [
        [mode.value for mode in Mode],
        [kind.value for kind in ParamType],
        [f"@{name}" for name in ANNOTATIONS],
        list(UNITS_MS),
        [layer.name for order in (WORKFLOW_START, WORKFLOW_RESTART, STEP) for _, layer in order],
        [*given.WORKFLOW, *given.STEP, *(name for params in BY_TYPE.values() for name in params)],
        [name for name in RESERVED_NAMES if name.islower() or "_" in name],
    ],
)
def test_every_word_of_the_model_is_on_the_page(words: list[str]) -> None:
    assert [word for word in words if word not in TEXT] == []
