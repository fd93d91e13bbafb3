"""Random workflows survive being written and parsed; random damage is refused and nothing else happens."""

import itertools
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.definitions import (
    DefinitionRefused,
    Properties,
    PropertiesChange,
    Push,
    blocks_of,
    combination,
    iterations_of,
    merged_properties,
    parse_push,
    parse_workflow,
    workflow_json,
    yaml_push,
)
from tests.unit.definitions.composite_samples import NESTED
from tests.unit.definitions.samples import FULL
from tests.unit.definitions.test_yaml import SAMPLE

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
tags = st.lists(st.sampled_from(["a", "b.c", {"name": "d", "namespace": "platform", "cost": 1.5}]), unique_by=str)
durations = st.sampled_from([1, 90, "2 h", "${n} min", "1 min 1ms"])
params = st.fixed_dictionaries(
    {},
    optional={
        "m": st.just({"type": "STRING", "value": "${n} of it", "mode": "CONSTANT", "unit": "rows"}),
        "list": st.just({"type": "DOUBLE_ARRAY", "value": [0.1, 2]}),
        "both": st.just({"type": "MAP", "value": {"x": {"type": "LONG", "expression": "n + 1"}}}),
        "strict": st.just({"type": "BOOLEAN", "value": True, "validator": "@NotNull", "tags": ["t"]}),
    },
)
backoffs = st.fixed_dictionaries(
    {},
    optional={"error_retry_backoff_in_secs": durations, "type": st.sampled_from(["fixed_backoff", "FIXED_BACKOFF"])},
) | st.fixed_dictionaries(
    {}, optional={"error_retry_exponent": st.integers(1, 9), "error_retry_limit_in_secs": durations}
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text(max_size=10),
        "description": st.text(max_size=10),
        "tags": tags,
        "timeout": durations,
        "failure_mode": st.sampled_from(["ignore_failure", "FAIL_IMMEDIATELY", "Fail_After_Running"]),
        "params": params,
        "signal_outputs": st.just([{"name": "done", "params": {"k": {"type": "LONG", "value": 1}}}]),
    },
)
typed = st.fixed_dictionaries(
    {"type": st.sampled_from(["noop", "Sleep", "spark"])},
    optional={
        "idempotent": st.booleans(),
        "sub_type_version": st.text(max_size=5),
        "retry_policy": st.fixed_dictionaries(
            {}, optional={"error_retry_limit": st.integers(0, 99) | st.just("${n}"), "backoff": backoffs}
        ),
    },
)


KINDS = ("step", "step", "step", "step", "foreach", "while", "subworkflow")


@st.composite
def loops(draw: st.DrawFn, kind: str, name: str, depth: int) -> dict[str, Any]:
    """What a loop has besides what every step has. Its parameters stand instead of others."""
    inner = draw(steps(prefix=f"{name}_", depth=depth + 1))
    value: dict[str, Any] = {"type": "LONG", "value": 0}
    own: dict[str, Any] = {"condition": f"i{depth} < 1"}
    if kind == "foreach":
        value = {"type": "LONG_ARRAY", "value": draw(st.lists(st.integers(0, 9), max_size=3))}
        own = {"strict_ordering": draw(st.booleans()), "concurrency": draw(st.none() | st.integers(1, 500))}
    return {**own, "params": {"loop_params": {"type": "MAP", "value": {f"i{depth}": value}}}, "steps": inner}


@st.composite
def steps(draw: st.DrawFn, prefix: str = "s", depth: int = 0) -> list[dict[str, Any]]:
    """Some steps in a row, with edges forward and back to the first."""
    made = []
    count = draw(st.integers(1, 4))
    for n in range(count):
        name = f"{prefix}{n}"
        after: dict[str, str] = {f"{prefix}{n + 1}": "true"} if n + 1 < count else {}
        leads_back: bool = draw(st.booleans())
        if after and leads_back:
            after[f"{prefix}0"] = "false"
        body: dict[str, Any] = {"id": name, **draw(bodies), "transition": {"successors": after}}
        kind = draw(st.sampled_from(KINDS if depth < 3 else KINDS[:1]))
        if kind in ("foreach", "while"):
            made.append({kind: {**body, **draw(loops(kind, name, depth))}})
        elif kind == "subworkflow":
            child = {"subworkflow_id": {"type": "STRING", "value": "other-${n}"}}
            flags = {"sync": draw(st.booleans()), "explicit_params": draw(st.booleans())}
            made.append({kind: {**body, **flags, "params": {**body.get("params", {}), **child}}})
        else:
            made.append({"step": {**body, **draw(typed)}})
    return made


@st.composite
def pushes(draw: st.DrawFn) -> dict[str, Any]:
    optional = {
        "name": st.text(max_size=10),
        "tags": tags,
        "timeout": durations,
        "criticality": st.sampled_from(["low", "CRITICAL"]),
        "instance_step_concurrency": st.integers(1, 999),
        "time_triggers": st.just(FULL["workflow"]["time_triggers"]),
        "signal_triggers": st.just(FULL["workflow"]["signal_triggers"]),
    }
    workflow = draw(st.fixed_dictionaries({}, optional=optional))
    own = {"n": {"type": "LONG", "value": draw(st.integers(1, 50))}, **draw(params)}
    return {"workflow": {"id": "some", "params": own, "steps": draw(steps()), **workflow}}


@given(pushes())
@settings(max_examples=60, deadline=None)
def test_a_workflow_that_is_written_and_parsed_is_the_same(push: dict[str, Any]) -> None:
    workflow = parse_push(json.dumps(push)).workflow

    written = workflow_json(workflow)

    assert parse_workflow(written) == workflow
    assert workflow_json(parse_workflow(written)) == written
    assert parse_push(f'{{"workflow":{written}}}').workflow == workflow


def check_blocks(text: str) -> None:
    """Every block of a definition is the steps of its loop, and so on inwards."""
    blocks = blocks_of(text)
    loops_here = {step.id: step.steps for step in parse_workflow(text).steps if step.steps}
    assert blocks.keys() == loops_here.keys()
    for name, block in blocks.items():
        assert parse_workflow(block).steps == loops_here[name]
        assert blocks_of(text)[name] == block
        assert len(block) < len(text)
        check_blocks(block)


@given(pushes())
@settings(max_examples=60, deadline=None)
def test_the_blocks_of_a_workflow_are_the_steps_of_its_loops_at_every_depth(push: dict[str, Any]) -> None:
    parsed = parse_push(json.dumps(push))

    check_blocks(parsed.workflow_json)
    check_blocks(workflow_json(parsed.workflow))


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(), max_size=5, unique=True), max_size=4))
def test_the_iterations_of_a_foreach_are_all_combinations_each_once(values: dict[str, list[int]]) -> None:
    made = [tuple(combination(values, index).items()) for index in range(iterations_of(map(len, values.values())))]

    backwards = itertools.product(*([(name, value) for value in array] for name, array in reversed(values.items())))
    assert made == [tuple(reversed(one)) for one in backwards]


def problems_or(parse: Callable[[str | bytes], Any], text: str | bytes) -> Any:
    """What the text means, or what is wrong with it."""
    try:
        return parse(text)
    except DefinitionRefused as refused:
        return refused.problems


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of every object and list inside, with what holds it."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_random_damage_is_refused_or_harmless_and_never_an_error_of_another_kind(data: st.DataObject) -> None:
    push = json.loads(json.dumps(data.draw(st.sampled_from([FULL, NESTED]))))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(push)))
        holder[key] = data.draw(json_values)

    parsed = problems_or(parse_push, json.dumps(push))

    if isinstance(parsed, Push):
        assert parse_workflow(parsed.workflow_json) == parsed.workflow
    else:
        assert all(problem.path and problem.expected and problem.value for problem in parsed)


@given(st.lists(st.tuples(st.integers(0, len(SAMPLE)), st.text(max_size=4)), max_size=4), st.booleans())
@settings(max_examples=150, deadline=None)
def test_damaged_yaml_is_refused_or_still_a_push(damage: list[tuple[int, str]], is_bytes: bool) -> None:
    text = SAMPLE
    for place, inserted in damage:
        text = text[:place] + inserted + text[place:]

    made = problems_or(yaml_push, text.encode("utf-8", "surrogatepass") if is_bytes else text)

    if isinstance(made, str):
        assert problems_or(parse_push, made)
    else:
        assert all(problem.path and problem.expected and problem.value for problem in made)


@given(st.text(max_size=60) | st.binary(max_size=60) | json_values.map(json.dumps))
@settings(max_examples=200, deadline=None)
def test_any_text_is_refused_without_an_error_of_another_kind(text: str | bytes) -> None:
    for parse in (parse_push, parse_workflow, PropertiesChange.parse, yaml_push):
        assert problems_or(parse, text)


changes = st.fixed_dictionaries(
    {"owner": st.sampled_from(["ann", {"name": "bob", "team": "data"}])},
    optional={
        "run_strategy": st.sampled_from(["last_only", 5, {"rule": "PARALLEL"}, {"workflow_concurrency": 1}]),
        "step_concurrency": st.integers(1, 1000),
        "alerting": st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
        "alerting_disabled": st.booleans(),
        "description": st.text(max_size=20),
        "access_control": st.just({"a": [1]}),
    },
)


@given(st.lists(st.tuples(changes, st.booleans()), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_properties_survive_their_json_after_any_changes(given_changes: list[tuple[dict[str, Any], bool]]) -> None:
    current: Properties | None = None
    for change, is_push in given_changes:
        current = merged_properties(current, PropertiesChange.parse(json.dumps(change)), is_push=is_push)

        assert Properties.parse(current.json()) == current
