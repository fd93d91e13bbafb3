"""Restarts around and inside of foreach: which iterations run again, and which are kept."""

from typing import Any

import pytest

from kapelle.processors.wiring import RUN_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Refusal, RestartPolicy
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import (
    child,
    children,
    fan,
    foreach,
    restart,
    row,
    run_ids,
    runs_of,
    statuses,
)
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
    reason,
    refused,
    started,
    step,
    succeed,
    task,
)

OUT = {"type": "LONG", "value": 0, "mode": "MUTABLE"}


def ended(run: RunHandle, ends: str, *, step_id: str = "loop") -> None:
    """End the iterations that run: a dot for each that succeeds, an x for each that fails."""
    for number, how in enumerate(ends, 1):
        one = child(run, step_id, number)
        if how == "x":
            fail(one, "in")
        elif how == ".":
            succeed(one, "in")


def loop(count: int = 3, **more: Any) -> Json:
    return foreach("loop", step("in"), i=list(range(1, count + 1)), **more)


def again(run: RunHandle) -> list[int]:
    """The iterations that have run more than once."""
    return [one.instance_id for one in children(run, "loop") if runs_of(one) > 1]


# The whole instance ---------------------------------------------------------------------------------------------------


def test_from_the_beginning_all_iterations_run_again() -> None:
    run = started(loop())
    ended(run, "..x")

    run.restart(BEGINNING)

    assert statuses(run, "loop") == [I.IN_PROGRESS] * 3
    assert again(run) == [1, 2, 3]


def test_from_the_beginning_iterations_run_all_their_steps_again() -> None:
    run = started(foreach("loop", noop("first", "in"), step("in"), i=[1]))
    ended(run, "x")

    run.restart(BEGINNING)

    assert [one.run_id for one in child(run, "loop").changes("first")] == [1, 2]


def test_from_what_is_incomplete_iterations_that_succeeded_are_kept() -> None:
    run = started(loop())
    ended(run, ".x.")

    run.restart(INCOMPLETE)
    ended(run, " .")

    assert again(run) == [2]
    assert run.status is I.SUCCEEDED


def test_an_iteration_that_runs_again_keeps_its_own_steps_that_are_complete() -> None:
    run = started(foreach("loop", noop("first", "in"), step("in"), i=[1]))
    ended(run, "x")

    run.restart(INCOMPLETE)

    assert [one.run_id for one in child(run, "loop").changes("first")] == [1]
    assert [one.run_id for one in child(run, "loop").changes("in")][-1] == 2


def test_iterations_that_were_never_launched_are_launched() -> None:
    run = started(loop(4, concurrency=1))
    ended(run, ".x")

    run.restart(INCOMPLETE)
    ended(run, " ...")

    assert run_ids(run, "loop") == [1, 2, 2, 2]
    assert run.status is I.SUCCEEDED


@pytest.mark.parametrize("how", [Action.STOP, Action.KILL])
def test_iterations_that_were_stopped_run_again(how: Action) -> None:
    run = started(loop())
    ended(run, ".")
    run.stop(how)

    run.restart(INCOMPLETE)
    ended(run, " ..")

    assert again(run) == [2, 3]
    assert run.status is I.SUCCEEDED


def test_a_second_restart_keeps_what_the_first_one_has_made() -> None:
    run = started(loop())
    ended(run, ".xx")
    run.restart(INCOMPLETE)
    ended(run, " .x")

    run.restart(INCOMPLETE)
    ended(run, "  .")

    assert [runs_of(one) for one in children(run, "loop")] == [1, 2, 3]
    assert run.status is I.SUCCEEDED


def test_what_succeeded_before_a_restart_from_the_beginning_is_not_kept_later() -> None:
    run = started(loop())
    ended(run, "..x")
    run.restart(BEGINNING)
    ended(run, "xx.")

    run.restart(INCOMPLETE)

    assert statuses(run, "loop") == [I.IN_PROGRESS, I.IN_PROGRESS, I.SUCCEEDED]


def test_a_failure_of_an_earlier_run_does_not_count() -> None:
    run = started(loop(concurrency=1))
    ended(run, "x")

    run.restart(BEGINNING)
    ended(run, "...")

    assert run.status is I.SUCCEEDED


def test_a_step_that_was_skipped_is_complete_and_its_loop_does_not_run_again() -> None:
    run = started(loop(), step("b"))
    run.act("loop", Action.SKIP)
    fail(run, "b")

    run.restart(INCOMPLETE)

    assert run.steps["loop"] is S.SKIPPED
    assert run.steps["b"] is S.STARTING


# The loop step itself -------------------------------------------------------------------------------------------------


def test_a_restart_of_the_loop_step_keeps_iterations_that_succeeded() -> None:
    run = started(loop())
    ended(run, ".x.")

    run.restart(SPECIFIC, step_id="loop")
    ended(run, " .")

    assert again(run) == [2]
    assert run.status is I.SUCCEEDED


def test_a_restart_of_a_loop_step_whose_iterations_all_succeeded_runs_nothing_and_succeeds() -> None:
    run = started(loop(), noop("b"))
    ended(run, "...")

    run.restart(SPECIFIC, step_id="loop")

    assert again(run) == []
    assert run.steps["loop"] is S.SUCCEEDED
    assert run.status is I.SUCCEEDED


def test_a_long_loop_whose_iterations_all_succeeded_runs_nothing_and_succeeds() -> None:
    run = started(foreach("loop", noop("in"), i=list(range(1_100))), step("b"))
    fail(run, "b")

    run.restart(SPECIFIC, step_id="loop")

    assert run.steps["loop"] is S.SUCCEEDED


def test_a_loop_step_that_failed_is_restarted_while_others_run() -> None:
    run = started(loop(), step("b"))
    ended(run, ".x.")

    run.restart(SPECIFIC, step_id="loop")
    before = run.steps["loop"], statuses(run, "loop")
    ended(run, " .")
    succeed(run, "b")

    assert before == (S.RUNNING, [I.SUCCEEDED, I.IN_PROGRESS, I.SUCCEEDED])
    assert run.step_rows()["loop"].attempt == 2
    assert run.status is I.SUCCEEDED


def test_a_loop_step_that_was_stopped_after_all_its_iterations_had_ended_succeeds() -> None:
    run = started(foreach("loop", step("in", "out"), step("out"), i=[1]), step("b"))
    child(run, "loop").act("in", Action.STOP)
    assert run.steps["loop"] == "STOPPED"

    run.restart(SPECIFIC, step_id="loop")
    succeed(child(run, "loop"), "in", "out")

    assert run.steps["loop"] is S.SUCCEEDED


# A step before it -----------------------------------------------------------------------------------------------------


def test_behind_a_step_that_runs_again_all_iterations_run_again() -> None:
    run = started(step("a", "loop"), loop())
    succeed(run, "a")
    ended(run, "...")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert statuses(run, "loop") == [I.IN_PROGRESS] * 3


def test_behind_a_step_that_runs_again_an_incomplete_loop_keeps_what_succeeded() -> None:
    run = started(step("a", "loop"), loop())
    succeed(run, "a")
    ended(run, ".x.")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS, I.SUCCEEDED]


# When the loop has changed --------------------------------------------------------------------------------------------


def sized(**more: Any) -> Json:
    """A loop over as many values as the step before it says."""
    numbers = "long[] all = new long[a__count]; return all;"
    loop_params = {"type": "MAP", "value": {"i": {"type": "LONG_ARRAY", "expression": numbers}}}
    return foreach("loop", step("in"), loop_params=loop_params, **more)


def test_a_loop_that_grows_runs_the_new_iterations_too() -> None:
    run = started(step("a", "loop", count=OUT), sized())
    task(run, "a").succeed(count=2)
    ended(run, ".x")

    run.restart(SPECIFIC, step_id="a")
    task(run, "a").succeed(count=4)
    ended(run, " ...")

    assert again(run) == [2]
    assert statuses(run, "loop") == [I.SUCCEEDED] * 4


def test_a_loop_that_shrinks_below_what_was_launched_fails() -> None:
    run = started(step("a", "loop", count=OUT), sized())
    task(run, "a").succeed(count=3)
    ended(run, "x..")

    run.restart(SPECIFIC, step_id="a")
    task(run, "a").succeed(count=2)

    assert run.steps["loop"] is S.FATALLY_FAILED
    assert "at least 3 iterations" in reason(run, "loop")


def test_a_loop_that_shrinks_to_nothing_fails_if_iterations_were_launched() -> None:
    run = started(step("a", "loop", count=OUT), sized())
    task(run, "a").succeed(count=1)
    ended(run, "x")

    run.restart(SPECIFIC, step_id="a")
    task(run, "a").succeed(count=0)

    assert run.steps["loop"] is S.FATALLY_FAILED


def test_a_loop_that_shrinks_may_run_again_from_the_beginning() -> None:
    run = started(step("a", "loop", count=OUT), sized(to=["after"]), noop("after", all=GATHERED))
    task(run, "a").succeed(count=3)
    ended(run, "..x")

    run.restart(BEGINNING)
    task(run, "a").succeed(count=2)
    ended(run, "..")

    assert run.status is I.SUCCEEDED
    assert fan(run, "loop").total == 2


GATHERED = {"type": "LONG_ARRAY", "expression": "return new long[0];"}


# Something inside it --------------------------------------------------------------------------------------------------


def test_a_restart_of_an_iteration_of_an_instance_that_has_ended_runs_that_iteration_alone() -> None:
    run = started(loop())
    ended(run, ".x.")

    restart(child(run, "loop", 1), BEGINNING)
    before = statuses(run, "loop")
    ended(run, ".")

    assert before == [I.IN_PROGRESS, I.FAILED, I.SUCCEEDED]
    assert run.row is not None
    assert run.row.run_id == 2
    assert run.steps["loop"] is S.FATALLY_FAILED


def test_a_restart_of_the_failed_iteration_completes_the_loop() -> None:
    run = started(loop())
    ended(run, ".x.")

    restart(child(run, "loop", 2), INCOMPLETE)
    ended(run, " .")

    assert again(run) == [2]
    assert run.status is I.SUCCEEDED


def test_after_the_last_failed_iteration_was_restarted_those_never_launched_are_launched() -> None:
    run = started(loop(3, concurrency=1))
    ended(run, "x")

    restart(child(run, "loop", 1), INCOMPLETE)
    ended(run, "...")

    assert run.status is I.SUCCEEDED
    assert statuses(run, "loop") == [I.SUCCEEDED] * 3


def test_if_another_failed_iteration_is_left_nothing_more_is_launched() -> None:
    run = started(loop(4, concurrency=2))
    ended(run, "xx")

    restart(child(run, "loop", 1), INCOMPLETE)
    ended(run, ".")

    assert statuses(run, "loop") == [I.SUCCEEDED, I.FAILED]
    assert run.steps["loop"] is S.FATALLY_FAILED


def test_a_restart_of_a_step_of_an_iteration_runs_that_step_and_all_behind_it() -> None:
    run = started(foreach("loop", step("a", "in"), step("in"), i=[1, 2]))
    for number in (1, 2):
        succeed(child(run, "loop", number), "a", "in")

    restart(child(run, "loop", 2), SPECIFIC, step_id="in")
    one = child(run, "loop", 2)

    assert one.steps == {"a": S.SUCCEEDED, "in": S.STARTING}
    assert [each.run_id for each in one.changes("a")][-1] == 1
    succeed(one, "in")
    assert run.status is I.SUCCEEDED


def test_the_steps_behind_the_loop_run_again() -> None:
    run = started(loop(to=["after"]), step("after"))
    ended(run, "...")
    succeed(run, "after")

    restart(child(run, "loop", 3), BEGINNING)
    ended(run, "  .")

    assert run.steps == {"loop": S.SUCCEEDED, "after": S.STARTING}


def test_a_restart_deep_inside_follows_the_path_down_and_keeps_all_others() -> None:
    inner = foreach("inner", step("in"), j=[1, 2])
    run = started(foreach("loop", inner, i=[1, 2]))
    for one in children(run, "loop"):
        for two in children(one, "inner"):
            if two.key != child(child(run, "loop", 2), "inner", 1).key:
                succeed(two, "in")
    fail(child(child(run, "loop", 2), "inner", 1), "in")
    assert run.status == "FAILED"

    restart(child(child(run, "loop", 2), "inner", 1), INCOMPLETE)
    before = statuses(run, "loop"), statuses(child(run, "loop", 2), "inner")
    succeed(child(child(run, "loop", 2), "inner", 1), "in")

    assert before == ([I.SUCCEEDED, I.IN_PROGRESS], [I.IN_PROGRESS, I.SUCCEEDED])
    assert [runs_of(one) for one in children(run, "loop")] == [1, 2]
    assert run.status is I.SUCCEEDED


def test_a_skip_of_a_step_of_an_iteration_that_has_ended_completes_the_loop() -> None:
    run = started(foreach("loop", step("in", "out"), noop("out"), i=[1, 2]))
    ended(run, ".x")

    child(run, "loop", 2).act("in", Action.SKIP)

    assert child(run, "loop", 2).steps == {"in": S.SKIPPED, "out": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


# In place -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [".", "x"])
def test_an_iteration_that_has_ended_runs_again_while_the_others_go_on(ends: str) -> None:
    run = started(loop())
    ended(run, ends)

    restart(child(run, "loop", 1), BEGINNING)
    before = statuses(run, "loop")
    ended(run, "...")

    assert before == [I.IN_PROGRESS] * 3
    assert run_ids(run, "loop") == [2, 1, 1]
    assert run.row is not None
    assert (run.row.run_id, run.step_rows()["loop"].attempt) == (1, 1)
    assert run.status is I.SUCCEEDED


def test_an_iteration_may_be_restarted_in_place_again_and_again() -> None:
    run = started(loop())

    for _ in range(3):
        ended(run, "x")
        restart(child(run, "loop", 1), INCOMPLETE)
    ended(run, "...")

    assert runs_of(child(run, "loop", 1)) == 4
    assert run.status is I.SUCCEEDED


def test_an_in_place_restart_ignores_the_concurrency() -> None:
    run = started(loop(3, concurrency=1))
    ended(run, ".")

    restart(child(run, "loop", 1), BEGINNING)

    assert statuses(run, "loop") == [I.IN_PROGRESS, I.IN_PROGRESS]


def test_in_a_strict_order_the_others_go_on_while_an_early_iteration_runs_again_in_its_place() -> None:
    run = started(loop(9, concurrency=2, strict_ordering=True))
    for number in (1, 2, 3, 4):
        succeed(child(run, "loop", number), "in")
    child(run, "loop", 1).restart(BEGINNING)

    for number in (5, 6):
        succeed(child(run, "loop", number), "in")

    assert [number for number, one in enumerate(statuses(run, "loop"), 1) if one is I.IN_PROGRESS] == [1, 7, 8]
    succeed(child(run, "loop", 1), "in")
    succeed(child(run, "loop", 8), "in")
    assert len(children(run, "loop")) == 8
    succeed(child(run, "loop", 7), "in")
    succeed(child(run, "loop", 9), "in")
    assert run.status is I.SUCCEEDED


def test_restarting_the_last_failed_iteration_in_place_makes_launching_go_on() -> None:
    run = started(loop(4, concurrency=2))
    ended(run, "x")
    before = len(children(run, "loop"))

    restart(child(run, "loop", 1), INCOMPLETE)
    ended(run, "..")

    assert (before, len(children(run, "loop"))) == (2, 4)


def test_a_failed_step_of_a_running_iteration_is_restarted_in_that_iteration() -> None:
    run = started(foreach("loop", step("in"), step("side"), i=[1]))
    ended(run, "x")

    restart(child(run, "loop", 1), SPECIFIC, step_id="in")

    assert child(run, "loop", 1).step_rows()["in"].attempt == 2
    assert runs_of(child(run, "loop", 1)) == 1


def test_an_in_place_restart_of_a_loop_that_fails_immediately_is_refused() -> None:
    run = started(loop(3, failure_mode="FAIL_IMMEDIATELY"))
    ended(run, ".")

    restart(child(run, "loop", 1), BEGINNING)

    assert "any failure mode but FAIL_IMMEDIATELY" in refused(run)
    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS, I.IN_PROGRESS]


def test_an_iteration_of_a_loop_that_ignores_failures_is_restarted_in_its_place() -> None:
    run = started(loop(3, failure_mode="IGNORE_FAILURE", to=["after"]), noop("after"))
    ended(run, "x")

    restart(child(run, "loop", 1), INCOMPLETE)
    ended(run, "...")

    assert run_ids(run, "loop") == [2, 1, 1]
    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


def test_in_a_strict_order_an_iteration_that_runs_again_does_not_hide_an_older_one() -> None:
    run = started(loop(5, concurrency=3, strict_ordering=True))
    succeed(child(run, "loop", 2), "in")

    restart(child(run, "loop", 2), BEGINNING)
    succeed(child(run, "loop", 2), "in")
    before = fan(run, "loop").oldest, len(children(run, "loop"))
    succeed(child(run, "loop", 1), "in")

    assert before == (1, 3)
    assert (fan(run, "loop").oldest, len(children(run, "loop"))) == (3, 5)


def test_an_iteration_that_runs_cannot_be_restarted() -> None:
    run = started(loop())

    restart(child(run, "loop", 1), BEGINNING)

    assert run.engine.refusals()[-1].refusal is Refusal.INVALID
    assert runs_of(child(run, "loop", 1)) == 1


def test_an_iteration_of_a_complete_loop_cannot_be_restarted_while_the_instance_runs() -> None:
    run = started(loop(), step("b"))
    ended(run, "...")

    restart(child(run, "loop", 1), BEGINNING)

    assert "to be a foreach that runs, or to have failed, but it is SUCCEEDED" in refused(run)


def test_an_iteration_of_a_failed_loop_is_restarted_by_another_attempt_while_the_instance_runs() -> None:
    run = started(loop(), step("b"))
    ended(run, "xx.")

    restart(child(run, "loop", 2), INCOMPLETE)
    before = statuses(run, "loop")
    ended(run, " .")

    assert before == [I.FAILED, I.IN_PROGRESS, I.SUCCEEDED]
    assert run.step_rows()["loop"].attempt == 2
    assert run.steps["loop"] is S.FATALLY_FAILED


def test_a_restart_that_comes_twice_is_carried_out_once() -> None:
    run = started(loop())
    ended(run, "x")
    one = child(run, "loop", 1)

    for _ in range(2):
        run.engine.send(RUN_COMMANDS, one.key, c.RestartRun("same", "ann", INCOMPLETE))
        ended(run, "x")

    assert runs_of(one) == 2


def interrupted() -> RunHandle:
    """A run that begins from the beginning again, and has come to the first of three iterations."""
    run = started(foreach("loop", step("in"), step("also"), i=[1, 2, 3], concurrency=1))
    for number in (1, 2):
        succeed(child(run, "loop", number), "in", "also")
    succeed(child(run, "loop", 3), "also")
    fail(child(run, "loop", 3), "in")
    run.restart(BEGINNING)
    return run


def test_an_iteration_that_has_not_run_since_a_restart_from_the_beginning_runs_all_its_steps() -> None:
    run = interrupted()
    succeed(child(run, "loop", 1), "also")
    fail(child(run, "loop", 1), "in")

    run.restart(INCOMPLETE)
    succeed(child(run, "loop", 1), "in")
    succeed(child(run, "loop", 2), "in", "also")

    assert child(run, "loop", 3).steps == {"in": S.STARTING, "also": S.STARTING}


def resumed() -> RunHandle:
    """A run that goes on with what was stopped, and has come to the first of three iterations."""
    run = started(loop(concurrency=1))
    for number in (1, 2, 3):
        child(run, "loop", number).stop()
    run.restart(INCOMPLETE)
    assert statuses(run, "loop") == [I.IN_PROGRESS, I.STOPPED, I.STOPPED]
    return run


def test_an_iteration_that_is_restarted_ahead_of_the_others_runs_once_in_the_loop() -> None:
    run = resumed()
    restart(child(run, "loop", 3), BEGINNING)
    child(run, "loop", 3).stop()
    ended(run, "..")

    assert statuses(run, "loop") == [I.SUCCEEDED, I.SUCCEEDED, I.STOPPED]
    assert run.steps == {"loop": S.STOPPED}


def test_an_iteration_that_is_restarted_ahead_of_the_others_is_stopped_with_them() -> None:
    run = resumed()
    restart(child(run, "loop", 3), BEGINNING)

    run.stop()

    assert (child(run, "loop", 3).status, runs_of(child(run, "loop", 3))) == (I.STOPPED, 2)
    assert run.status is I.STOPPED


# Parameters of a restart ----------------------------------------------------------------------------------------------


def test_run_params_of_a_restart_are_for_the_iteration_that_is_meant() -> None:
    run = started(foreach("loop", step("in", x="=base"), i=[1, 2]), params={"base": 1})
    ended(run, "xx")

    restart(child(run, "loop", 2), INCOMPLETE, run_params={"base": param(7)})

    assert task(child(run, "loop", 2), "in").params["x"] == 7
    assert run.row is not None
    assert '"base":1' in run.row.params


def test_run_params_of_a_restart_may_use_what_is_around_the_iteration() -> None:
    run = started(foreach("loop", step("in", x="=more"), i=[5]), params={"base": 1, "more": 0})
    ended(run, "x")

    restart(child(run, "loop", 1), INCOMPLETE, run_params={"more": param("=base + i")})

    assert task(child(run, "loop", 1), "in").params["x"] == 6


def test_step_run_params_of_a_restart_are_for_the_step_that_is_meant() -> None:
    run = started(foreach("loop", step("in", x=1), i=[1, 2]))
    ended(run, "xx")

    restart(child(run, "loop", 2), SPECIFIC, step_id="in", step_run_params={"in": {"x": param(7)}})

    assert task(child(run, "loop", 2), "in").params["x"] == 7


def test_loop_values_stay_what_they_are_in_a_restart() -> None:
    run = started(foreach("loop", step("in", x="=i * 10 + loop_index"), i=[4, 5]))
    ended(run, "xx")

    restart(child(run, "loop", 2), BEGINNING)

    assert task(child(run, "loop", 2), "in").params["x"] == 51


@pytest.mark.parametrize("policy", [INCOMPLETE, BEGINNING])
def test_an_iteration_that_succeeded_is_run_again_from_the_beginning_by_its_parent(policy: RestartPolicy) -> None:
    run = started(step("a", "loop"), loop(1))
    succeed(run, "a")
    ended(run, ".")

    run.restart(SPECIFIC if policy is INCOMPLETE else BEGINNING, step_id="a" if policy is INCOMPLETE else None)
    succeed(run, "a")

    assert statuses(run, "loop") == [I.IN_PROGRESS]
    assert row(run, "loop", 1).run_id == 2


def test_a_restart_through_the_queue_of_the_root() -> None:
    engine = pushed(loop(1))
    engine.push(
        {"properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"}, "workflow": {"id": "flow", "steps": [loop(1)]}}
    )
    run, busy = engine.start("flow"), engine.start("flow")
    ended(run, "x")

    restart(child(run, "loop", 1), INCOMPLETE)
    before = run.status
    ended(busy, ".")
    ended(run, ".")

    assert before is I.CREATED
    assert run.status is I.SUCCEEDED
