"""Parameters for steps inside loops: they reach every iteration that has the step, at a start and at a restart."""

from typing import Any

import pytest

from kapelle.schemas.contracts import RestartPolicy
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import call, child, children, foreach, loop_while, push, restart, runs_of, statuses
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    SPECIFIC,
    I,
    Json,
    S,
    fail,
    noop,
    param,
    pushed,
    refused,
    started,
    step,
    succeed,
    task,
)

GIVEN = {"in": {"x": param(7)}}


def loop(**more: Any) -> Json:
    return foreach("loop", step("in", x=1), i=[1, 2, 3], **more)


def xs(run: RunHandle) -> list[int]:
    """The parameter of the latest task of each iteration."""
    return [task(one, "in").params["x"] for one in children(run, "loop")]


# At the start ---------------------------------------------------------------------------------------------------------


def test_a_start_gives_parameters_to_steps_of_every_iteration() -> None:
    run = pushed(loop()).start("flow", step_run_params=GIVEN)

    assert xs(run) == [7, 7, 7]


def test_a_start_gives_parameters_to_steps_at_any_depth() -> None:
    inner = loop_while("turn", "n < 1", step("in", x=1), first={"n": 0})
    run = pushed(foreach("loop", inner, i=[1, 2])).start("flow", step_run_params=GIVEN)

    found = [task(child(one, "turn"), "in").params["x"] for one in children(run, "loop")]

    assert found == [7, 7]


def test_a_start_refuses_parameters_for_a_step_that_is_nowhere() -> None:
    engine = pushed(loop())

    with pytest.raises(AssertionError, match="Expected a step of the workflow in step_run_params"):
        engine.start("flow", step_run_params={"nobody": {"x": param(7)}})


def test_parameters_for_a_loop_step_are_not_for_the_steps_in_it() -> None:
    engine = pushed(foreach("loop", step("in", x="=own"), i=[1], own=1))

    run = engine.start("flow", step_run_params={"loop": {"own": param(5)}})

    assert xs(run) == [5]


# At a restart ---------------------------------------------------------------------------------------------------------


def test_a_restart_from_the_inline_root_reaches_every_iteration() -> None:
    run = started(loop())
    for one in children(run, "loop"):
        fail(one, "in")

    restart(child(run, "loop", 2), BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert xs(run) == [7, 7, 7]
    assert run.row is not None
    assert run.row.run_id == 2


def test_a_restart_from_the_inline_root_of_what_is_incomplete_keeps_what_succeeded() -> None:
    run = started(foreach("loop", step("in", x=1), i=[1, 2, 3], concurrency=2))
    succeed(child(run, "loop", 1), "in")
    fail(child(run, "loop", 2), "in")
    succeed(child(run, "loop", 3), "in")

    restart(child(run, "loop", 2), INCOMPLETE, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert [runs_of(one) for one in children(run, "loop")] == [1, 2, 1]
    assert xs(run) == [1, 7, 1]


def test_iterations_that_are_launched_later_get_the_parameters_too() -> None:
    run = started(foreach("loop", step("in", x=1), i=[1, 2, 3], concurrency=1))
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 1), INCOMPLETE, step_id="in", step_run_params=GIVEN, from_inline_root=True)
    succeed(child(run, "loop", 1), "in")
    succeed(child(run, "loop", 2), "in")

    assert xs(run) == [7, 7, 7]


def test_a_restart_from_deep_inside_reaches_the_iterations_of_all_loops() -> None:
    run = started(foreach("outer", loop(), j=[1, 2]))
    for one in children(run, "outer"):
        for two in children(one, "loop"):
            fail(two, "in")

    leaf = child(child(run, "outer", 2), "loop", 3)
    restart(leaf, BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert [xs(one) for one in children(run, "outer")] == [[7, 7, 7], [7, 7, 7]]


def test_a_restart_from_inside_a_round_reaches_all_rounds() -> None:
    steps = [step("in", x=1, n="=n + 1")]
    run = started(loop_while("loop", "n < 2", *steps, first={"n": 0}))
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 1), BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)
    succeed(child(run, "loop", 1), "in")

    assert xs(run) == [7, 7]


def test_the_inline_root_of_a_loop_in_a_child_is_the_child() -> None:
    engine = pushed(call("sub", "other"))
    run = push(engine, "other", loop()).start("flow")
    for one in children(child(run, "sub"), "loop"):
        fail(one, "in")

    leaf = child(child(run, "sub"), "loop", 1)
    restart(leaf, BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert xs(child(run, "sub")) == [7, 7, 7]
    assert runs_of(run) == 2


def test_an_instance_that_was_pushed_is_its_own_inline_root() -> None:
    run = started(step("in", x=1))
    fail(run, "in")

    restart(run, INCOMPLETE, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert task(run, "in").params["x"] == 7


def test_run_params_are_for_the_inline_root() -> None:
    run = started(foreach("loop", step("in", x="=base"), i=[1, 2]), params={"base": 1})
    for one in children(run, "loop"):
        fail(one, "in")

    restart(child(run, "loop", 1), BEGINNING, step_id="in", run_params={"base": param(5)}, from_inline_root=True)

    assert xs(run) == [5, 5]


def test_a_restart_of_the_loop_itself_may_give_parameters_to_steps_inside() -> None:
    run = started(loop())
    for one in children(run, "loop"):
        fail(one, "in")

    run.restart(SPECIFIC, step_id="loop", step_run_params=GIVEN)

    assert xs(run) == [7, 7, 7]


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [SPECIFIC])
def test_the_inline_root_cannot_begin_with_a_step_that_it_does_not_have(policy: RestartPolicy) -> None:
    run = started(loop())
    for one in children(run, "loop"):
        fail(one, "in")

    restart(child(run, "loop", 1), policy, step_id="in", from_inline_root=True)

    assert "RESTART_FROM_INCOMPLETE" in refused(run)
    assert runs_of(run) == 1


def test_an_iteration_that_runs_is_no_place_to_restart_from() -> None:
    run = started(loop())

    restart(child(run, "loop", 1), BEGINNING, step_id="in", from_inline_root=True)

    assert "to have ended" in refused(run)


def test_a_step_that_was_never_created_is_no_place_to_restart_from() -> None:
    run = started(foreach("loop", step("in", "next"), noop("next"), i=[1]))
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 1), BEGINNING, step_id="next", from_inline_root=True)

    assert "to have been created" in refused(run)


def test_an_inline_root_that_runs_is_not_restarted() -> None:
    run = started(loop())
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 1), BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert "Expected the instance to have ended" in refused(run)
    assert statuses(run, "loop") == [I.FAILED, I.IN_PROGRESS, I.IN_PROGRESS]


def test_parameters_that_a_step_inside_cannot_take_are_refused() -> None:
    fixed = {"type": "LONG", "value": 1, "mode": "CONSTANT"}
    run = started(foreach("loop", step("in", x=fixed), i=[1]))
    fail(child(run, "loop", 1), "in")

    restart(child(run, "loop", 1), BEGINNING, step_id="in", step_run_params=GIVEN, from_inline_root=True)

    assert "'x'" in refused(run)
    assert run.steps == {"loop": S.FATALLY_FAILED}
