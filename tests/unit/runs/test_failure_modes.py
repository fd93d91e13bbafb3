"""What becomes of a run when one of its steps has failed for good."""

import pytest

from kapelle.schemas.contracts import Action, Report
from tests.unit.runs.flows import ONCE, I, S, fail, noop, passed, pause, reason, started, step, succeed, task


def test_after_a_failure_the_other_branches_run_to_their_end_by_default() -> None:
    run = started(step("a", "b"), noop("b"), step("c", "d"), noop("d"))

    fail(run, "a")
    before = run.status
    succeed(run, "c")

    assert before is I.IN_PROGRESS
    assert run.steps == {"a": S.FATALLY_FAILED, "c": S.SUCCEEDED, "d": S.SUCCEEDED}
    assert run.status is I.FAILED


def test_an_ignored_failure_is_complete_and_the_run_goes_on() -> None:
    run = started(step("a", "b", failure_mode="IGNORE_FAILURE"), noop("b"))

    fail(run, "a", "it broke")

    assert run.steps == {"a": S.COMPLETED_WITH_ERROR, "b": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED
    assert reason(run, "a") == "it broke"


def test_an_ignored_failure_is_first_tried_again() -> None:
    run = started(step("a", failure_mode="IGNORE_FAILURE"))

    task(run, "a").fail()

    assert run.steps == {"a": S.USER_FAILED}


def test_what_comes_after_an_ignored_failure_reads_the_parameters_that_the_step_began_with() -> None:
    run = started(step("a", "b", failure_mode="IGNORE_FAILURE", x=3), step("b", y="=a__x * 2"))

    fail(run, "a")

    assert task(run, "b").params["y"] == 6


def test_a_failure_that_ends_all_stops_every_other_step_that_is_active() -> None:
    run = started(step("a", failure_mode="FAIL_IMMEDIATELY"), step("b"), pause("c"), step("d"), noop("e"))
    task(run, "d").fail()

    fail(run, "a", "it broke")

    assert run.steps == {"a": S.FATALLY_FAILED, "b": S.STOPPED, "c": S.STOPPED, "d": S.STOPPED, "e": S.SUCCEEDED}
    assert run.status is I.FAILED
    assert reason(run, "b") == "Step 'a' failed: it broke"


def test_a_failure_that_ends_all_takes_tasks_back() -> None:
    run = started(step("a", failure_mode="FAIL_IMMEDIATELY"), step("b"))

    fail(run, "a")

    assert [(one.step_id, one.action) for one in run.engine.cancelled()] == [("b", Action.STOP)]


def test_a_failure_that_ends_all_leaves_no_timer_behind() -> None:
    run = started(step("a", failure_mode="FAIL_IMMEDIATELY"), pause("b"), step("c"))
    task(run, "c").fail()

    fail(run, "a")

    assert run.engine.runtime.next_due_at_ms() is None


# What the modes do not soften -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
def test_a_time_out_is_not_softened_nor_spread_by_the_failure_mode(mode: str) -> None:
    run = started(step("a", "b", failure_mode=mode, timeout=60), noop("b"), step("c"))

    run.engine.advance(60_000)

    assert run.steps == {"a": S.TIMED_OUT, "c": S.STARTING}


@pytest.mark.parametrize("mode", ["IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
def test_a_stop_is_not_softened_nor_spread_by_the_failure_mode(mode: str) -> None:
    run = started(step("a", "b", failure_mode=mode), noop("b"), step("c"))

    run.act("a", Action.STOP)

    assert run.steps == {"a": S.STOPPED, "c": S.STARTING}


def test_parameters_that_cannot_be_evaluated_are_not_softened_by_the_failure_mode() -> None:
    run = started(step("a", "b", rows=1), step("b", "c", failure_mode="IGNORE_FAILURE", x="=1 / a__rows"), noop("c"))

    task(run, "a").succeed(rows=0)

    assert run.steps == {"a": S.SUCCEEDED, "b": S.INTERNALLY_FAILED}


# Kills ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        ("FAIL_AFTER_RUNNING", {"a": S.FATALLY_FAILED, "c": S.STARTING}),
        ("IGNORE_FAILURE", {"a": S.COMPLETED_WITH_ERROR, "b": S.SUCCEEDED, "c": S.STARTING}),
        ("FAIL_IMMEDIATELY", {"a": S.FATALLY_FAILED, "c": S.STOPPED}),
    ],
)
def test_the_kill_of_a_step_fails_it_and_its_failure_mode_holds(mode: str, steps: dict[str, S]) -> None:
    run = started(step("a", "b", failure_mode=mode), noop("b"), step("c"))

    run.act("a", Action.KILL)

    assert run.steps == steps


@pytest.mark.parametrize("mode", ["FAIL_AFTER_RUNNING", "IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
def test_the_kill_of_an_instance_fails_its_steps_whatever_their_failure_modes(mode: str) -> None:
    run = started(step("a", "b", failure_mode=mode), noop("b"), step("c", failure_mode=mode))

    run.stop(Action.KILL)

    assert run.steps == {"a": S.FATALLY_FAILED, "c": S.FATALLY_FAILED}
    assert run.status is I.FAILED


def test_the_stop_of_an_instance_stops_its_steps_and_creates_no_more() -> None:
    run = started(step("a", "b"), noop("b"), pause("c"))

    run.stop(Action.STOP, "enough")

    assert run.steps == {"a": S.STOPPED, "c": S.STOPPED}
    assert run.status is I.STOPPED
    assert reason(run, "a") == "enough"


def test_the_stop_of_an_instance_with_a_failed_step_leaves_it_failed() -> None:
    run = started(step("a", retry_policy=ONCE), step("b"))
    fail(run, "a")

    run.stop()

    assert run.status is I.FAILED


def test_a_stop_that_comes_after_the_end_changes_nothing() -> None:
    run = started(noop("a"))

    run.stop()

    assert run.steps == {"a": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_a_worker_that_says_that_it_stopped_stops_the_step() -> None:
    run = started(step("a", "b"), noop("b"))

    task(run, "a").say(Report.STOPPED, message="shutting down")

    assert passed(run, "a")[-1] is S.STOPPED
    assert run.status is I.STOPPED
