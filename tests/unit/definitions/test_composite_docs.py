"""The document on loops and subworkflows: its examples are accepted, and its picture is made from its definition."""

import re
import runpy
from pathlib import Path

import pytest

from kapelle.processors.definitions import Workflow, blocks_of, parse_push, parse_workflow, picture_of, yaml_push
from kapelle.processors.definitions.limits import FOREACH_CONCURRENCY_MAX, ITERATIONS_MAX, NESTING_MAX, STEPS_MAX

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "composites.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def all_blocks(text: str) -> list[Workflow]:
    """The blocks of a definition at every depth."""
    found = blocks_of(text).values()
    return [parse_workflow(block) for block in found] + [one for block in found for one in all_blocks(block)]


@pytest.mark.parametrize("example", examples("json"))
def test_an_example_in_json_is_accepted(example: str) -> None:
    push = parse_push(example)

    assert all(block.steps for block in all_blocks(push.workflow_json))


def test_the_example_in_yaml_is_accepted() -> None:
    [example] = examples("yaml")

    push = parse_push(yaml_push(example))

    assert [step.id for block in all_blocks(push.workflow_json) for step in block.steps] == ["poll", "load", "ask"]


def test_the_picture_is_made_from_the_example_in_yaml() -> None:
    [example], [picture] = examples("yaml"), examples("mermaid")

    made = picture_of(parse_push(yaml_push(example)).workflow)

    assert picture == made, f"put this into {DOCUMENT.name}:\n{made}"


def test_the_example_in_python_builds_a_workflow_that_is_accepted(tmp_path: Path) -> None:
    [example] = examples("python")
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")

    push = parse_push(runpy.run_path(str(file))["flow"].to_json())

    assert [step.id for block in all_blocks(push.workflow_json) for step in block.steps] == ["poll", "load", "ask"]


@pytest.mark.parametrize("limit", [STEPS_MAX, NESTING_MAX, ITERATIONS_MAX, FOREACH_CONCURRENCY_MAX])
def test_the_document_names_every_limit(limit: int) -> None:
    assert f"{limit:,}" in TEXT
