"""Loops: edges that lead back to a step that all ways pass. Iterations, exits, nesting, failures, limits."""

from typing import Any

import pytest

from kapelle.processors.runs import loops as loops_of_runs
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import (
    INCOMPLETE,
    MINUTE_MS,
    SPECIFIC,
    I,
    S,
    fail,
    iterations,
    noop,
    pause,
    reason,
    started,
    step,
    succeed,
    task,
)


def loops(run: RunHandle) -> dict[str, int]:
    """How many iterations each loop had when it ended."""
    return {one.header: one.iteration for one in run.events() if isinstance(one, c.LoopEnded)}


# Polling: one step that leads to itself ------------------------------------------------------------------------------


def test_a_step_that_leads_to_itself_is_repeated_while_its_condition_is_true() -> None:
    run = started(step("poll", {"poll": "!ready", "use": "ready"}, ready=False), noop("use"))

    task(run, "poll").succeed(ready=False)
    task(run, "poll").succeed(ready=False)
    before = run.steps
    task(run, "poll").succeed(ready=True)

    assert before == {"poll": S.STARTING}
    assert iterations(run, "poll") == [1, 2, 3]
    assert run.steps == {"poll": S.SUCCEEDED, "use": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_every_iteration_begins_with_a_first_attempt() -> None:
    run = started(step("poll", {"poll": "!ready"}, ready=False))
    task(run, "poll").fail()
    run.engine.advance(MINUTE_MS)
    task(run, "poll").succeed(ready=False)

    found = task(run, "poll").task

    assert (found.iteration, found.attempt) == (2, 1)
    assert run.step_rows()["poll"].retries == {}


def test_polling_with_a_sleep_waits_between_the_iterations() -> None:
    run = started(step("ask", "wait", ready=False), pause("wait", {"ask": "!ask__ready", "use": "true"}), noop("use"))

    task(run, "ask").succeed(ready=False)
    run.engine.advance(59_999)
    before = len(run.engine.tasks(run))
    run.engine.advance(1)
    task(run, "ask").succeed(ready=True)
    run.engine.advance(MINUTE_MS)

    assert before == 1
    assert iterations(run, "ask") == [1, 2]
    assert run.status is I.SUCCEEDED


def test_a_sleep_of_no_time_may_lead_to_itself() -> None:
    run = started(pause("a", {"a": "n < 5"}, seconds=0, n="=params.getFromStep('step_instance_id')"))

    assert iterations(run, "a") == [1, 2, 3, 4, 5]
    assert run.status is I.SUCCEEDED


def test_a_loop_that_is_never_repeated_runs_once() -> None:
    run = started(noop("a", {"a": "false", "b": "true"}), noop("b"))

    assert iterations(run, "a") == [1]
    assert loops(run) == {"a": 1}


def test_a_loop_that_nothing_leads_to_is_unsatisfied_as_a_whole() -> None:
    run = started(noop("a", {"b": "false"}), noop("b", "c"), noop("c", {"b": "true", "d": "true"}), noop("d"))

    assert run.steps == {"a": S.SUCCEEDED, "b": S.UNSATISFIED, "c": S.UNSATISFIED, "d": S.UNSATISFIED}
    assert run.status is I.SUCCEEDED


# Review and fix -------------------------------------------------------------------------------------------------------


def review(**more: Any) -> RunHandle:
    """Work is reviewed and fixed until it is good."""
    return started(
        noop("draft", "review"),
        step("review", {"fix": "!good", "publish": "good"}, good=False),
        step("fix", {"review": "true"}, patch=0),
        noop("publish"),
        **more,
    )


def test_work_is_fixed_until_the_review_is_good() -> None:
    run = review()

    for _ in range(2):
        task(run, "review").succeed(good=False)
        task(run, "fix").succeed(patch=1)
    task(run, "review").succeed(good=True)

    assert iterations(run, "review") == [1, 2, 3]
    assert iterations(run, "fix") == [1, 2, 3]
    assert run.steps["fix"] is S.UNSATISFIED
    assert run.steps["publish"] is S.SUCCEEDED
    assert run.status is I.SUCCEEDED


def test_what_leads_out_of_a_loop_counts_only_when_the_loop_ends() -> None:
    run = started(step("a", {"b": "true", "out": "true"}, more=False), step("b", {"a": "a__more"}), noop("out"))

    task(run, "a").succeed(more=True)
    before = run.steps
    succeed(run, "b")
    task(run, "a").succeed(more=False)
    between = run.steps
    succeed(run, "b")

    assert "out" not in before
    assert "out" not in between
    assert run.steps["out"] is S.SUCCEEDED


def test_of_what_leads_out_of_a_loop_the_last_iteration_counts() -> None:
    run = started(step("a", {"a": "n < 2", "out": "n < 2"}, n=0), noop("out"))

    task(run, "a").succeed(n=1)
    task(run, "a").succeed(n=2)

    assert run.steps == {"a": S.SUCCEEDED, "out": S.UNSATISFIED}


def test_a_step_after_a_loop_waits_for_all_that_leads_to_it() -> None:
    run = started(step("a", {"a": "more", "out": "true"}, more=False), step("b", "out"), noop("out"))

    task(run, "a").succeed(more=False)
    before = run.steps
    succeed(run, "b")

    assert "out" not in before
    assert run.steps["out"] is S.SUCCEEDED


def test_two_edges_that_lead_out_to_one_step_are_both_counted() -> None:
    run = started(noop("a", {"b": "true", "out": "false"}), noop("b", {"a": "false", "out": "true"}), noop("out"))

    assert run.steps["out"] is S.SUCCEEDED


def test_a_loop_with_branches_waits_for_all_of_them_before_it_is_repeated() -> None:
    run = started(
        noop("head", "left", "right"), step("left", {"head": "more"}, more=False), step("right", {"head": "false"})
    )

    task(run, "left").succeed(more=True)
    before = iterations(run, "head")
    succeed(run, "right")

    assert before == [1]
    assert iterations(run, "head") == [1, 2]


def test_a_branch_that_leads_back_repeats_the_steps_beside_it_too() -> None:
    run = started(
        noop("head", "left", "right"),
        step("left", "tail", more=False),
        step("right", "tail"),
        noop("tail", {"head": "left__more"}),
    )

    task(run, "left").succeed(more=True)
    succeed(run, "right")
    task(run, "left").succeed(more=False)
    succeed(run, "right")

    assert iterations(run, "right") == [1, 2]
    assert run.status is I.SUCCEEDED


def test_an_iteration_reads_what_the_one_before_it_left() -> None:
    run = review()
    task(run, "review").succeed(good=False)
    task(run, "fix").succeed(patch=7)

    assert run.params("fix") == {"patch": 7}
    assert task(run, "review").task.iteration == 2


# Nesting --------------------------------------------------------------------------------------------------------------


def nested() -> RunHandle:
    """An outer loop of `a` to `c`, in it an inner one of `b`."""
    return started(
        step("a", "b"), step("b", {"b": "more", "c": "true"}, more=False), step("c", {"a": "more"}, more=False)
    )


def test_an_inner_loop_begins_anew_in_every_iteration_of_the_outer_one() -> None:
    run = nested()

    for again in (True, False):
        succeed(run, "a")
        task(run, "b").succeed(more=True)
        task(run, "b").succeed(more=False)
        task(run, "c").succeed(more=again)

    assert iterations(run, "a") == [1, 2]
    assert iterations(run, "b") == [1, 2, 3, 4]
    assert iterations(run, "c") == [1, 2]
    assert run.status is I.SUCCEEDED


def test_tasks_of_an_inner_loop_have_idempotency_keys_that_differ_over_the_outer_iterations() -> None:
    run = nested()
    for again in (True, False):
        succeed(run, "a")
        task(run, "b").succeed(more=False)
        task(run, "c").succeed(more=again)

    keys = [one.task.idempotency_key for one in run.engine.tasks(run)]

    assert len(keys) == len(set(keys)) == 6


def test_an_edge_out_of_two_loops_counts_when_the_outer_one_ends() -> None:
    run = started(
        noop("a", "b"),
        step("b", {"b": "more", "c": "true", "out": "true"}, more=False),
        step("c", {"a": "more"}, more=False),
        noop("out"),
    )

    task(run, "b").succeed(more=False)
    task(run, "c").succeed(more=True)
    before = run.steps
    task(run, "b").succeed(more=False)
    task(run, "c").succeed(more=False)

    assert "out" not in before
    assert run.steps["out"] is S.SUCCEEDED


def test_two_loops_one_after_the_other_end_one_after_the_other() -> None:
    run = started(step("a", {"a": "more", "b": "true"}, more=False), step("b", {"b": "more"}, more=False))

    task(run, "a").succeed(more=True)
    task(run, "a").succeed(more=False)
    task(run, "b").succeed(more=True)
    task(run, "b").succeed(more=False)

    assert loops(run) == {"a": 2, "b": 2}
    assert run.status is I.SUCCEEDED


# What goes wrong inside -----------------------------------------------------------------------------------------------


def test_a_failure_inside_a_loop_ends_the_run_and_the_loop_is_not_left() -> None:
    run = review()
    task(run, "review").succeed(good=False)

    fail(run, "fix")

    assert run.steps == {"draft": S.SUCCEEDED, "review": S.SUCCEEDED, "fix": S.FATALLY_FAILED}
    assert loops(run) == {}
    assert run.status is I.FAILED


def test_a_failure_inside_a_loop_may_be_mended_while_other_steps_run() -> None:
    run = started(step("a", {"a": "more", "out": "true"}, more=False), noop("out"), step("other"))
    task(run, "a").succeed(more=True)
    fail(run, "a")

    run.restart(SPECIFIC, step_id="a")
    task(run, "a").succeed(more=True)

    assert task(run, "a").task.iteration == 3


def test_an_ignored_failure_inside_a_loop_repeats_it_if_its_condition_says_so() -> None:
    run = started(step("a", {"a": "true"}, failure_mode="IGNORE_FAILURE"))

    fail(run, "a")

    assert iterations(run, "a") == [1, 2]


def test_a_skipped_step_inside_a_loop_evaluates_its_edge_back() -> None:
    run = started(step("a", {"a": "more", "out": "!more"}, more=False), noop("out"))
    task(run, "a").succeed(more=True)

    run.act("a", Action.SKIP)

    assert run.steps == {"a": S.SKIPPED, "out": S.SUCCEEDED}


def test_stopping_an_instance_ends_its_loops() -> None:
    run = nested()
    succeed(run, "a")

    run.stop()

    assert run.steps == {"a": S.SUCCEEDED, "b": S.STOPPED}
    assert run.status is I.STOPPED


# Restarts inside ------------------------------------------------------------------------------------------------------


def test_a_restart_inside_a_loop_goes_on_in_its_iteration() -> None:
    run = review()
    task(run, "review").succeed(good=False)
    task(run, "fix").succeed(patch=1)
    task(run, "review").succeed(good=False)
    fail(run, "fix")

    run.restart(INCOMPLETE)
    restarted = task(run, "fix").task
    succeed(run, "fix")
    task(run, "review").succeed(good=True)

    assert (restarted.run_id, restarted.iteration) == (2, 2)
    assert task(run, "review").task.iteration == 3
    assert run.steps["publish"] is S.SUCCEEDED
    assert run.status is I.SUCCEEDED


def test_what_leads_out_of_a_loop_from_a_step_that_does_not_run_again_counts_when_the_loop_ends() -> None:
    run = started(noop("a", "b", "out"), step("b", {"a": "false"}), noop("out"))
    fail(run, "b")

    run.restart(INCOMPLETE)
    before = run.steps
    succeed(run, "b")

    assert "out" not in before
    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "out": S.SUCCEEDED}


def test_an_edge_back_that_was_true_before_the_failure_still_repeats_the_loop_after_a_restart() -> None:
    run = started(
        step("head", "left", "right", n=0),
        noop("left", {"head": "head__n < 2"}),
        step("right", {"head": "false", "out": "true"}),
        noop("out"),
    )
    task(run, "head").succeed(n=1)
    fail(run, "right")

    run.restart(INCOMPLETE)
    succeed(run, "right")
    before = run.steps
    task(run, "head").succeed(n=2)
    succeed(run, "right")

    assert before == {"head": S.STARTING}
    assert iterations(run, "head") == [1, 2]
    assert run.status is I.SUCCEEDED


def test_an_edge_back_of_a_step_that_runs_again_counts_only_as_it_is_decided_anew() -> None:
    run = started(step("a", "b"), step("b", "c", {"a": "more"}, more=False), step("c", {"a": "false"}))
    succeed(run, "a")
    task(run, "b").succeed(more=True)
    fail(run, "c")

    run.restart(SPECIFIC, step_id="b")
    task(run, "b").succeed(more=False)
    succeed(run, "c")

    assert iterations(run, "a") == [1]
    assert run.status is I.SUCCEEDED


def test_a_restart_at_the_first_step_of_a_loop_begins_it_anew() -> None:
    run = review()
    task(run, "review").succeed(good=False)
    succeed(run, "fix")
    fail(run, "review")

    run.restart(INCOMPLETE)

    assert task(run, "review").task.iteration == 1


def test_a_restart_of_an_inner_step_keeps_the_iteration_of_the_outer_loop() -> None:
    run = nested()
    succeed(run, "a")
    task(run, "b").succeed(more=False)
    task(run, "c").succeed(more=True)
    succeed(run, "a")
    task(run, "b").succeed(more=False)
    fail(run, "c")

    run.restart(INCOMPLETE)
    task(run, "c").succeed(more=True)

    assert task(run, "a").task.iteration == 3


def test_a_restart_from_a_step_of_a_loop_that_has_ended_opens_it_again() -> None:
    run = review()
    task(run, "review").succeed(good=False)
    succeed(run, "fix")
    task(run, "review").succeed(good=True)

    run.restart(SPECIFIC, step_id="review")
    task(run, "review").succeed(good=True)

    assert run.steps["publish"] is S.SUCCEEDED
    assert run.status is I.SUCCEEDED


def test_a_step_that_a_restart_skips_is_skipped_once_and_not_in_later_iterations() -> None:
    run = started(
        noop("a", "b"), step("b", "c"), noop("c", {"a": "params.getFromStep('b', 'MAESTRO_STEP_STATUS') == 'SKIPPED'"})
    )
    fail(run, "b")

    run.act("b", Action.SKIP)

    assert [one.statuses[-1] for one in run.changes("b")][-2:] == [S.SKIPPED, S.STARTING]


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_loop_ends_in_failure_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops_of_runs, "ITERATIONS_MAX", 5)

    run = started(noop("a", {"a": "true"}))

    assert iterations(run, "a") == [1, 2, 3, 4, 5]
    assert run.steps == {"a": S.INTERNALLY_FAILED}
    assert "within 5 iterations" in reason(run, "a")
    assert run.status is I.FAILED


def test_the_last_iteration_that_is_allowed_may_leave_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops_of_runs, "ITERATIONS_MAX", 5)

    run = started(noop("a", {"a": "n < 5", "out": "true"}, n="=params.getFromStep('step_instance_id')"), noop("out"))

    assert loops(run) == {"a": 5}
    assert run.status is I.SUCCEEDED


def test_the_limit_of_iterations_is_that_of_a_while_loop() -> None:
    assert loops_of_runs.ITERATIONS_MAX == 25_000


def test_a_loop_of_thousands_of_iterations_is_done_in_parts_and_none_is_lost() -> None:
    run = started(noop("a", {"a": "n < 3000", "out": "true"}, n="=params.getFromStep('step_instance_id')"), noop("out"))

    assert iterations(run, "a") == list(range(1, 3_001))
    assert run.steps == {"a": S.SUCCEEDED, "out": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED
