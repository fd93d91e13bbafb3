"""The policy of a restart of a step: how the children restart that run again with it, not which of them."""

from typing import Any

import pytest

from kapelle.schemas.contracts import Action, RestartPolicy
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import call, child, children, foreach, loop_while, push, restart, runs_of, statuses
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    SPECIFIC,
    I,
    S,
    fail,
    noop,
    pushed,
    refused,
    started,
    step,
    succeed,
)

TWO = (step("a", "b"), step("b"))


def tried(run: RunHandle, step_id: str) -> int:
    """How often a step of an instance was given to workers, over all runs."""
    return sum(S.STARTING in one.statuses for one in run.changes(step_id))


def tries(run: RunHandle, step_id: str = "loop") -> list[tuple[int, int]]:
    """How often the two steps of each child were given to workers."""
    return [(tried(one, "a"), tried(one, "b")) for one in children(run, step_id)]


def looped(*more: Any, **of_loop: Any) -> RunHandle:
    """A loop whose first iteration has succeeded, and whose second one has failed in its second step."""
    run = started(foreach("loop", *TWO, i=[1, 2], **of_loop), *more)
    succeed(child(run, "loop", 1), "a", "b")
    succeed(child(run, "loop", 2), "a")
    fail(child(run, "loop", 2), "b")
    return run


def called(*more: Any) -> RunHandle:
    """A step whose child has failed in its second step."""
    run = push(pushed(call("sub", "other"), *more), "other", *TWO).start("flow")
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")
    return run


def repeated() -> RunHandle:
    """A while step whose first round has failed in its second step."""
    run = started(loop_while("loop", "n < 2", step("a", "b"), step("b", n="=n + 1"), first={"n": 0}))
    succeed(child(run, "loop", 1), "a")
    fail(child(run, "loop", 1), "b")
    return run


# The step itself ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "of_second"), [(None, (1, 2)), (INCOMPLETE, (1, 2)), (BEGINNING, (2, 1))])
def test_iterations_that_run_again_restart_by_the_policy(
    policy: RestartPolicy | None, of_second: tuple[int, int]
) -> None:
    run = looped()

    run.restart(SPECIFIC, step_id="loop", downstream_policy=policy)

    assert tries(run) == [(1, 1), of_second]


@pytest.mark.parametrize(("policy", "of_second"), [(None, (1, 2)), (BEGINNING, (2, 1))])
def test_iterations_restart_by_the_policy_while_the_instance_runs(
    policy: RestartPolicy | None, of_second: tuple[int, int]
) -> None:
    run = looped(step("other"))

    run.restart(SPECIFIC, step_id="loop", downstream_policy=policy)

    assert run.step_rows()["loop"].attempt == 2
    assert tries(run) == [(1, 1), of_second]


def test_iterations_that_restart_later_restart_by_the_policy_too() -> None:
    run = started(foreach("loop", *TWO, i=[1, 2, 3], concurrency=1))
    for number in (1, 2, 3):
        succeed(child(run, "loop", number), "a")
        child(run, "loop", number).stop()

    run.restart(SPECIFIC, step_id="loop", downstream_policy=BEGINNING)
    succeed(child(run, "loop", 1), "a", "b")
    succeed(child(run, "loop", 2), "a", "b")

    assert tries(run) == [(2, 2), (2, 2), (2, 1)]


def test_a_policy_of_one_restart_does_not_last_for_the_next() -> None:
    run = looped()
    run.restart(SPECIFIC, step_id="loop", downstream_policy=BEGINNING)
    succeed(child(run, "loop", 2), "a")
    fail(child(run, "loop", 2), "b")

    run.restart(SPECIFIC, step_id="loop")

    assert tries(run) == [(1, 1), (2, 3)]


@pytest.mark.parametrize(("policy", "of_child"), [(None, (1, 2)), (INCOMPLETE, (1, 2)), (BEGINNING, (2, 1))])
def test_the_child_of_a_subworkflow_step_restarts_by_the_policy(
    policy: RestartPolicy | None, of_child: tuple[int, int]
) -> None:
    run = called()

    run.restart(SPECIFIC, step_id="sub", downstream_policy=policy)

    assert tries(run, "sub") == [of_child]


@pytest.mark.parametrize(("policy", "of_child"), [(None, (1, 2)), (BEGINNING, (2, 1))])
def test_the_child_of_a_subworkflow_step_restarts_by_the_policy_while_the_instance_runs(
    policy: RestartPolicy | None, of_child: tuple[int, int]
) -> None:
    run = called(step("other"))

    run.restart(SPECIFIC, step_id="sub", downstream_policy=policy)

    assert tries(run, "sub") == [of_child]


def test_a_child_that_succeeded_runs_from_its_beginning_whatever_the_policy() -> None:
    run = push(pushed(call("sub", "other")), "other", *TWO).start("flow")
    succeed(child(run, "sub"), "a", "b")

    run.restart(SPECIFIC, step_id="sub", downstream_policy=INCOMPLETE)

    assert tries(run, "sub") == [(2, 1)]


@pytest.mark.parametrize(("policy", "of_first"), [(None, (2, 1)), (INCOMPLETE, (1, 2)), (BEGINNING, (2, 1))])
def test_the_first_round_restarts_by_the_policy(policy: RestartPolicy | None, of_first: tuple[int, int]) -> None:
    run = repeated()

    run.restart(SPECIFIC, step_id="loop", downstream_policy=policy)

    assert tries(run) == [of_first]


def test_rounds_after_the_first_run_from_their_beginning() -> None:
    run = repeated()
    run.restart(INCOMPLETE)
    succeed(child(run, "loop", 1), "b")
    succeed(child(run, "loop", 2), "a")
    fail(child(run, "loop", 2), "b")

    run.restart(SPECIFIC, step_id="loop", downstream_policy=INCOMPLETE)
    succeed(child(run, "loop", 1), "a", "b")
    succeed(child(run, "loop", 2), "a", "b")

    assert tries(run) == [(2, 3), (2, 2)]
    assert run.status is I.SUCCEEDED


# Below, behind and beside ---------------------------------------------------------------------------------------------


def test_the_policy_is_followed_down_to_loops_in_loops() -> None:
    run = started(foreach("outer", foreach("loop", *TWO, i=[1, 2]), j=[1]))
    inner = child(run, "outer", 1)
    succeed(child(inner, "loop", 1), "a", "b")
    succeed(child(inner, "loop", 2), "a")
    fail(child(inner, "loop", 2), "b")

    run.restart(SPECIFIC, step_id="outer", downstream_policy=BEGINNING)

    assert tries(inner) == [(2, 1), (2, 1)]


def test_the_policy_is_followed_down_through_the_child_of_a_subworkflow() -> None:
    run = push(pushed(call("sub", "other")), "other", foreach("loop", *TWO, i=[1])).start("flow")
    one = child(run, "sub")
    succeed(child(one, "loop", 1), "a")
    fail(child(one, "loop", 1), "b")

    run.restart(SPECIFIC, step_id="sub", downstream_policy=BEGINNING)

    assert tries(one) == [(2, 1)]


@pytest.mark.parametrize(("policy", "of_second"), [(None, (1, 2)), (BEGINNING, (2, 1))])
def test_an_incomplete_loop_after_the_step_restarts_its_children_by_the_policy(
    policy: RestartPolicy | None, of_second: tuple[int, int]
) -> None:
    run = started(step("before", "loop"), foreach("loop", *TWO, i=[1, 2]))
    succeed(run, "before")
    succeed(child(run, "loop", 1), "a", "b")
    succeed(child(run, "loop", 2), "a")
    fail(child(run, "loop", 2), "b")

    run.restart(SPECIFIC, step_id="before", downstream_policy=policy)
    succeed(run, "before")

    assert tries(run) == [(1, 1), of_second]


@pytest.mark.parametrize(("policy", "tried_again"), [(INCOMPLETE, (1, 2)), (BEGINNING, (2, 1))])
def test_an_incomplete_loop_beside_the_path_restarts_its_children_by_the_policy(
    policy: RestartPolicy, tried_again: tuple[int, int]
) -> None:
    run = started(foreach("first", step("x"), to=["loop"], i=[1]), foreach("loop", *TWO, i=[1]))
    succeed(child(run, "first"), "x")
    succeed(child(run, "loop"), "a")
    fail(child(run, "loop"), "b")

    restart(child(run, "first"), SPECIFIC, step_id="x", downstream_policy=policy)
    succeed(child(run, "first"), "x")

    assert tries(run) == [tried_again]


@pytest.mark.parametrize(("policy", "tried_again"), [(INCOMPLETE, (1, 2)), (BEGINNING, (2, 1))])
def test_the_policy_for_a_child_is_also_that_for_incomplete_loops_beside_the_path(
    policy: RestartPolicy, tried_again: tuple[int, int]
) -> None:
    first = foreach("first", step("x"), to=["sub"], i=[1], failure_mode="IGNORE_FAILURE")
    run = push(pushed(first, call("sub", "other")), "other", *TWO).start("flow")
    fail(child(run, "first"), "x")
    succeed(child(run, "sub"), "a")
    fail(child(run, "sub"), "b")

    restart(child(run, "first"), policy)
    succeed(child(run, "first"), "x")

    assert tries(run, "sub") == [tried_again]


def test_a_restart_of_a_step_inside_an_iteration_tells_the_loops_after_it_in_that_iteration() -> None:
    run = started(foreach("outer", step("before", "loop"), foreach("loop", *TWO, i=[1]), j=[1]))
    inner = child(run, "outer", 1)
    succeed(inner, "before")
    succeed(child(inner, "loop"), "a")
    fail(child(inner, "loop"), "b")

    restart(inner, SPECIFIC, step_id="before", downstream_policy=BEGINNING)
    succeed(inner, "before")

    assert tries(inner) == [(2, 1)]


def test_a_complete_loop_after_the_step_runs_all_its_iterations_from_the_beginning() -> None:
    run = started(step("before", "loop"), foreach("loop", *TWO, i=[1]))
    succeed(run, "before")
    succeed(child(run, "loop"), "a", "b")

    run.restart(SPECIFIC, step_id="before", downstream_policy=INCOMPLETE)
    succeed(run, "before")

    assert tries(run) == [(2, 1)]


# Refusals -------------------------------------------------------------------------------------------------------------


def test_a_policy_for_children_is_refused_where_there_are_none() -> None:
    run = started(step("a", "b"), step("b"))
    succeed(run, "a")
    fail(run, "b")

    run.restart(SPECIFIC, step_id="b", downstream_policy=BEGINNING)

    assert "Expected RESTART_FROM_SPECIFIC for step 'b'" in refused(run)
    assert runs_of(run) == 1


def test_a_policy_for_children_is_refused_for_a_plain_step_while_the_instance_runs() -> None:
    run = started(step("a", "loop"), foreach("loop", noop("in"), i=[1]), step("other"))
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a", downstream_policy=BEGINNING)

    assert "it has no children" in refused(run)


def test_a_policy_for_children_is_refused_for_a_step_that_would_wait_for_signals_first() -> None:
    loop = foreach("loop", *TWO, i=[1])
    loop["foreach"]["signal_dependencies"] = [{"name": "go"}]
    run = started(loop, step("other"))
    run.act("loop", Action.STOP)

    run.restart(SPECIFIC, step_id="loop", downstream_policy=BEGINNING)

    assert "to have its signals" in refused(run)


@pytest.mark.parametrize("policy", [INCOMPLETE, BEGINNING])
def test_an_instance_has_one_policy_for_itself_and_its_children(policy: RestartPolicy) -> None:
    run = looped()

    run.restart(policy, downstream_policy=BEGINNING)

    assert "Expected downstream_policy only for the restart of a step" in refused(run)
    assert statuses(run, "loop") == [I.SUCCEEDED, I.FAILED]


def test_children_cannot_begin_with_a_step_of_their_parent() -> None:
    run = looped()

    run.restart(SPECIFIC, step_id="loop", downstream_policy=SPECIFIC)

    assert "as downstream_policy" in refused(run)
