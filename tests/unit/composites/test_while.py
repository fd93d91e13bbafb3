"""while: how long it goes on, what one round hands to the next, and what becomes of the step."""

import pytest

from kapelle.processors.definitions import limits
from kapelle.processors.runs.composites import rounds
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Refused
from tests.unit.composites.trees import (
    call,
    child,
    children,
    foreach,
    has_children,
    loop_while,
    push,
    row,
    statuses,
    values,
)
from tests.unit.runs.flows import I, Json, S, fail, noop, pushed, reason, started, step, succeed, task


def text(expression: str) -> Json:
    return {"type": "STRING", "expression": expression}


# Values ---------------------------------------------------------------------------------------------------------


def test_a_round_hands_on_what_a_step_has_in_a_parameter_of_the_same_name() -> None:
    run = started(loop_while("loop", "n < 3", noop("in", n="=n + 1"), first={"n": 0}))

    assert values(run, "loop", "in", "n") == [1, 2, 3]
    assert run.status is I.SUCCEEDED


def test_of_several_steps_the_one_that_was_created_last_decides() -> None:
    run = started(loop_while("loop", "n < 5", noop("a", "b", n="=n + 100"), noop("b", n="=n + 3"), first={"n": 0}))

    assert values(run, "loop", "b", "n") == [3, 6]


def test_a_value_that_no_step_has_stays_as_it_was() -> None:
    run = started(loop_while("loop", "n < end", noop("in", n="=n + 1"), first={"n": 0, "end": 2}))

    assert values(run, "loop", "in", "n") == [1, 2]


def test_the_outputs_of_a_worker_are_handed_on() -> None:
    output = {"type": "LONG", "value": 0, "mode": "MUTABLE"}
    run = started(loop_while("loop", "n < 9", step("in", n=output), first={"n": 0}))

    task(child(run, "loop", 1), "in").succeed(n=5)
    task(child(run, "loop", 2), "in").succeed(n=9)

    assert row(run, "loop", 2).given == '{"n":5}'
    assert run.status is I.SUCCEEDED


def test_a_composite_step_of_a_round_hands_on_its_own_parameters() -> None:
    run = started(loop_while("loop", "n < 2", foreach("in", noop("leaf"), i=[1], n="=n + 1"), first={"n": 0}))

    assert len(children(run, "loop")) == 2
    assert run.status is I.SUCCEEDED


def test_texts_truth_values_and_numbers_are_handed_on_as_what_they_are() -> None:
    run = started(
        loop_while(
            "loop",
            "go && s.length() < 3",
            noop(
                "in",
                s=text("s + '$'"),
                d={"type": "DOUBLE", "expression": "d / 2"},
                go={"type": "BOOLEAN", "expression": "d > 0.2"},
            ),
            first={"s": "", "d": 1.0, "go": True},
        )
    )

    assert values(run, "loop", "in", "s") == ["$", "$$", "$$$"]
    assert values(run, "loop", "in", "d") == [0.5, 0.25, 0.125]


def test_a_round_sees_its_index_and_that_the_condition_holds() -> None:
    run = started(
        loop_while("loop", "n < 2", noop("in", n="=n + 1", at="=loop_index", c=text("'' + condition")), first={"n": 0})
    )

    assert values(run, "loop", "in", "at") == [0, 1]
    assert values(run, "loop", "in", "c") == ["true", "true"]


def test_a_round_sees_the_workflow_and_the_step() -> None:
    run = started(
        loop_while("loop", "n < 1", noop("in", n="=n + base + own"), first={"n": 0}, own=2), params={"base": 1}
    )

    assert values(run, "loop", "in", "n") == [3]


# The condition --------------------------------------------------------------------------------------------------


def test_a_condition_that_is_false_at_first_makes_no_round_and_the_step_succeeds() -> None:
    run = started(loop_while("loop", "n < 0", noop("in"), first={"n": 0}, to=["after"]), noop("after"))

    assert not has_children(run, "loop")
    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


def test_the_condition_sees_loop_values_then_the_step_s_parameters_then_the_workflow_s() -> None:
    run = started(
        loop_while("loop", "a + b + c == 'loop step flow'", noop("in", a="x"), first={"a": "loop "}, b="step "),
        params={"a": "flow", "b": "flow", "c": "flow"},
    )

    assert len(children(run, "loop")) == 1
    assert run.status is I.SUCCEEDED


def test_the_index_in_the_condition_is_always_minus_one() -> None:
    run = started(loop_while("loop", "n < 2 && loop_index == -1", noop("in", n="=n + 1"), first={"n": 0}))

    assert len(children(run, "loop")) == 2


@pytest.mark.parametrize("condition", ["nobody < 3", "n / 0 > 1", "n + 1", "params.get('base') < 3"])
def test_a_condition_without_a_value_fails_the_step(condition: str) -> None:
    run = started(
        noop("first", "loop", x=1), loop_while("loop", condition, noop("in"), first={"n": 0}), params={"base": 1}
    )

    assert run.steps["loop"] is S.FATALLY_FAILED
    assert not has_children(run, "loop")


def test_a_condition_that_loses_its_value_later_fails_the_step_as_its_failure_mode_says() -> None:
    run = started(
        loop_while(
            "loop", "10 / n > 1", noop("in", n="=n - 1"), first={"n": 1}, failure_mode="IGNORE_FAILURE", to=["after"]
        ),
        noop("after"),
    )

    assert statuses(run, "loop") == [I.SUCCEEDED]
    assert run.steps == {"loop": S.COMPLETED_WITH_ERROR, "after": S.SUCCEEDED}


def test_a_first_value_that_is_no_scalar_is_refused() -> None:
    loop_params = {"type": "MAP", "value": {"n": {"type": "MAP", "expression": "Map m = new HashMap(); return m;"}}}

    with pytest.raises(Refused, match="in a while"):
        started(loop_while("loop", "true", noop("in"), loop_params=loop_params))


def test_a_condition_must_not_ask_for_other_steps() -> None:
    with pytest.raises(Refused, match="no parameters of other steps"):
        started(noop("first", "loop", x=1), loop_while("loop", "first__x < 3", noop("in"), first={"n": 0}))


def test_a_loop_that_does_not_end_fails_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ITERATIONS_MAX", 5)

    run = started(loop_while("loop", "true", noop("in", n="=n + 1"), first={"n": 0}))

    assert limits.ITERATIONS_MAX == 25_000
    assert len(children(run, "loop")) == 5
    assert run.steps == {"loop": S.FATALLY_FAILED}
    assert "within 5 rounds" in reason(run, "loop")


# Rounds ---------------------------------------------------------------------------------------------------------


def test_rounds_run_one_after_the_other() -> None:
    run = started(loop_while("loop", "n < 2", step("in", n="=n + 1"), first={"n": 0}))
    before = statuses(run, "loop")

    succeed(child(run, "loop", 1), "in")

    assert before == [I.IN_PROGRESS]
    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS]


@pytest.mark.parametrize("how", ["FAILED", "STOPPED", "TIMED_OUT"])
def test_a_round_that_does_not_succeed_ends_the_step_likewise(how: str) -> None:
    run = started(loop_while("loop", "n < 2", step("in", n="=n + 1", timeout=60), first={"n": 0}))
    one = child(run, "loop", 1)
    if how == "FAILED":
        fail(one, "in")
    elif how == "STOPPED":
        one.act("in", Action.STOP)
    else:
        run.engine.advance(60_000)

    expected = {"FAILED": S.FATALLY_FAILED, "STOPPED": S.STOPPED, "TIMED_OUT": S.TIMED_OUT}

    assert run.steps == {"loop": expected[how]}
    assert len(children(run, "loop")) == 1


def test_a_failed_step_tells_which_round_failed() -> None:
    run = started(loop_while("loop", "n < 2", step("in", n="=n + 1"), first={"n": 0}))
    succeed(child(run, "loop", 1), "in")

    fail(child(run, "loop", 2), "in")

    assert reason(run, "loop").startswith("Round 2 FAILED")


def test_a_failed_round_counts_as_the_failure_mode_says() -> None:
    run = started(
        loop_while("loop", "n < 2", step("in", n="=n + 1"), first={"n": 0}, failure_mode="FAIL_IMMEDIATELY"), step("b")
    )

    fail(child(run, "loop", 1), "in")

    assert run.steps == {"loop": S.FATALLY_FAILED, "b": S.STOPPED}


def test_a_while_in_a_foreach_and_a_foreach_in_a_while() -> None:
    inner = loop_while("turn", "n < i", noop("count", n="=n + 1"), first={"n": 0})
    run = started(
        foreach("each", inner, i=[1, 2], to=["around"]),
        loop_while(
            "around", "n < 2", foreach("both", noop("leaf", x="=n * 10 + j"), j=[1, 2], n="=n + 1"), first={"n": 0}
        ),
    )

    assert [values(one, "turn", "count", "n") for one in children(run, "each")] == [[1], [1, 2]]
    assert [values(one, "both", "leaf", "x") for one in children(run, "around")] == [[11, 12], [21, 22]]


def test_a_round_may_call_a_workflow() -> None:
    engine = push(
        pushed(loop_while("loop", "n < 2", call("sub", "other", n="=n + 1"), first={"n": 0})), "other", noop("c")
    )

    run = engine.start("flow")

    assert run.status is I.SUCCEEDED
    assert [one.status for one in engine.runs("other")] == [I.SUCCEEDED, I.SUCCEEDED]


def test_values_of_a_round_that_are_too_large_for_the_next_one_fail_the_step() -> None:
    text = {"type": "STRING", "value": "", "mode": "MUTABLE"}
    run = started(loop_while("loop", "text != 'end'", step("in", text=text), first={"text": ""}))

    task(child(run, "loop"), "in").succeed(text="a" * 100_000)

    assert run.steps == {"loop": S.FATALLY_FAILED}
    assert "Expected the values of the next round to fit into a record" in reason(run, "loop")
