"""What an iteration sees: the parameters around it, its loop values, and what it is as an instance."""

import json
from typing import Any

import pytest

from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing.engine import Refused, RunHandle
from tests.unit.composites.trees import child, children, foreach, restart, values
from tests.unit.runs.flows import BEGINNING, I, Json, S, fail, noop, pushed, reason, started, step, succeed, value_of


def text(expression: str) -> Json:
    return {"type": "STRING", "expression": expression}


def seen(run: RunHandle, name: str = "x") -> Any:
    """What the step `in` of the first iteration of `loop` has."""
    return value_of(child(run, "loop", 1), "in", name)


# Parameters ---------------------------------------------------------------------------------------------------


def test_an_iteration_sees_the_parameters_of_the_workflow() -> None:
    run = started(foreach("loop", noop("in", x="=base + 1"), i=[1]), params={"base": 41})

    assert seen(run) == 42


def test_an_iteration_sees_the_parameters_that_the_definition_of_the_step_names() -> None:
    run = started(foreach("loop", noop("in", x="=own + 1"), i=[1], own="=base * 2"), params={"base": 20})

    assert seen(run) == 41


def test_loop_values_hide_parameters_of_the_step_and_those_hide_the_workflow_s() -> None:
    run = started(
        foreach("loop", noop("in", x=text("a + b + i")), i=["loop"], b="step"),
        params={"a": "flow ", "b": "flow ", "i": "flow "},
    )

    assert seen(run) == "flow steploop"


def test_loop_params_themselves_are_not_handed_down() -> None:
    run = started(foreach("loop", noop("in", x=text("loop_params")), i=[1]))

    assert child(run, "loop", 1).steps == {"in": S.INTERNALLY_FAILED}


def test_a_parameter_that_only_the_start_gives_to_the_step_is_not_handed_down() -> None:
    engine = pushed(foreach("loop", noop("in", x="=extra"), i=[1]))

    run = engine.start("flow", step_run_params={"loop": {"extra": {"type": "LONG", "value": 1}}})

    assert child(run, "loop", 1).steps == {"in": S.INTERNALLY_FAILED}


def test_a_parameter_of_the_step_that_the_start_overrides_is_handed_down() -> None:
    engine = pushed(foreach("loop", noop("in", x="=own"), i=[1], own=1))

    run = engine.start("flow", step_run_params={"loop": {"own": {"type": "LONG", "value": 7}}})

    assert seen(run) == 7


def test_dollars_in_values_stay_as_they_are() -> None:
    run = started(
        foreach("loop", noop("in", x=text("base + own + i")), i=["$$i"], own="$$own"), params={"base": "$$base"}
    )

    assert seen(run) == "$base$own$i"


def test_values_keep_their_types() -> None:
    run = started(
        foreach(
            "loop",
            noop("in", x={"type": "DOUBLE", "expression": "d + 1"}, y={"type": "BOOLEAN", "expression": "!b"}),
            d=[0.5],
            b=[True],
        )
    )

    assert (seen(run), seen(run, "y")) == (1.5, False)


def test_a_string_map_stays_a_string_map() -> None:
    labels = {"type": "STRING_MAP", "value": {"k": "v$$"}}
    inner = {"type": "STRING_MAP", "expression": "return labels;"}

    run = started(foreach("loop", noop("in", x=inner), i=[1]), params={"labels": labels})

    assert seen(run) == {"k": "v$"}


def test_the_run_time_is_that_of_the_parent() -> None:
    engine = pushed(step("wait", "loop"), foreach("loop", noop("in", x="=RUN_TS"), i=[1]), noop("other", x="=RUN_TS"))
    run = engine.start("flow")
    engine.advance(60_000)

    succeed(run, "wait")

    assert seen(run) == value_of(run, "other", "x")


def test_the_workflow_of_an_iteration_is_an_inline_one_and_its_parameter_workflow_id_is_the_parent_s() -> None:
    run = started(
        foreach("loop", noop("in", x=text("params.getFromInstance('workflow_id')"), y=text("workflow_id")), i=[1])
    )

    assert seen(run) == child(run, "loop", 1).workflow_id
    assert seen(run).startswith("maestro_foreach_")
    assert seen(run, "y") == "flow"


def test_an_iteration_does_not_see_steps_outside_of_its_block() -> None:
    with pytest.raises(Refused, match="a step of the same block"):
        started(noop("first", "loop", x=1), foreach("loop", noop("in", x="=first__x"), i=[1]))


def test_an_iteration_sees_the_steps_of_its_own_block_only() -> None:
    run = started(foreach("loop", noop("a", "in", x="=i"), noop("in", x="=a__x * 10"), i=[1, 2]))

    assert values(run, "loop", "in", "x") == [10, 20]


# Nested loops -------------------------------------------------------------------------------------------------


def nested(*steps: Json, **more: Any) -> Json:
    return foreach("outer", foreach("inner", *steps, j=[1, 2], **more), i=[10, 20])


def test_an_inner_loop_sees_the_values_of_the_outer_one() -> None:
    run = started(nested(noop("in", x="=i + j")))

    found = [values(one, "inner", "in", "x") for one in children(run, "outer")]

    assert found == [[11, 12], [21, 22]]


def test_an_inner_loop_may_loop_over_what_the_outer_one_gives() -> None:
    loop_params = {"type": "MAP", "value": {"j": {"type": "LONG_ARRAY", "expression": "return new long[]{i, i + 1};"}}}

    run = started(foreach("outer", foreach("inner", noop("in", x="=j"), loop_params=loop_params), i=[10, 20]))

    assert [values(one, "inner", "in", "x") for one in children(run, "outer")] == [[10, 11], [20, 21]]


def test_the_index_of_an_inner_loop_hides_that_of_the_outer_one() -> None:
    run = started(nested(noop("in", x="=loop_index")))

    assert [values(one, "inner", "in", "x") for one in children(run, "outer")] == [[0, 1], [0, 1]]


def test_a_loop_step_itself_has_the_index_minus_one() -> None:
    run = started(nested(noop("in", x="=at"), at="=loop_index"))

    assert [values(one, "inner", "in", "x") for one in children(run, "outer")] == [[-1, -1], [-1, -1]]


def test_iterations_of_different_parents_are_different_instances() -> None:
    run = started(nested(noop("in")))

    keys = {two.key for one in children(run, "outer") for two in children(one, "inner")}

    assert len(keys) == 4


def test_a_failure_two_levels_down_fails_the_root() -> None:
    run = started(nested(step("in")))
    one, two = children(run, "outer")
    for number in (1, 2):
        succeed(child(one, "inner", number), "in")
    succeed(child(two, "inner", 1), "in")

    fail(child(two, "inner", 2), "in", "no space left")

    assert [one.status, two.status, run.status] == [I.SUCCEEDED, I.FAILED, I.FAILED]
    assert reason(run, "outer").startswith("Iteration 2 FAILED")


# The instance -------------------------------------------------------------------------------------------------


def test_an_iteration_knows_its_ancestors_from_the_root_on() -> None:
    run = started(nested(noop("in")))
    leaf = child(child(run, "outer", 2), "inner", 1)
    assert leaf.row is not None

    initiator = json.loads(leaf.row.initiator)

    assert initiator["type"] == "FOREACH"
    assert [one["step_id"] for one in initiator["ancestors"]] == ["outer", "inner"]
    assert leaf.row.parent is not None
    assert (leaf.row.parent.depth, leaf.row.parent.root, leaf.row.parent.home) == (2, run.key, run.key)


def test_an_iteration_has_the_version_and_the_correlation_of_its_parent() -> None:
    engine = pushed(foreach("loop", noop("in"), i=[1]))

    run = engine.start("flow", correlation_id="order-7")
    found = child(run, "loop", 1).row

    assert found is not None
    assert run.row is not None
    assert (found.version, found.correlation_id) == (run.row.version, "order-7")


def test_an_iteration_has_no_time_out_of_its_own() -> None:
    run = started(foreach("loop", step("in", timeout="40 days"), i=[1], timeout="40 days"), timeout="40 days")

    run.engine.advance(20 * 86_400_000)

    assert child(run, "loop", 1).status is InstanceStatus.IN_PROGRESS


def test_a_restart_of_the_parent_gives_iterations_the_parameters_of_the_new_run() -> None:
    run = started(foreach("loop", step("in", x="=base"), i=[1]), params={"base": 1})
    fail(child(run, "loop", 1), "in")

    restart(run, BEGINNING, run_params={"base": {"type": "LONG", "value": 5}})

    assert run.engine.task(child(run, "loop", 1), "in").params["x"] == 5
