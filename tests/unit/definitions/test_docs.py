"""The examples of the documents on definitions and cycles are what the documents say, and the cycles run."""

import json
import re
import runpy
from pathlib import Path

import pytest

from kapelle.processors.definitions import DefinitionRefused, graph_of, limits, parse_push, yaml_push
from kapelle.processors.definitions.forms import STEP_FORMS, Form, PropertiesForm, StepForm, UpdateForm, WorkflowForm
from kapelle.processors.definitions.models import FailureMode, Rule
from kapelle.schemas.contracts import Criticality, InstanceStatus, StepStatus
from kapelle.testing.engine import Engine

DOCS = Path(__file__).resolve().parents[3] / "docs"
DEFINITIONS = (DOCS / "definitions.md").read_text(encoding="utf-8")
CYCLES = (DOCS / "cyclic-workflows.md").read_text(encoding="utf-8")


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", blocks("json", DEFINITIONS) + blocks("json", CYCLES))
def test_an_example_in_json_is_accepted(example: str) -> None:
    assert parse_push(example, runnable=True).workflow.steps


def test_the_example_in_yaml_is_accepted() -> None:
    [example] = blocks("yaml", DEFINITIONS)

    push = parse_push(yaml_push(example), runnable=True)

    assert push.workflow.steps[0].successors == {"write": "rows > 0", "report": "!((rows > 0))"}


@pytest.mark.parametrize("example", blocks("python", DEFINITIONS) + blocks("python", CYCLES))
def test_an_example_in_python_builds_a_workflow_that_is_accepted(example: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")

    names = runpy.run_path(str(file))

    assert parse_push((names.get("etl") or names["flow"]).to_json(), runnable=True).workflow.steps


def test_the_python_and_the_json_of_review_and_fix_are_the_same_graph(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(blocks("python", CYCLES)[0], encoding="utf-8")

    built = parse_push(runpy.run_path(str(file))["flow"].to_json())
    written = parse_push(blocks("json", CYCLES)[1])

    assert graph_of(built.workflow.steps) == graph_of(written.workflow.steps)


def test_every_key_word_and_limit_is_documented() -> None:
    forms: list[type[Form]] = [PropertiesForm, UpdateForm, WorkflowForm, StepForm, *STEP_FORMS.values()]
    words = {name for form in forms for name in form.model_fields}
    words |= {*Rule.__members__, *FailureMode.__members__} | (set(Criticality.__members__) - {"OTHER"})
    words |= {f"{value:,}" for name, value in vars(limits).items() if name.endswith("_MAX") and "_MS_" not in name}

    assert {word for word in words if word not in DEFINITIONS} == set()


def test_polling_asks_until_the_answer_is_there() -> None:
    engine = Engine()
    run = engine.start(engine.push(blocks("json", CYCLES)[0]))

    for _ in range(2):
        engine.task(run, "ask").succeed(ready=False)
        engine.advance(60_000)
    engine.task(run, "ask").succeed(ready=True)

    assert run.status is InstanceStatus.SUCCEEDED
    assert run.params("ask") == {"ready": True, "tries": 3}
    assert run.steps["use"] is StepStatus.SUCCEEDED
    assert run.steps["give_up"] is StepStatus.UNSATISFIED


def test_polling_gives_up_after_ten_tries() -> None:
    engine = Engine()
    run = engine.start(engine.push(blocks("json", CYCLES)[0]))

    for _ in range(10):
        engine.task(run, "ask").succeed(ready=False)
        engine.advance(60_000)

    assert run.status is InstanceStatus.SUCCEEDED
    assert run.steps["give_up"] is StepStatus.SUCCEEDED


def test_work_is_fixed_until_the_review_is_good() -> None:
    engine = Engine()
    run = engine.start(engine.push(blocks("json", CYCLES)[1]))

    engine.task(run, "draft").succeed()
    engine.task(run, "review").succeed(good=False)
    engine.task(run, "fix").succeed()
    engine.task(run, "review").succeed(good=True)

    assert run.status is InstanceStatus.SUCCEEDED
    assert run.steps["publish"] is StepStatus.SUCCEEDED


def test_the_sideways_edge_of_the_document_is_named_as_it_says() -> None:
    names = {"start": ["write", "check"], "write": ["check"], "check": ["write"]}
    steps = [
        {"step": {"id": name, "type": "NoOp", "transition": {"successors": dict.fromkeys(after, "true")}}}
        for name, after in names.items()
    ]
    quoted = re.sub(r"\s+", " ", CYCLES)

    with pytest.raises(DefinitionRefused, match="Expected loops that begin at one step") as refused:
        parse_push(json.dumps({"workflow": {"id": "sideways", "steps": steps}}))

    assert str(refused.value).removeprefix("workflow.steps: ") in quoted
