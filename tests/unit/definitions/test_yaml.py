"""The YAML form: what it stands for in JSON, and what it is refused for."""

import json
from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push, yaml_push
from kapelle.processors.definitions.yaml_text import read_yaml

SAMPLE = """
Workflow:
  id: nightly
  name: Nightly load
  owner: ann
  run_strategy: parallel
  workflow_concurrency: 5
  tags: [example]
  timeout: 2h
  criticality: critical
  "!month": "new DateTime(0).withZone(DateTimeZone.forID('UTC')).monthOfYear().getAsText();"
  source: s3://bucket/raw
  "!parts<long>(constant)": 1 + 9
  rates: [0.5, 1]
  labels: {a: x, b: y}
  nested: {n: 1, "!m<long>": parts + 1}
  empty: []
  nothing<pmap>: {}
  jobs:
    - job: {id: extract, type: spark, type_version: 3, timeout: 30min, rows<double>: 7}
    - foreach:
        id: process
        concurrency: 10
        params: {date: [20200101, 20200102]}
        ranges: {hour: {from: 0, to: 24}, half: {to: "parts", increment: 2}}
        color: red
        jobs:
          - while:
              id: again
              params: {count: 1}
              condition: count < 10
              jobs:
                - job:
                    id: work
                    type: noop
                    transition: [IF color == 'red' THEN check, if color == 'blue' then paint, OTHERWISE end]
                - subworkflow: {id: check, version: default, explicit_params: true}
                - subworkflow: {id: paint, workflow_id: painting, sync: false}
                - job: {id: end, type: sleep, sleep_seconds: 1}
              dag: sequential
        dag: parallel
    - job: {id: report, type: NoOp}
  dag:
    extract: [IF parts > 0 THEN process, report]
"""


def step_named(name: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    for wrapped in steps:
        [(_, step)] = wrapped.items()
        if step["id"] == name:
            return dict(step)
        if "steps" in step:
            try:
                return step_named(name, step["steps"])
            except LookupError:
                continue
    raise LookupError(name)


def test_a_workflow_in_yaml_is_a_push() -> None:
    made = json.loads(yaml_push(SAMPLE))

    assert made["properties"] == {
        "owner": "ann",
        "run_strategy": {"rule": "parallel", "workflow_concurrency": 5},
        "tags": ["example"],
    }
    assert made["workflow"]["id"] == "nightly"
    assert made["workflow"]["timeout"] == "2h"
    assert parse_push(yaml_push(SAMPLE)).workflow.name == "Nightly load"


def test_other_keys_are_parameters_with_the_type_of_their_value() -> None:
    params = json.loads(yaml_push(SAMPLE))["workflow"]["params"]

    assert params["source"] == {"type": "STRING", "value": "s3://bucket/raw"}
    assert params["month"]["type"] == "STRING"
    assert params["month"]["expression"].startswith("new DateTime(0)")
    assert params["parts"] == {"type": "LONG", "expression": "1 + 9", "mode": "CONSTANT"}
    assert params["rates"] == {"type": "DOUBLE_ARRAY", "value": [0.5, 1]}
    assert params["labels"] == {"type": "STRING_MAP", "value": {"a": "x", "b": "y"}}
    assert params["nested"] == {
        "type": "MAP",
        "value": {"n": {"type": "LONG", "value": 1}, "m": {"type": "LONG", "expression": "parts + 1"}},
    }
    assert params["empty"] == {"type": "STRING_ARRAY", "value": []}
    assert params["nothing"] == {"type": "MAP", "value": {}}


def test_steps_are_limited_only_if_the_workflow_says_so() -> None:
    assert "step_concurrency" not in json.loads(yaml_push(SAMPLE))["properties"]

    limited = SAMPLE.replace("  run_strategy: parallel\n", "  run_strategy: parallel\n  step_concurrency: 7\n")

    assert json.loads(yaml_push(limited))["properties"]["step_concurrency"] == 7


def test_jobs_become_steps_of_their_kind() -> None:
    steps = json.loads(yaml_push(SAMPLE))["workflow"]["steps"]

    assert step_named("extract", steps) == {
        "id": "extract",
        "type": "spark",
        "sub_type_version": "3",
        "timeout": "30min",
        "params": {"rows": {"type": "DOUBLE", "value": 7}},
        "transition": {"successors": {"process": "parts > 0", "report": "true"}},
    }
    process = step_named("process", steps)
    assert process["concurrency"] == 10
    assert process["params"]["color"] == {"type": "STRING", "value": "red"}
    assert process["params"]["loop_params"]["value"] == {
        "date": {"type": "LONG_ARRAY", "value": [20200101, 20200102]},
        "hour": {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, 24, 1)"},
        "half": {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, parts, 2)"},
    }
    assert step_named("again", steps)["condition"] == "count < 10"
    assert step_named("check", steps)["params"] == {
        "subworkflow_id": {"type": "STRING", "value": "check"},
        "subworkflow_version": {"type": "STRING", "value": "default"},
    }
    assert step_named("paint", steps)["params"]["subworkflow_id"]["value"] == "painting"


def test_otherwise_is_the_opposite_of_all_conditions_before_it() -> None:
    steps = json.loads(yaml_push(SAMPLE))["workflow"]["steps"]

    assert step_named("work", steps)["transition"]["successors"] == {
        "check": "color == 'red'",
        "paint": "color == 'blue'",
        "end": "!((color == 'red') || (color == 'blue'))",
    }


def test_a_sequential_dag_joins_the_jobs_that_do_not_say_what_follows() -> None:
    steps = json.loads(yaml_push(SAMPLE))["workflow"]["steps"]

    assert step_named("check", steps)["transition"]["successors"] == {"paint": "true"}
    assert step_named("paint", steps)["transition"]["successors"] == {"end": "true"}
    assert "transition" not in step_named("end", steps)


def test_words_of_old_yaml_stay_text_and_numbers_exact() -> None:
    made = read_yaml(
        "{a: no, b: on, c: 2026-01-31, d: 0.1000, e: 12:30, f: 0x10, g: ~, h: '7', i: 99999999999999999999}"
    )

    assert made == {
        "a": "no",
        "b": "on",
        "c": "2026-01-31",
        "d": Decimal("0.1000"),
        "e": "12:30",
        "f": 16,
        "g": None,
        "h": "7",
        "i": Decimal(99999999999999999999),
    }


def test_aliases_and_merges_stand_for_what_they_name() -> None:
    made = read_yaml("base: &b {x: 1, y: 2}\nsame: *b\nmore: {<<: *b, y: 3}\nboth: {<<: [{y: 9}, *b]}")

    assert made["same"] == {"x": 1, "y": 2}
    assert made["more"] == {"x": 1, "y": 3}
    assert made["both"] == {"x": 1, "y": 9}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)
)
JOBS = "jobs: [{job: {id: a, type: NoOp}}]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the request: Expected a document, but found nothing"),
        ("a: [", "the request: Expected YAML"),
        ("a: 1\n---\nb: 2", "the request: Expected one document, but found a second"),
        ("a: &x [*x]", "a[0]: Expected an alias of an earlier anchor, but found *x"),
        ("a: 1\nb: 2\na: 3", "a: Expected each key once, but found it again in line 3"),
        ("a: !!python/object:os.system {}", "a: Expected plain YAML without tags of its own, but found the tag"),
        ("{[1]: 2}", "the request: Expected keys that are text, but found another key in line 1"),
        ("a: .inf", "a: Expected a finite number, or text in quotes, but found .inf"),
        ("a: {<<: 3}", "a.<<: Expected an object or a list of objects"),
        ("[" * 200 + "]" * 200, "nests at most 100 deep"),
        (BOMB, "Expected at most 50,000 values, those behind aliases included, but found more"),
        ("x" * 262_145, "the request: Expected at most 262,144 bytes"),
        ("Workflo: {id: a}", "the request: Expected one key 'Workflow' with an object"),
        ("Workflow: []", "the request: Expected one key 'Workflow' with an object"),
        ("Workflow: {id: a, jobs: {}}", "Workflow.jobs: Expected a list of jobs, but found {}"),
        ("Workflow: {id: a, jobs: [{jib: {}}]}", "Workflow.jobs[0]: Expected an object with one key of job, subwork"),
        ("Workflow: {id: a, jobs: [{job: 3}]}", "Workflow.jobs[0].job: Expected an object, but found 3"),
        (f"Workflow: {{id: a, {JOBS}, p: null}}", "Workflow.p: Expected a value with a clear type"),
        (f"Workflow: {{id: a, {JOBS}, p: [1, x]}}", "Workflow.p: Expected a value with a clear type"),
        (f"Workflow: {{id: a, {JOBS}, p: [[1]]}}", "Workflow.p: Expected a value with a clear type"),
        (f"Workflow: {{id: a, {JOBS}, p<long>: x}}", 'Expected a value of type LONG, but found "x", which is STRING'),
        (f"Workflow: {{id: a, {JOBS}, p<int>: 3}}", "Workflow.p<int>: Expected one of the types string, long"),
        (f"Workflow: {{id: a, {JOBS}, p q: 3}}", "Workflow.p q: Expected a parameter such as"),
        (f"Workflow: {{id: a, {JOBS}, '!p': 3}}", "Workflow.!p: Expected an expression"),
        (f"Workflow: {{id: a, {JOBS}, p: 3, '!p': '4'}}", "Workflow.!p: Expected each parameter once"),
        (f"Workflow: {{id: a, {JOBS}, dag: random}}", "Workflow.dag: Expected sequential, parallel, or an object"),
        (f"Workflow: {{id: a, {JOBS}, dag: {{b: [a]}}}}", "Workflow.dag.b: Expected the id of a job"),
        (f"Workflow: {{id: a, {JOBS}, dag: {{a: [3]}}}}", "jobs[0].job.transition[0]: Expected a job, 'IF"),
        (f"Workflow: {{id: a, {JOBS}, dag: {{a: [OTHERWISE b]}}}}", "Expected OTHERWISE at the end of a list with IF"),
        (f"Workflow: {{id: a, {JOBS}, dag: {{a: [b, b]}}}}", 'Expected each job once, and "b" is there already'),
        (
            "Workflow: {id: a, jobs: [{foreach: {id: f, ranges: {i: {from: 1}}, jobs: []}}]}",
            "Workflow.jobs[0].foreach.ranges.i: Expected an object with to",
        ),
    ],
)
def test_what_is_not_of_the_form_is_refused_at_its_path(text: str, message: str) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        yaml_push(text)

    assert message in str(refused.value)


def test_the_id_and_version_of_a_child_may_be_expressions_and_numbers() -> None:
    [late, fixed] = json.loads(
        yaml_push(
            'Workflow: {id: w, jobs: [{subworkflow: {id: late, "!subworkflow_id": "\'etl-\' + region", version: 3}},'
            " {subworkflow: {id: fixed, subworkflow_id: 7, sync: false}}]}"
        )
    )["workflow"]["steps"]

    assert late["subworkflow"]["params"] == {
        "subworkflow_id": {"type": "STRING", "expression": "'etl-' + region"},
        "subworkflow_version": {"type": "STRING", "value": "3"},
    }
    assert fixed["subworkflow"]["params"]["subworkflow_id"] == {"type": "STRING", "value": "7"}


def test_a_range_may_be_bounded_by_expressions() -> None:
    job = "{job: {id: a, type: NoOp}}"
    text = (
        f"Workflow: {{id: w, jobs: [{{foreach: {{id: f, ranges: {{i: {{to: rows, increment: 2}}}}, jobs: [{job}]}}}}]}}"
    )

    [loop] = parse_push(yaml_push(text)).workflow.steps

    assert loop.params["loop_params"].value["i"].expression == "Util.intsBetween(0, rows, 2)"
