"""The life of a step: which states it passes, when it is created, which conditions let it run, and how a run ends."""

from collections.abc import Callable

import pytest

from kapelle.schemas.contracts import Action
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import (
    ONCE,
    UNTIL_STARTING,
    I,
    S,
    fail,
    noop,
    passed,
    pause,
    pushed,
    reason,
    started,
    step,
    succeed,
    task,
    value_of,
)

# States ---------------------------------------------------------------------------------------------------------------


def test_a_step_of_the_engine_passes_every_state_in_one_decision() -> None:
    run = started(noop("a"))

    assert [one.statuses for one in run.changes("a")] == [(*UNTIL_STARTING, S.RUNNING, S.FINISHING, S.SUCCEEDED)]


def test_a_step_of_a_worker_waits_as_starting_until_the_worker_speaks() -> None:
    run = started(step("a"))

    assert passed(run, "a") == list(UNTIL_STARTING)
    assert run.status is I.IN_PROGRESS


def test_a_step_is_running_once_its_worker_has_begun() -> None:
    run = started(step("a"))

    task(run, "a").begin()

    assert run.steps == {"a": S.RUNNING}


def test_a_step_whose_worker_answers_passes_running_and_finishing() -> None:
    run = started(step("a"))

    succeed(run, "a")

    assert passed(run, "a") == [*UNTIL_STARTING, S.RUNNING, S.FINISHING, S.SUCCEEDED]


def test_a_sleep_runs_for_as_long_as_it_says() -> None:
    run = started(pause("a", "b", seconds=60), noop("b"))

    run.engine.advance(59_999)
    before = run.steps
    run.engine.advance(1)

    assert before == {"a": S.RUNNING}
    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED}


def test_a_sleep_of_no_time_is_over_at_once() -> None:
    run = started(pause("a", seconds=0))

    assert run.status is I.SUCCEEDED


def test_a_sleep_that_says_nothing_takes_three_seconds() -> None:
    run = started(step("a", type="Sleep"))

    run.engine.advance(2_999)
    before = run.status
    run.engine.advance(1)

    assert before is I.IN_PROGRESS
    assert run.status is I.SUCCEEDED


def test_a_sleep_longer_than_any_run_ends_with_the_run() -> None:
    run = started(pause("a", seconds=2**63 - 1))

    run.engine.advance(10 * 86_400_000)

    assert run.steps == {"a": S.TIMED_OUT}


def test_times_of_an_attempt_are_those_of_its_changes() -> None:
    run = started(step("a", "b"), step("b"))
    run.engine.advance(1_000)
    succeed(run, "a")
    run.engine.advance(500)
    task(run, "b").begin()

    row = run.step_rows()["b"]

    assert row.created_at_ms == row.started_at_ms == run.step_rows()["a"].changed_at_ms
    assert row.changed_at_ms == row.created_at_ms + 500


def test_attempts_are_numbered_in_the_order_in_which_they_are_made() -> None:
    run = started(step("a", "c"), step("b"), step("c"))
    succeed(run, "a")

    assert {name: row.sequence for name, row in run.step_rows().items()} == {"a": 1, "b": 2, "c": 3}


# What is created, and when --------------------------------------------------------------------------------------------


def test_every_step_without_predecessors_begins_at_once() -> None:
    run = started(step("a"), step("b"))

    assert run.steps == {"a": S.STARTING, "b": S.STARTING}


def test_a_step_is_not_created_before_its_predecessor_is_complete() -> None:
    run = started(step("a", "b"), step("b"))
    task(run, "a").begin()

    assert run.steps == {"a": S.RUNNING}


def test_a_join_is_created_when_all_before_it_are_complete() -> None:
    run = started(step("a", "c"), step("b", "c"), step("c"))

    succeed(run, "a")
    before = run.steps
    succeed(run, "b")

    assert "c" not in before
    assert run.steps["c"] is S.STARTING


def test_a_join_runs_if_one_condition_towards_it_is_true() -> None:
    run = started(noop("a", {"c": "false"}), noop("b", {"c": "1 < 2"}), noop("c"))

    assert run.steps["c"] is S.SUCCEEDED


def test_a_join_with_no_true_condition_is_unsatisfied() -> None:
    run = started(noop("a", {"c": "false"}), noop("b", {"c": "1 > 2"}), noop("c"))

    assert passed(run, "c") == [S.CREATED, S.UNSATISFIED]


def test_a_true_condition_does_not_run_a_join_before_the_others_are_complete() -> None:
    run = started(noop("a", "c"), step("b", {"c": "false"}), noop("c"))

    before = run.steps
    succeed(run, "b")

    assert "c" not in before
    assert run.steps["c"] is S.SUCCEEDED


def test_an_unsatisfied_step_makes_all_its_conditions_false() -> None:
    run = started(noop("a", {"b": "false"}), noop("b", "c"), noop("c", "d"), noop("d"))

    assert run.steps == {"a": S.SUCCEEDED, "b": S.UNSATISFIED, "c": S.UNSATISFIED, "d": S.UNSATISFIED}
    assert run.step_rows()["b"].successors == {"c": False}


def test_a_run_of_nothing_but_unsatisfied_ends_succeeds() -> None:
    run = started(noop("a", {"b": "false"}), noop("b"))

    assert run.status is I.SUCCEEDED


def test_only_one_of_two_branches_runs_and_the_join_after_them_does() -> None:
    run = started(
        noop("a", {"left": "x > 1", "right": "x <= 1"}, x=5), noop("left", "end"), noop("right", "end"), noop("end")
    )

    assert run.steps == {"a": S.SUCCEEDED, "left": S.SUCCEEDED, "right": S.UNSATISFIED, "end": S.SUCCEEDED}


def test_what_comes_after_a_failed_step_is_never_created() -> None:
    run = started(step("a", "b"), noop("b", "c"), noop("c"))

    fail(run, "a")

    assert run.steps == {"a": S.FATALLY_FAILED}
    assert run.status is I.FAILED


def test_a_join_behind_a_failed_step_is_never_created() -> None:
    run = started(step("a", "c"), step("b", "c"), noop("c"))

    fail(run, "a")
    succeed(run, "b")

    assert "c" not in run.steps
    assert run.status is I.FAILED


# Conditions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("true", True),
        ("return true;", True),
        ("false", False),
        ("rows > 2", True),
        ("rows > 3", False),
        ("limit == 7", True),
        ("first__size == 40", True),
        ("a__rows == 3", True),
        ("params.get('limit') == 7", True),
        ("params.getFromStep('first', 'size') == 40", True),
        ("params.getFromStep('step_id') == 'a'", True),
        ("params.getFromStep('first', 'MAESTRO_STEP_STATUS') == 'SUCCEEDED'", True),
        ("params.getFromInstance('workflow_id') == 'flow'", True),
    ],
)
def test_a_condition_sees_the_step_the_workflow_and_the_steps_before(condition: str, holds: bool) -> None:
    run = started(noop("first", "a", size=40), noop("a", {"b": condition}, rows=3), noop("b"), params={"limit": 7})

    assert run.step_rows()["a"].successors == {"b": holds}
    assert run.steps["b"] is (S.SUCCEEDED if holds else S.UNSATISFIED)


def test_a_condition_sees_what_the_worker_answered() -> None:
    run = started(step("a", {"b": "rows > 100"}, rows=0), noop("b"))

    task(run, "a").succeed(rows=101)

    assert run.steps["b"] is S.SUCCEEDED


def test_a_parameter_of_the_step_hides_that_of_the_workflow() -> None:
    run = started(noop("a", {"b": "x == 2"}, x=2), noop("b"), params={"x": 1})

    assert run.steps["b"] is S.SUCCEEDED


# A push rehearses its conditions, so these go wrong only with what the worker answers.
@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("if (rows == 0) return 1; return true;", "true or false"),
        ("if (rows == 0) return late__rows == 1; return true;", "late__rows"),
        ("100 / rows == 1", "expression failed"),
        ("rows == 1 || params.getFromStep('late', 'rows') == 1", "expression failed"),
        ("Long i = 0; while (rows == 0) { i = i + 1; } return i == 0;", "expression failed"),
    ],
)
def test_a_condition_that_cannot_be_evaluated_fails_the_step_with_the_reason(condition: str, text: str) -> None:
    run = started(step("a", {"b": condition}, rows=1), noop("b", "late"), noop("late", rows=1))

    task(run, "a").succeed(rows=0)

    assert passed(run, "a")[-2:] == [S.FINISHING, S.INTERNALLY_FAILED]
    assert text in reason(run, "a")
    assert run.status is I.FAILED


def test_a_failed_condition_is_not_softened_by_the_failure_mode() -> None:
    run = started(step("a", {"b": "100 / rows == 1"}, rows=1, failure_mode="IGNORE_FAILURE"), noop("b"))

    task(run, "a").succeed(rows=0)

    assert run.steps == {"a": S.INTERNALLY_FAILED}


def test_conditions_of_a_step_that_completed_with_an_error_count() -> None:
    run = started(step("a", {"b": "x == 1", "c": "x == 2"}, x=1, failure_mode="IGNORE_FAILURE"), noop("b"), noop("c"))

    fail(run, "a")

    assert run.steps == {"a": S.COMPLETED_WITH_ERROR, "b": S.SUCCEEDED, "c": S.UNSATISFIED}


# How runs end ---------------------------------------------------------------------------------------------------------


def test_a_run_succeeds_when_its_last_step_does() -> None:
    run = started(step("a"), step("b"))

    succeed(run, "a")
    before = run.status
    succeed(run, "b")

    assert before is I.IN_PROGRESS
    assert run.status is I.SUCCEEDED


def test_a_run_goes_on_while_a_failed_step_waits_for_its_retry() -> None:
    run = started(step("a"))

    task(run, "a").fail()

    assert run.status is I.IN_PROGRESS


def time_out(run: RunHandle, _step_id: str) -> None:
    run.engine.advance(60_000)


def stop(run: RunHandle, step_id: str) -> None:
    run.act(step_id, Action.STOP)


def pass_over(run: RunHandle, step_id: str) -> None:
    run.act(step_id, Action.SKIP)


ENDS: dict[S, Callable[[RunHandle, str], None]] = {
    S.SUCCEEDED: succeed,
    S.FATALLY_FAILED: fail,
    S.STOPPED: stop,
    S.SKIPPED: pass_over,
    S.TIMED_OUT: time_out,
}


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (S.SUCCEEDED, S.SUCCEEDED, I.SUCCEEDED),
        (S.SUCCEEDED, S.SKIPPED, I.SUCCEEDED),
        (S.SUCCEEDED, S.STOPPED, I.STOPPED),
        (S.SUCCEEDED, S.TIMED_OUT, I.TIMED_OUT),
        (S.STOPPED, S.TIMED_OUT, I.TIMED_OUT),
        (S.FATALLY_FAILED, S.SUCCEEDED, I.FAILED),
        (S.FATALLY_FAILED, S.STOPPED, I.FAILED),
        (S.FATALLY_FAILED, S.TIMED_OUT, I.FAILED),
    ],
)
def test_the_worst_state_of_a_step_is_that_of_the_run(first: S, second: S, status: I) -> None:
    run = started(step("a", retry_policy=ONCE), step("b", retry_policy=ONCE, timeout="60 s"))

    ENDS[first](run, "a")
    ENDS[second](run, "b")

    assert run.steps == {"a": first, "b": second}
    assert run.status is status


def test_a_start_that_comes_twice_runs_once() -> None:
    engine = pushed(noop("a"))

    one = engine.start("flow", request_id="same")
    two = engine.start("flow", request_id="same")

    assert one.key == two.key
    assert len(one.changes("a")) == 1


def test_two_instances_know_nothing_of_each_other() -> None:
    engine = pushed(step("a", rows=0))
    one, two = engine.start("flow"), engine.start("flow")

    task(one, "a").succeed(rows=1)
    task(two, "a").succeed(rows=2)

    assert value_of(one, "a", "rows") == 1
    assert value_of(two, "a", "rows") == 2
