"""The blocks of loops, the values of iterations, and the one switch for kinds of steps that the engine runs."""

import itertools
import json

import pytest

from kapelle.processors.definitions import (
    RUNNABLE_KINDS,
    DefinitionRefused,
    StepKind,
    blocks_of,
    combination,
    handed_down,
    iterations_of,
    loop_definitions,
    parse_push,
    parse_workflow,
)
from kapelle.processors.definitions.checks import check_kinds
from kapelle.processors.definitions.problems import Report
from kapelle.processors.runs.plan import digest_of, plan_of
from tests.unit.definitions.composite_samples import Json, long, longs, loop_params
from tests.unit.definitions.samples import FULL, text_of

TEXT = parse_push(text_of(FULL)).workflow_json
FAN = parse_workflow(TEXT).steps[1]


def test_a_block_is_a_definition_of_the_steps_inside_a_loop() -> None:
    block = parse_workflow(blocks_of(TEXT)["fan"])

    assert block.steps == FAN.steps
    assert (block.params, block.timeout, block.signal_triggers, block.time_triggers) == ({}, None, (), ())


def test_blocks_hold_blocks() -> None:
    [(outer, text)] = blocks_of(TEXT).items()
    [(inner, inside)] = blocks_of(text).items()

    assert (outer, inner) == ("fan", "poll")
    assert parse_workflow(inside).steps == FAN.steps[0].steps
    assert blocks_of(inside) == {}


def test_the_text_of_a_block_is_always_the_same_and_shorter_than_the_text_around_it() -> None:
    text = blocks_of(TEXT)["fan"]

    assert blocks_of(json.dumps(json.loads(TEXT), indent=2))["fan"] == text
    assert len(blocks_of(text)["poll"]) < len(text) < len(TEXT)


def test_a_block_has_a_plan_like_any_definition() -> None:
    text = blocks_of(TEXT)["fan"]

    plan = plan_of(digest_of(text), lambda: text)

    assert plan.graph.roots == ("poll",)
    assert plan.steps["poll"].kind == "WHILE"
    assert set(plan.steps["poll"].definitions) == {"loop_params", "loop_index", "condition"}


def in_loops(kinds: tuple[str, ...], inside: list[Json]) -> list[Json]:
    """Steps inside loops of these kinds, from outside in."""
    if not kinds:
        return inside
    kind, depth = kinds[0], len(kinds)
    own: dict[str, Json] = {
        "foreach": {"params": loop_params(**{f"i{depth}": longs(1)})},
        "while": {"params": loop_params(**{f"i{depth}": long(0)}), "condition": f"i{depth} < 1"},
    }
    return [{kind: {"id": f"loop{depth}", "steps": in_loops(kinds[1:], inside), **own[kind]}}]


def test_loops_nest_in_all_orders_on_ten_levels() -> None:
    work = [{"step": {"id": "work", "type": "NoOp"}}]

    for kinds in itertools.product(("foreach", "while"), repeat=9):
        push = parse_push(text_of({"workflow": {"id": "deep", "steps": in_loops(kinds, work)}}))

        [step], text = push.workflow.steps, push.workflow_json
        for kind in kinds:
            assert step.kind == kind
            [text] = blocks_of(text).values()
            [step] = step.steps
        assert parse_workflow(text).steps == (step,)


def test_what_a_loop_repeats_for_and_what_it_hands_down_are_apart() -> None:
    child = parse_workflow(TEXT).steps[3]

    assert list(loop_definitions(FAN)) == ["i"]
    assert handed_down(FAN) == {}
    assert loop_definitions(child) == {}
    assert handed_down(child) == {}
    assert list(handed_down(FAN.steps[0].steps[0])) == ["tries"]


def test_the_first_parameter_of_a_foreach_changes_fastest() -> None:
    values: dict[str, list[int] | list[str]] = {"a": [1, 2], "b": ["x", "y", "z"]}

    made = [tuple(combination(values, index).values()) for index in range(iterations_of([2, 3]))]

    assert made == [(1, "x"), (2, "x"), (1, "y"), (2, "y"), (1, "z"), (2, "z")]


@pytest.mark.parametrize(
    ("lengths", "count"),
    [
        ([], 1),
        ([7], 7),
        ([25_000], 25_000),
        ([250, 100], 25_000),
        ([250, 101], 25_001),
        ([65_536, 65_536], 25_001),
        ([65_536, 0, 65_536], 0),
        ([10**6] * 100, 25_001),
    ],
)
def test_combinations_are_counted_up_to_one_more_than_the_limit(lengths: list[int], count: int) -> None:
    assert iterations_of(lengths) == count


def test_a_kind_that_the_engine_does_not_run_is_refused_inside_blocks_too() -> None:
    steps = parse_workflow(TEXT).steps

    report = Report()
    check_kinds(steps, frozenset({StepKind.STEP, StepKind.FOREACH}), "workflow.steps", report)

    assert [str(problem) for problem in report.problems] == [
        "workflow.steps[1].foreach.steps[0]: Expected 'step', 'foreach', but found 'while', which cannot be run",
        "workflow.steps[3]: Expected 'step', 'foreach', but found 'subworkflow', which cannot be run",
        "workflow.steps[4]: Expected 'step', 'foreach', but found 'template', which cannot be run",
    ]


def test_a_push_takes_exactly_the_kinds_that_the_engine_runs() -> None:
    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(FULL), runnable=True)

    found = {problem.value.split("'")[1] for problem in refused.value.problems}
    assert found.isdisjoint(RUNNABLE_KINDS)
    assert "template" in found
