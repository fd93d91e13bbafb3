"""Time-outs: of an attempt, from the moment that its work is given out, and of a run, from its beginning."""

import pytest

from kapelle.schemas.contracts import Action
from tests.unit.runs.flows import (
    DAY_MS,
    INCOMPLETE,
    MINUTE_MS,
    I,
    S,
    fail,
    noop,
    param,
    passed,
    pause,
    pushed,
    reason,
    started,
    step,
    succeed,
    task,
)

TWICE = {"timeout_retry_limit": 1}


# Steps ----------------------------------------------------------------------------------------------------------------


def test_an_attempt_that_takes_too_long_is_timed_out() -> None:
    run = started(step("a", "b", timeout=60), noop("b"))

    run.engine.advance(MINUTE_MS - 1)
    before = run.steps
    run.engine.advance(1)

    assert before == {"a": S.STARTING}
    assert run.steps == {"a": S.TIMED_OUT}
    assert run.status is I.TIMED_OUT
    assert "longer than its time-out" in reason(run, "a")


def test_the_time_of_an_attempt_counts_from_its_own_start_and_not_from_that_of_the_run() -> None:
    run = started(step("a", "b"), step("b", timeout=60))
    run.engine.advance(10 * MINUTE_MS)
    succeed(run, "a")

    run.engine.advance(MINUTE_MS - 1)

    assert run.steps["b"] is S.STARTING


def test_a_worker_that_begins_does_not_move_the_time_out() -> None:
    run = started(step("a", timeout=20))
    run.engine.advance(10_000)
    task(run, "a").begin()

    run.engine.advance(10_000)

    assert run.steps == {"a": S.TIMED_OUT}


def test_each_attempt_has_a_time_of_its_own() -> None:
    run = started(step("a", timeout=60, retry_policy=TWICE))
    run.engine.advance(2 * MINUTE_MS)
    begun_at_ms = run.step_rows()["a"].started_at_ms or 0

    run.engine.advance(begun_at_ms + MINUTE_MS - 1 - run.engine.clock.now_ms)
    before = run.steps
    run.engine.advance(1)

    assert before == {"a": S.STARTING}
    assert run.steps == {"a": S.TIMED_OUT}


def test_a_time_out_with_retries_left_is_tried_again() -> None:
    run = started(step("a", timeout=60, retry_policy=TWICE))

    run.engine.advance(MINUTE_MS)

    assert passed(run, "a")[-1] is S.TIMEOUT_FAILED
    assert run.step_rows()["a"].retries == {"timeout": 1}


def test_the_task_of_a_timed_out_attempt_is_taken_back_before_the_next_is_given_out() -> None:
    run = started(step("a", timeout=60, retry_policy=TWICE))

    run.engine.advance(3 * MINUTE_MS)
    cancelled, second = run.engine.cancelled()[0], task(run, "a").task

    assert (cancelled.token, cancelled.action) == (run.engine.tasks(run)[0].task.token, Action.TIME_OUT)
    assert second.attempt == 2
    assert cancelled.at_ms < second.at_ms


def test_the_task_of_the_last_attempt_is_taken_back_too() -> None:
    run = started(step("a", timeout=60))

    run.engine.advance(MINUTE_MS)

    assert [one.action for one in run.engine.cancelled()] == [Action.TIME_OUT]


def test_a_sleep_longer_than_its_time_out_is_timed_out() -> None:
    run = started(pause("a", seconds=120, timeout=60))

    run.engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.TIMED_OUT}
    assert run.engine.runtime.next_due_at_ms() is None


def test_a_sleep_that_is_tried_again_after_a_time_out_sleeps_anew() -> None:
    run = started(pause("a", seconds=120, timeout=60, retry_policy=TWICE))

    run.engine.advance(5 * MINUTE_MS)

    assert [one.statuses[-1] for one in run.changes("a")] == [S.RUNNING, S.TIMEOUT_FAILED, S.RUNNING, S.TIMED_OUT]


def test_a_step_that_is_done_is_not_timed_out_later() -> None:
    run = started(step("a", timeout=60), step("b"))
    succeed(run, "a")

    run.engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.SUCCEEDED, "b": S.STARTING}


def test_the_time_out_of_a_step_may_be_a_parameter_of_the_workflow() -> None:
    run = started(step("a", timeout="${minutes}min"), params={"minutes": 2})

    run.engine.advance(2 * MINUTE_MS)

    assert run.steps == {"a": S.TIMED_OUT}


def test_a_time_out_of_a_step_that_turns_out_unreadable_leaves_that_of_the_run() -> None:
    engine = pushed(step("a", timeout="${wait}"), params={"wait": "2min"})
    run = engine.start("flow", run_params={"wait": param("a while")})

    run.engine.advance(10 * DAY_MS - 1)
    before = run.steps
    run.engine.advance(1)

    assert before == {"a": S.STARTING}
    assert run.status is I.TIMED_OUT


def test_a_task_says_when_it_must_be_done() -> None:
    run = started(step("a", timeout=60), step("b"), timeout=3600)
    now_ms = run.engine.clock.now_ms

    assert task(run, "a").task.deadline_at_ms == now_ms + MINUTE_MS
    assert task(run, "b").task.deadline_at_ms == now_ms + 60 * MINUTE_MS


# Runs -----------------------------------------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_times_out_with_all_its_active_steps() -> None:
    steps = (noop("a"), step("b", "c", lease_seconds=3600), pause("d", seconds=3600), noop("c"), step("e"))
    run = started(*steps, timeout="1min")
    task(run, "b").begin()
    run.engine.advance(50_000)
    task(run, "e").fail()

    run.engine.advance(10_000)

    assert run.steps == {"a": S.SUCCEEDED, "b": S.TIMED_OUT, "d": S.TIMED_OUT, "e": S.TIMED_OUT}
    assert run.status is I.TIMED_OUT


def test_a_run_that_takes_too_long_takes_its_tasks_back() -> None:
    run = started(step("a"), timeout=60)

    run.engine.advance(MINUTE_MS)

    assert [(one.step_id, one.action) for one in run.engine.cancelled()] == [("a", Action.TIME_OUT)]


def test_a_run_that_takes_too_long_is_timed_out_even_if_a_step_has_failed() -> None:
    run = started(step("a"), step("b"), timeout=60)
    fail(run, "a")

    run.engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.FATALLY_FAILED, "b": S.TIMED_OUT}
    assert run.status is I.TIMED_OUT


def test_a_run_that_says_nothing_has_ten_days() -> None:
    run = started(step("a"))

    run.engine.advance(10 * DAY_MS - 1)
    before = run.status
    run.engine.advance(1)

    assert before is I.IN_PROGRESS
    assert run.status is I.TIMED_OUT


def test_a_run_that_has_ended_leaves_no_timer_behind() -> None:
    run = started(step("a", timeout=60), step("b"))
    task(run, "b").begin()

    succeed(run, "a", "b")

    assert run.engine.runtime.next_due_at_ms() is None


def test_a_restarted_run_has_its_whole_time_again() -> None:
    run = started(step("a"), timeout=60)
    run.engine.advance(MINUTE_MS)

    run.restart(INCOMPLETE)
    run.engine.advance(MINUTE_MS - 1)

    assert run.status is I.IN_PROGRESS


@pytest.mark.parametrize("written", ["1min", "${wait}"])
def test_the_time_out_of_a_run_may_be_text(written: str) -> None:
    run = started(step("a"), timeout=written, params={"wait": "60 s"})

    run.engine.advance(MINUTE_MS)

    assert run.status is I.TIMED_OUT
