"""Restarts around and inside of while: with which round it goes on, and with which values."""

from typing import Any

import pytest

from kapelle.schemas.contracts import Action
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import child, children, foreach, loop_while, restart, row, runs_of, statuses, values
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
    refused,
    started,
    step,
    succeed,
    task,
)


def loop(condition: str = "n < 3", **more: Any) -> Json:
    """A loop that counts, and whose rounds wait for a worker."""
    return loop_while("loop", condition, step("in", n="=n + 1"), first={"n": 0}, **more)


def rounds(run: RunHandle, ends: str, first: int = 1) -> None:
    """End rounds one after the other."""
    for number, how in enumerate(ends, first):
        (fail if how == "x" else succeed)(child(run, "loop", number), "in")


def counts(run: RunHandle) -> list[int]:
    """How often each round has run."""
    return [runs_of(one) for one in children(run, "loop")]


def test_from_the_beginning_it_goes_on_with_the_first_round_and_the_first_values() -> None:
    run = started(loop())
    rounds(run, "..x")

    run.restart(BEGINNING)
    before = row(run, "loop", 1).given, statuses(run, "loop")[0]
    rounds(run, "...")

    assert before == ('{"n":0}', I.IN_PROGRESS)
    assert counts(run) == [2, 2, 2]
    assert run.status is I.SUCCEEDED


def test_from_what_is_incomplete_it_goes_on_with_the_last_round() -> None:
    run = started(loop())
    rounds(run, "..x")

    run.restart(INCOMPLETE)
    rounds(run, ".", 3)

    assert counts(run) == [1, 1, 2]
    assert values(run, "loop", "in", "n") == [1, 2, 3]
    assert run.status is I.SUCCEEDED


def test_a_round_that_runs_again_keeps_its_own_steps_that_are_complete() -> None:
    steps = [noop("first", "in"), step("in", n="=n + 1")]
    run = started(loop_while("loop", "n < 1", *steps, first={"n": 0}))
    rounds(run, "x")

    run.restart(INCOMPLETE)

    assert [one.run_id for one in child(run, "loop").changes("first")] == [1]


def test_a_round_that_was_stopped_runs_again() -> None:
    run = started(loop())
    rounds(run, ".")
    run.stop()

    run.restart(INCOMPLETE)
    rounds(run, "..", 2)

    assert counts(run) == [1, 2, 1]
    assert run.status is I.SUCCEEDED


def test_after_a_condition_without_a_value_the_last_round_runs_again() -> None:
    run = started(loop_while("loop", "10 / n > 0", step("in", n="=n - 1"), first={"n": 1}))
    rounds(run, ".")
    assert run.steps == {"loop": S.FATALLY_FAILED}

    run.restart(INCOMPLETE)

    assert statuses(run, "loop") == [I.IN_PROGRESS]
    assert counts(run) == [2]


def test_a_restart_of_the_loop_step_goes_on_with_the_first_round() -> None:
    run = started(loop())
    rounds(run, "..x")

    run.restart(SPECIFIC, step_id="loop")
    rounds(run, "...")

    assert counts(run) == [2, 2, 2]
    assert run.status is I.SUCCEEDED


def test_a_restart_of_a_loop_step_that_succeeded_runs_all_rounds_again() -> None:
    run = started(loop("n < 2"))
    rounds(run, "..")

    run.restart(SPECIFIC, step_id="loop")
    rounds(run, "..")

    assert counts(run) == [2, 2]
    assert run.status is I.SUCCEEDED


def test_a_failed_loop_step_is_restarted_with_the_first_round_while_others_run() -> None:
    run = started(loop("n < 2"), step("b"))
    rounds(run, ".x")

    run.restart(SPECIFIC, step_id="loop")
    rounds(run, "..")

    assert run.step_rows()["loop"].attempt == 2
    assert counts(run) == [2, 2]
    assert run.steps["loop"] is S.SUCCEEDED


def test_behind_a_step_that_runs_again_a_complete_loop_runs_again() -> None:
    run = started(step("a", "loop"), loop("n < 2"))
    succeed(run, "a")
    rounds(run, "..")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")
    rounds(run, "..")

    assert counts(run) == [2, 2]
    assert run.status is I.SUCCEEDED


def test_behind_a_step_that_runs_again_a_loop_that_is_not_complete_goes_on_with_its_last_round() -> None:
    run = started(step("a", "loop"), loop("n < 2"))
    succeed(run, "a")
    rounds(run, ".x")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS]


# Something inside it --------------------------------------------------------------------------------------------------


def test_a_restart_of_a_round_runs_it_and_all_after_it_with_the_values_recorded_for_it() -> None:
    run = started(loop())
    rounds(run, "...")

    restart(child(run, "loop", 2), BEGINNING)
    before = statuses(run, "loop")[1], row(run, "loop", 2).given
    rounds(run, "..", 2)

    assert before == (I.IN_PROGRESS, '{"n":1}')
    assert counts(run) == [1, 2, 2]
    assert run.status is I.SUCCEEDED


def test_a_round_that_hands_on_other_values_changes_how_often_the_loop_goes_on() -> None:
    output = {"type": "LONG", "value": 0, "mode": "MUTABLE"}
    run = started(loop_while("loop", "n < 3", step("in", n=output), first={"n": 0}))
    for number in (1, 2, 3):
        task(child(run, "loop", number), "in").succeed(n=number)

    restart(child(run, "loop", 2), BEGINNING)
    task(child(run, "loop", 2), "in").succeed(n=9)

    assert run.status is I.SUCCEEDED
    assert counts(run) == [1, 2, 1]


def test_a_restart_of_a_step_of_a_round_runs_that_step_and_all_behind_it() -> None:
    steps = [noop("first", "in"), step("in", n="=n + 1")]
    run = started(loop_while("loop", "n < 2", *steps, first={"n": 0}))
    rounds(run, "..")

    restart(child(run, "loop", 1), SPECIFIC, step_id="in")
    rounds(run, "..")

    assert [one.run_id for one in child(run, "loop", 1).changes("first")] == [1]
    assert run.status is I.SUCCEEDED


def test_a_second_restart_finds_the_latest_run_of_a_round() -> None:
    run = started(loop())
    rounds(run, "..x")
    run.restart(INCOMPLETE)
    rounds(run, "x", 3)
    run.restart(BEGINNING)
    rounds(run, ".x")

    run.restart(INCOMPLETE)
    rounds(run, "..", 2)

    assert counts(run) == [2, 3, 3]
    assert run.status is I.SUCCEEDED


def test_a_restart_of_a_round_while_the_loop_runs_is_refused() -> None:
    run = started(loop())
    rounds(run, ".")

    restart(child(run, "loop", 1), BEGINNING)

    assert "to be a foreach that runs, or to have failed, but it is RUNNING" in refused(run)
    assert counts(run) == [1, 1]


def test_a_restart_of_a_round_of_a_failed_loop_is_another_attempt_while_the_instance_runs() -> None:
    run = started(loop(), step("b"))
    rounds(run, "..x")

    restart(child(run, "loop", 2), BEGINNING)
    rounds(run, "..", 2)

    assert counts(run) == [1, 2, 2]
    assert run.step_rows()["loop"].attempt == 2
    assert run.steps["loop"] is S.SUCCEEDED


def test_run_params_of_a_restart_are_for_the_round_that_is_meant() -> None:
    run = started(loop())
    rounds(run, "..x")

    restart(child(run, "loop", 3), INCOMPLETE, run_params={"n": param(7)})

    assert task(child(run, "loop", 3), "in").params["n"] == 8


def test_a_restart_inside_a_loop_inside_a_loop() -> None:
    inner = loop_while("loop", "n < i", step("in", n="=n + 1"), first={"n": 0})
    run = started(foreach("each", inner, i=[1, 2]))
    one, two = children(run, "each")
    rounds(one, ".")
    rounds(two, ".x")

    restart(child(two, "loop", 2), INCOMPLETE)
    rounds(two, ".", 2)

    assert [counts(each) for each in (one, two)] == [[1], [1, 2]]
    assert run.status is I.SUCCEEDED


@pytest.mark.parametrize("policy", [INCOMPLETE, BEGINNING])
def test_a_loop_that_never_had_a_round_begins_with_the_first_one(policy: object) -> None:
    run = started(step("a", "loop"), loop("n < 1"))
    fail(run, "a")

    run.restart(policy)  # type: ignore[arg-type]
    succeed(run, "a")
    rounds(run, ".")

    assert run.status is I.SUCCEEDED


def test_a_skip_of_a_step_of_a_round_that_has_ended_goes_on_with_the_next_round() -> None:
    run = started(loop("n < 2"))
    rounds(run, "x")

    child(run, "loop", 1).act("in", Action.SKIP)

    assert child(run, "loop", 1).steps == {"in": S.SKIPPED}
    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS]
