"""foreach: which iterations there are, in which order they run, and what the step makes of their ends."""

from typing import Any

import pytest

from kapelle.processors.runs.composites.counts import LAUNCHED_MAX
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Engine, Refused
from tests.unit.composites.trees import (
    call,
    child,
    children,
    fan,
    foreach,
    has_children,
    loop_while,
    push,
    statuses,
    values,
)
from tests.unit.runs.flows import I, Json, S, fail, noop, reason, started, step, succeed

LOOPS = {"FAILED": I.FAILED, "TIMED_OUT": I.TIMED_OUT, "STOPPED": I.STOPPED}


def text(expression: str) -> Json:
    return {"type": "STRING", "expression": expression}


# How many, and in which order -------------------------------------------------------------------------------


def test_the_first_array_varies_fastest() -> None:
    run = started(foreach("loop", noop("in", pair=text("a + b")), a=[1, 2], b=["x", "y", "z"]))

    assert values(run, "loop", "in", "pair") == ["1x", "2x", "1y", "2y", "1z", "2z"]
    assert run.status is I.SUCCEEDED


def test_iterations_are_instances_with_numbers_from_one_and_indices_from_zero() -> None:
    run = started(foreach("loop", noop("in", at="=loop_index"), i=[7, 8, 9]))

    assert [one.instance_id for one in children(run, "loop")] == [1, 2, 3]
    assert values(run, "loop", "in", "at") == [0, 1, 2]


def test_a_loop_of_one_value_has_one_iteration() -> None:
    run = started(foreach("loop", noop("in"), i=[7]))

    assert statuses(run, "loop") == [I.SUCCEEDED]


def test_an_empty_array_makes_no_iteration_and_the_step_succeeds_at_once() -> None:
    run = started(foreach("loop", noop("in"), i=[1, 2], j=[], to=["after"]), noop("after"))

    assert not has_children(run, "loop")
    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


def test_an_empty_map_makes_one_iteration() -> None:
    run = started(foreach("loop", noop("in", at="=loop_index")))

    assert values(run, "loop", "in", "at") == [0]


def test_more_than_25_000_iterations_fail_the_step() -> None:
    hundreds = {"type": "LONG_ARRAY", "expression": "return new long[size];"}
    loop_params = {"type": "MAP", "value": {"i": hundreds, "j": hundreds}}

    run = started(foreach("loop", noop("in"), loop_params=loop_params), params={"size": 159})

    assert run.steps == {"loop": S.FATALLY_FAILED}
    assert "at most 25,000 iterations" in reason(run, "loop")
    assert not has_children(run, "loop")


def test_a_product_that_no_integer_of_32_bits_holds_fails_the_step() -> None:
    hundreds = {"type": "LONG_ARRAY", "expression": "return new long[size];"}
    loop_params = {"type": "MAP", "value": dict.fromkeys("abcd", hundreds)}

    run = started(foreach("loop", noop("in"), loop_params=loop_params), params={"size": 256})

    assert run.steps == {"loop": S.FATALLY_FAILED}


def many(step_id: str, name: str, size: int, *block: Json) -> Json:
    """A loop with one iteration at a time."""
    values = {"type": "LONG_ARRAY", "expression": f"return new long[{size}];"}
    loop_params = {"type": "MAP", "value": {name: values}}
    return foreach(step_id, *block, loop_params=loop_params, concurrency=1)


@pytest.mark.parametrize("between", ["nothing", "while", "subworkflow"])
def test_loops_inside_each_other_that_would_run_more_than_a_million_iterations_fail(between: str) -> None:
    inner = many("inner", "j", 1_000, step("in"))
    engine = Engine()
    push(engine, "other", inner)
    ways = {
        "nothing": inner,
        "while": loop_while("mid", "true", inner, first={"n": 0}),
        "subworkflow": call("mid", "other"),
    }
    push(engine, "flow", many("outer", "i", 1_001, ways[between]))
    run = engine.start("flow")

    below = child(run, "outer") if between == "nothing" else child(child(run, "outer"), "mid")

    assert "at most 1,000,000 iterations" in reason(below, "inner")
    assert "1,001,000: 1,001 of the loops above, with 1,000 each" in reason(below, "inner")
    assert run.steps == {"outer": S.FATALLY_FAILED}
    assert not has_children(below, "inner")


def test_loops_inside_each_other_that_run_a_million_iterations_begin() -> None:
    run = started(many("outer", "i", 1_000, many("inner", "j", 1_000, step("in"))))

    assert child(run, "outer").steps == {"inner": S.RUNNING}


def test_an_entry_that_is_no_array_is_refused() -> None:
    loop_params = {"type": "MAP", "value": {"i": {"type": "MAP", "expression": "Map m = new HashMap(); return m;"}}}

    with pytest.raises(Refused, match="in a foreach"):
        started(foreach("loop", noop("in"), loop_params=loop_params))


def test_a_step_that_cannot_loop_fails_as_its_failure_mode_says() -> None:
    hundreds = {"type": "LONG_ARRAY", "expression": "return new long[size];"}
    loop_params = {"type": "MAP", "value": {"i": hundreds, "j": hundreds}}

    run = started(
        foreach("loop", noop("in"), loop_params=loop_params, failure_mode="IGNORE_FAILURE", to=["after"]),
        noop("after"),
        params={"size": 159},
    )

    assert run.steps == {"loop": S.COMPLETED_WITH_ERROR, "after": S.SUCCEEDED}


def test_arrays_may_be_made_of_parameters_of_earlier_steps_of_the_workflow_and_of_the_step() -> None:
    loop_params = {
        "type": "MAP",
        "value": {
            "i": {"type": "LONG_ARRAY", "expression": "return new long[]{first__x, base, own};"},
            "s": {"type": "STRING_ARRAY", "value": ["<$base>"]},
        },
    }
    run = started(
        noop("first", "loop", x=1),
        foreach("loop", noop("in", seen=text("s + i")), loop_params=loop_params, own=3),
        params={"base": 2},
    )

    assert values(run, "loop", "in", "seen") == ["<2>1", "<2>2", "<2>3"]


def test_a_loop_of_more_iterations_than_one_decision_launches_runs_them_all() -> None:
    count = 2 * LAUNCHED_MAX + 17
    run = started(foreach("loop", noop("in", at="=loop_index"), i=list(range(count))))

    assert values(run, "loop", "in", "at") == list(range(count))
    assert run.status is I.SUCCEEDED


# How many at the same time ------------------------------------------------------------------------------------


def test_without_a_limit_all_iterations_run_at_the_same_time() -> None:
    run = started(foreach("loop", step("in"), i=list(range(130))))

    assert fan(run, "loop").running == 130


def test_no_more_iterations_run_at_the_same_time_than_the_concurrency_allows() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3, 4], concurrency=2))
    before = len(children(run, "loop"))

    succeed(child(run, "loop", 2), "in")

    assert (before, len(children(run, "loop"))) == (2, 3)
    assert fan(run, "loop").running == 2


def test_without_a_strict_order_a_later_end_makes_room() -> None:
    run = started(foreach("loop", step("in"), i=list(range(6)), concurrency=2))

    for number in (2, 3, 4):
        succeed(child(run, "loop", number), "in")

    assert statuses(run, "loop") == [I.IN_PROGRESS, I.SUCCEEDED, I.SUCCEEDED, I.SUCCEEDED, I.IN_PROGRESS]


def test_in_a_strict_order_the_window_moves_only_with_the_oldest_iteration() -> None:
    run = started(foreach("loop", step("in"), i=list(range(6)), concurrency=3, strict_ordering=True))
    succeed(child(run, "loop", 2), "in")
    succeed(child(run, "loop", 3), "in")
    before = len(children(run, "loop"))

    succeed(child(run, "loop", 1), "in")

    assert (before, len(children(run, "loop"))) == (3, 6)


def test_a_strict_order_without_a_limit_launches_all() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3], strict_ordering=True))

    assert fan(run, "loop").running == 3


# What becomes of the step -------------------------------------------------------------------------------------


def test_the_step_runs_until_all_iterations_have_ended() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2], to=["after"]), noop("after"))
    succeed(child(run, "loop", 1), "in")
    before = run.steps

    succeed(child(run, "loop", 2), "in")

    assert before == {"loop": S.RUNNING}
    assert run.steps == {"loop": S.SUCCEEDED, "after": S.SUCCEEDED}


def ended(run: Any, number: int, how: str) -> None:
    one = child(run, "loop", number)
    if how == "FAILED":
        fail(one, "in")
    elif how == "STOPPED":
        one.stop()
    elif how == "TIMED_OUT":
        run.engine.advance(60_000)
    else:
        succeed(one, "in")


AT_THE_END = {"FAILED": S.FATALLY_FAILED, "TIMED_OUT": S.TIMED_OUT, "STOPPED": S.STOPPED}


@pytest.mark.parametrize("mode", ["FAIL_AFTER_RUNNING", "IGNORE_FAILURE"])
def test_after_a_failed_iteration_no_more_are_launched_and_the_step_waits_for_those_that_run(mode: str) -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3], concurrency=2, failure_mode=mode))
    fail(child(run, "loop", 1), "in")
    before = run.steps, statuses(run, "loop")

    succeed(child(run, "loop", 2), "in")

    assert before == ({"loop": S.RUNNING}, [I.FAILED, I.IN_PROGRESS])
    assert statuses(run, "loop") == [I.FAILED, I.SUCCEEDED]
    assert run.steps == {"loop": S.FATALLY_FAILED if mode == "FAIL_AFTER_RUNNING" else S.COMPLETED_WITH_ERROR}
    assert run.status is (I.FAILED if mode == "FAIL_AFTER_RUNNING" else I.SUCCEEDED)


def test_fail_immediately_stops_the_iterations_that_run_and_then_all_other_steps() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2, 3], concurrency=2, failure_mode="FAIL_IMMEDIATELY"), step("b"))

    fail(child(run, "loop", 1), "in")

    assert statuses(run, "loop") == [I.FAILED, I.STOPPED]
    assert run.steps == {"loop": S.FATALLY_FAILED, "b": S.STOPPED}
    assert run.status is I.FAILED


@pytest.mark.parametrize("count", [1, 3])
def test_fail_immediately_ends_a_loop_whose_only_running_iteration_fails(count: int) -> None:
    loop = foreach("loop", step("in"), i=list(range(count)), concurrency=1, failure_mode="FAIL_IMMEDIATELY")
    run = started(loop, step("b"))

    fail(child(run, "loop", 1), "in")

    assert statuses(run, "loop") == [I.FAILED]
    assert run.steps == {"loop": S.FATALLY_FAILED, "b": S.STOPPED}
    assert run.status is I.FAILED


@pytest.mark.parametrize("mode", ["FAIL_AFTER_RUNNING", "IGNORE_FAILURE", "FAIL_IMMEDIATELY"])
@pytest.mark.parametrize("how", ["STOPPED", "TIMED_OUT"])
def test_after_a_stopped_or_timed_out_iteration_the_loop_goes_on_whatever_the_failure_mode(mode: str, how: str) -> None:
    run = started(foreach("loop", step("in", timeout=60), i=[1, 2], concurrency=1, failure_mode=mode))
    ended(run, 1, how)
    before = statuses(run, "loop")

    succeed(child(run, "loop", 2), "in")

    assert before == [LOOPS[how], I.IN_PROGRESS]
    assert run.steps == {"loop": AT_THE_END[how]}
    assert run.status is LOOPS[how]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (["STOPPED", "FAILED"], S.FATALLY_FAILED),
        (["FAILED", "STOPPED"], S.FATALLY_FAILED),
        (["STOPPED", "TIMED_OUT"], S.TIMED_OUT),
        (["SUCCEEDED", "STOPPED"], S.STOPPED),
        (["SUCCEEDED", "SUCCEEDED"], S.SUCCEEDED),
    ],
)
def test_the_worst_end_of_an_iteration_is_that_of_the_step(ends: list[str], expected: S) -> None:
    run = started(foreach("loop", step("in", timeout=60), i=[1, 2]))

    for number, how in enumerate(ends, 1):
        ended(run, number, how)

    assert run.steps == {"loop": expected}


def test_a_failed_step_tells_which_iteration_failed_and_why() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2]))
    succeed(child(run, "loop", 1), "in")

    fail(child(run, "loop", 2), "in", "no space left")

    assert reason(run, "loop").startswith("Iteration 2 FAILED")


def test_the_failure_mode_of_the_loop_is_not_that_of_its_steps() -> None:
    run = started(foreach("loop", step("in", "next"), noop("next"), i=[1], failure_mode="IGNORE_FAILURE"))

    fail(child(run, "loop", 1), "in")

    assert child(run, "loop", 1).steps == {"in": S.FATALLY_FAILED}
    assert run.steps == {"loop": S.COMPLETED_WITH_ERROR}


def test_an_iteration_that_is_killed_by_its_own_address_has_failed() -> None:
    run = started(foreach("loop", step("in"), i=[1, 2]))

    child(run, "loop", 1).stop(Action.KILL)
    succeed(child(run, "loop", 2), "in")

    assert statuses(run, "loop") == [I.FAILED, I.SUCCEEDED]
    assert run.steps == {"loop": S.FATALLY_FAILED}


def test_an_iteration_in_which_a_step_is_skipped_succeeds() -> None:
    run = started(foreach("loop", step("in"), i=[1]))

    child(run, "loop", 1).act("in", Action.SKIP)

    assert run.status is I.SUCCEEDED
