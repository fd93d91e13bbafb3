"""Definitions in the form of Maestro's published samples of composite steps, from their push to their end.

They keep what is peculiar to the samples: types in small letters, loops over dates, a validator and a mode inside
`loop_params`, subworkflows of workflows that hold loops, every pair of `sync` and `explicit_params`.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest

from kapelle.testing.engine import Engine, Refused, RunHandle
from tests.unit.composites.trees import call, children, foreach, loop_while
from tests.unit.runs.flows import I, Json, noop, pause, step

LATEST: Final[Json] = {"subworkflow_version": "latest"}
LABELS: Final[Json] = {"type": "STRING_MAP", "value": {"team": "data"}}
DIAMONDS: Final = [
    noop("a", "e", "b"),
    noop("b", "c", "f"),
    noop("c", "d"),
    noop("d"),
    noop("e", "c"),
    noop("f", "d"),
]


def dates(first: int, last: int, **more: str) -> Json:
    """An array of dates, its type in small letters as in the samples."""
    return {"type": "long_array", "expression": f"Util.dateIntsBetween({first}, {last}, 1);", **more}


def loop_of(**values: Json) -> Json:
    """The parameter `loop_params` of a loop."""
    return {"type": "MAP", "value": values}


def letters_of(letters: list[str]) -> Json:
    """Parameters of a loop over numbers and over another parameter of the step, both with a validator."""
    validator = "param!=null && param.size() > 2"
    return {
        "letters": {"type": "String_array", "value": letters},
        "loop_params": loop_of(
            i={"type": "long_array", "value": [1, 2, 3], "validator": validator, "mode": "mutable"},
            j={"type": "STRING_ARRAY", "expression": "letters;", "validator": validator},
        ),
    }


def over_letters(letters: list[str], *steps: Json) -> Json:
    return foreach("loop", *steps, concurrency=2, **letters_of(letters))


def child(step_id: str, workflow_id: str, **more: Any) -> Json:
    return call(step_id, workflow_id, labels=LABELS, **LATEST, **more)


INNER: Final = foreach(
    "inner",
    step("short", type="Sleep", sleep_seconds={"type": "LONG", "expression": "x * 5;"}),
    to=["long"],
    concurrency=3,
    base={"type": "LONG", "expression": "i + 2;", "mode": "mutable"},
    loop_params=loop_of(x={"type": "long_array", "expression": "Util.intsBetween(1, i, 1);"}),
)
WORKFLOWS: Final[dict[str, list[Json]]] = {
    "plain": [noop("a", "b"), noop("b")],
    "days": [foreach("loop", *DIAMONDS, loop_params=loop_of(i=dates(20200101, 20200110)))],
    "rounds": [
        loop_while("loop", "i <= 20200105", noop("a", i={"type": "LONG", "expression": "i+1"}), first={"i": 20200101})
    ],
    "year": [
        foreach(
            "loop",
            noop("a", "b", note={"type": "STRING", "expression": "i + j;", "mode": "mutable"}),
            pause("b", seconds=1),
            concurrency=100,
            letters={"type": "String_array", "value": ["a", "b", "c"]},
            loop_params=loop_of(
                i=dates(20200101, 20210101, validator="param!=null && param.size() > 2", mode="mutable"),
                j={"type": "STRING_ARRAY", "expression": "letters;", "validator": "param.size() > 2"},
            ),
        )
    ],
    "nested": [over_letters(["a", "b", "c"], INNER, pause("long", seconds=10))],
    "children": [
        child("default", "plain"),
        child("sync", "plain", sync=True),
        child("async", "plain", sync=False),
        child("implicit", "plain", sync=True, explicit_params=False),
        child("explicit", "plain", sync=True, explicit_params=True),
    ],
    "children-of-children": [child("a", "children", sync=True)],
    "loop-of-children": [over_letters(["a", "b", "c"], noop("a", "b"), child("b", "plain", sync=True))],
    "children-that-loop": [child(name, "days", sync=True) for name in ("a", "b", "c")],
    "mixed": [
        child("a", "plain", sync=True),
        child("b", "loop-of-children", sync=True),
        child("c", "children-that-loop", sync=True),
    ],
}
COUNTS: Final = {"days": 9, "rounds": 5, "year": 366 * 3, "nested": 9, "loop-of-children": 9}


def definition(workflow_id: str, steps: list[Json]) -> Json:
    return {
        "properties": {"owner": "ann", "run_strategy": "sequential"},
        "is_active": True,
        "workflow": {"id": workflow_id, "steps": steps},
    }


@pytest.fixture
def start(engine: Engine) -> Callable[[str], RunHandle]:
    for name, steps in WORKFLOWS.items():
        engine.push(definition(name, steps))
    return engine.start


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_definition_in_the_form_of_a_sample_succeeds(start: Callable[[str], RunHandle], name: str) -> None:
    run = start(name)

    run.engine.advance(600_000)

    assert run.status is I.SUCCEEDED
    if name in COUNTS:
        assert len(children(run, "loop")) == COUNTS[name]


@pytest.mark.parametrize("inside", [[noop("a")], [noop("a", "b"), child("b", "plain")]])
def test_a_sample_whose_validator_contradicts_its_values_is_refused_with_this_reason(
    engine: Engine, inside: list[Json]
) -> None:
    with pytest.raises(Refused) as refused:
        engine.push(definition("contradicts", [over_letters(["a", "b"], *inside)]))

    [problem] = refused.value.event.errors
    assert "steps[0].foreach.params.loop_params.value.j" in problem
    assert "param.size() > 2" in problem
