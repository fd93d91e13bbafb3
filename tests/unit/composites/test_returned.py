"""What expressions read of children: getFromForeach and getFromSubworkflow."""

from collections.abc import Sequence
from typing import Any

import pytest

from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Refused, RunHandle
from tests.unit.composites.trees import call, child, foreach, push
from tests.unit.runs.flows import BEGINNING, Json, S, fail, noop, pushed, reason, started, step, succeed, task, value_of

OUT = {"type": "LONG", "value": 0, "mode": "MUTABLE"}


def gathered(kind: str = "LONG_ARRAY", inner: str = "in", name: str = "x") -> Json:
    return {"type": kind, "expression": f"params.getFromForeach('loop', '{inner}', '{name}')"}


def test_the_values_of_all_iterations_are_in_their_order() -> None:
    run = started(foreach("loop", noop("in", x="=i * i"), i=[3, 1, 2], to=["after"]), noop("after", all=gathered()))

    assert value_of(run, "after", "all") == [9, 1, 4]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "STRING", "expression": "'<' + i"}, ["<1", "<2"]),
        ({"type": "LONG", "expression": "i"}, [1, 2]),
        ({"type": "DOUBLE", "expression": "i / 2.0"}, [0.5, 1.0]),
        ({"type": "BOOLEAN", "expression": "i == 2"}, [False, True]),
    ],
)
def test_values_of_four_types_can_be_gathered(given: Json, expected: list[Any]) -> None:
    after = noop("after", all=gathered(f"{given['type']}_ARRAY"))

    run = started(foreach("loop", noop("in", x=given), i=[1, 2], to=["after"]), after)

    assert value_of(run, "after", "all") == expected


def test_no_other_type_can_be_gathered() -> None:
    inner = noop("in", x={"type": "LONG_ARRAY", "value": [1]})

    with pytest.raises(Refused, match="of type STRING, LONG, DOUBLE, BOOLEAN"):
        started(foreach("loop", inner, i=[1], to=["after"]), noop("after", all=gathered()))


@pytest.mark.parametrize(
    ("kind", "missing"), [("STRING", "null"), ("LONG", "0"), ("DOUBLE", "0.0"), ("BOOLEAN", "false")]
)
def test_an_iteration_without_the_value_has_an_empty_one_in_its_place(kind: str, missing: str) -> None:
    given = {"STRING": "s", "LONG": 5, "DOUBLE": 1.5, "BOOLEAN": True}[kind]
    inner = [noop("first", {"in": "i == 2"}), noop("in", x={"type": kind, "value": given})]
    gather = "found = params.getFromForeach('loop', 'in', 'x');"
    first = {"type": "BOOLEAN", "expression": f"{gather} return found[0] == {missing};"}
    second = {"type": kind, "expression": f"{gather} return found[1];"}

    run = started(foreach("loop", *inner, i=[1, 2], to=["after"]), noop("after", first=first, second=second))

    assert (value_of(run, "after", "first"), value_of(run, "after", "second")) == (True, given)


def test_the_array_is_as_long_as_the_loop_was_planned() -> None:
    run = started(
        foreach("loop", step("in", x="=i"), i=[1, 2, 3, 4], concurrency=1, failure_mode="IGNORE_FAILURE", to=["after"]),
        noop("after", all=gathered()),
    )
    succeed(child(run, "loop", 1), "in")

    fail(child(run, "loop", 2), "in")

    assert run.steps["loop"] is S.COMPLETED_WITH_ERROR
    assert value_of(run, "after", "all") == [1, 2, 0, 0]


def stopping_early(*more: Json, to: Sequence[str]) -> RunHandle:
    """A run of a loop of three iterations, one at a time, that all return a value."""
    loop = foreach("loop", step("in", x="=i"), i=[1, 2, 3], concurrency=1, failure_mode="IGNORE_FAILURE", to=to)
    run = started(*more, loop, noop("after", all=gathered()))
    for number in (1, 2, 3):
        succeed(child(run, "loop", number), "in")
    return run


def test_an_iteration_that_a_restart_from_the_beginning_did_not_launch_has_an_empty_value() -> None:
    run = stopping_early(to=["after"])
    assert value_of(run, "after", "all") == [1, 2, 3]

    run.restart(BEGINNING)
    fail(child(run, "loop", 1), "in")

    assert run.steps["loop"] is S.COMPLETED_WITH_ERROR
    assert value_of(run, "after", "all") == [1, 0, 0]


def test_an_iteration_that_a_later_turn_of_a_cycle_did_not_launch_has_an_empty_value() -> None:
    at = {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}
    tail = noop("tail", {"head": "at < 6"}, "after", at=at)
    run = stopping_early(noop("head", "loop"), tail, to=["tail"])

    fail(child(run, "loop", 1), "in")

    assert run.step_rows()["loop"].iteration == 2
    assert value_of(run, "after", "all") == [1, 0, 0]


def test_an_empty_loop_gives_an_empty_array() -> None:
    run = started(foreach("loop", noop("in", x=1), i=[], to=["after"]), noop("after", all=gathered()))

    assert value_of(run, "after", "all") == []


def test_the_value_is_that_of_the_last_attempt() -> None:
    run = started(foreach("loop", step("in", x=OUT), i=[1, 2], to=["after"]), noop("after", all=gathered()))
    task(child(run, "loop", 1), "in").succeed(x=1)
    fail(child(run, "loop", 2), "in")
    run.restart()

    task(child(run, "loop", 2), "in").succeed(x=7)

    assert value_of(run, "after", "all") == [1, 7]


@pytest.mark.parametrize(("loop", "inner", "name"), [("no", "in", "x"), ("loop", "no", "x"), ("loop", "in", "no")])
def test_what_is_not_in_the_definition_cannot_be_gathered(loop: str, inner: str, name: str) -> None:
    expression = f"params.getFromForeach('{loop}', '{inner}', '{name}')"
    after = noop("after", all={"type": "LONG_ARRAY", "expression": expression})

    with pytest.raises(Refused, match=r"workflow.steps\[1\].step.params.all"):
        started(foreach("loop", noop("in", x=1), i=[1], to=["after"]), after)


def test_only_direct_steps_of_the_block_can_be_gathered() -> None:
    deep = foreach("deep", noop("in", x=1), j=[1])

    with pytest.raises(Refused, match="a step directly inside 'loop'"):
        started(foreach("loop", deep, i=[1], to=["after"]), noop("after", all=gathered()))


def test_a_loop_that_is_not_complete_cannot_be_asked() -> None:
    with pytest.raises(Refused, match="because it must be complete"):
        started(foreach("loop", step("in", x=1), i=[1]), noop("beside", all=gathered()))


def test_a_step_inside_a_block_gathers_from_a_loop_of_the_same_block() -> None:
    inner = foreach("loop", noop("in", x="=i + j"), j=[1, 2], to=["sum"])
    total = noop("sum", all=gathered(), x="=all[0] + all[1]")
    outer = foreach("outer", inner, total, i=[10, 20], to=["after"])
    expression = "params.getFromForeach('outer', 'sum', 'x')"

    run = started(outer, noop("after", all={"type": "LONG_ARRAY", "expression": expression}))

    assert value_of(run, "after", "all") == [23, 43]


def test_the_conditions_of_a_loop_step_can_gather() -> None:
    after = {"after": "params.getFromForeach('loop', 'in', 'x')[1] == 4"}

    run = started(foreach("loop", noop("in", x="=i * i"), i=[1, 2], to=after), noop("after"))

    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


def test_the_conditions_of_an_empty_loop_gather_nothing() -> None:
    after = {"after": "params.getFromForeach('loop', 'in', 'x').length == 0"}

    run = started(foreach("loop", noop("in", x="=i * i"), i=[], to=after), noop("after"))

    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


# Subworkflows -----------------------------------------------------------------------------------------------------


def asked(kind: str = "LONG", inner: str = "c", name: str = "x") -> Json:
    return {"type": kind, "expression": f"params.getFromSubworkflow('sub', '{inner}', '{name}')"}


def test_a_parameter_of_a_step_of_the_child_can_be_read() -> None:
    engine = push(pushed(call("sub", "other", to=["after"]), noop("after", got=asked())), "other", noop("c", x=42))

    run = engine.start("flow")

    assert value_of(run, "after", "got") == 42


def test_numbers_of_a_child_can_be_calculated_with() -> None:
    twice = {"type": "DOUBLE", "expression": "params.getFromSubworkflow('sub', 'c', 'x') * 2 + 1"}
    flow = pushed(call("sub", "other", to=["after"]), noop("after", got=twice))

    run = push(flow, "other", noop("c", x=0.25)).start("flow")

    assert value_of(run, "after", "got") == 1.5


@pytest.mark.parametrize(("inner", "name"), [("no", "x"), ("c", "no")])
def test_a_parameter_that_the_child_does_not_have_cannot_be_read(inner: str, name: str) -> None:
    flow = pushed(call("sub", "other", to=["after"]), noop("after", got=asked(inner=inner, name=name)))

    run = push(flow, "other", noop("c", x=42)).start("flow")

    assert run.steps["after"] is S.INTERNALLY_FAILED


def test_a_child_that_was_skipped_over_gives_what_it_had() -> None:
    flow = pushed(call("sub", "other", to=["after"]), noop("after", got=asked()))
    run = push(flow, "other", noop("c", "d", x=42), step("d")).start("flow")

    run.act("sub", Action.SKIP)

    assert value_of(run, "after", "got") == 42


def test_values_that_are_too_large_to_return_are_refused_when_they_are_read() -> None:
    text = {"type": "STRING", "value": "", "mode": "MUTABLE"}
    run = started(
        foreach("loop", step("in", x=text), i=[1, 2], to=["after"]), noop("after", all=gathered("STRING_ARRAY"))
    )
    task(child(run, "loop", 1), "in").succeed(x="a" * 100_000)

    task(child(run, "loop", 2), "in").succeed(x="b")

    assert run.steps == {"loop": S.SUCCEEDED, "after": S.INTERNALLY_FAILED}
    assert "The values returned by child 1 of 'loop' are too large" in reason(run, "after")


def test_values_of_a_child_that_are_just_small_enough_are_returned() -> None:
    text = {"type": "STRING", "value": "", "mode": "MUTABLE"}
    run = started(foreach("loop", step("in", x=text), i=[1], to=["after"]), noop("after", all=gathered("STRING_ARRAY")))

    task(child(run, "loop", 1), "in").succeed(x="a" * 99_900)

    assert value_of(run, "after", "all") == ["a" * 99_900]
