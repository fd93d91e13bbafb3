"""Children that an earlier run or an earlier turn of a cycle has left: a step that begins without them keeps none."""

from collections.abc import Sequence
from typing import Any

import pytest

from kapelle.schemas.contracts import ChildKind
from kapelle.testing.engine import RunHandle
from tests.unit.composites.trees import (
    call,
    child,
    children,
    fan,
    foreach,
    has_children,
    loop_while,
    push,
    restart,
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
    started,
    step,
    succeed,
)

AT = {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}
DIVIDED: Json = {"wrong": "=10 / by"}  # has no value if `by` is 0
ONLY_AT_FIRST: Json = {"wrong": "=10 / (head__at < 3 ? 1 : 0)"}
FIXED: Json = {"step_run_params": {"loop": {"wrong": param(1)}}}


def loops(**more: Any) -> dict[str, Json]:
    """A step of each kind, by its name."""
    return {
        "foreach": foreach("loop", step("in"), i=[1, 2], **more),
        "while": loop_while("loop", "n < 2", step("in", n="=n + 1"), first={"n": 0}, **more),
        "subworkflow": call("loop", "other", **more),
    }


KINDS = list(loops())


def complete(run: RunHandle) -> None:
    """End all children of the step, one after the other, until no more are launched."""
    while running := [one for one in below(run) if one.status is I.IN_PROGRESS]:
        succeed(running[0], "in")


def below(run: RunHandle) -> list[RunHandle]:
    """All children of the step, of whatever run or turn."""
    inline = has_children(run, "loop") and fan(run, "loop").kind is not ChildKind.SUBWORKFLOW
    return run.iterations("loop") if inline else run.engine.runs("other")


def restarted_without_value(kind: str, *more: Json) -> RunHandle:
    """A run that has succeeded, and then failed from the beginning before the step had children."""
    run = push(pushed(loops(**DIVIDED)[kind], *more, params={"by": 1}), "other", step("in")).start("flow")
    complete(run)
    for one in more:
        succeed(run, one["step"]["id"])
    assert run.status is I.SUCCEEDED
    run.restart(BEGINNING, run_params={"by": param(0)})
    assert run.steps["loop"] is S.INTERNALLY_FAILED, reason(run, "loop")
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_failed_before_it_had_children_runs_all_when_it_is_restarted(kind: str) -> None:
    run = restarted_without_value(kind, step("side"))

    restart(run, SPECIFIC, step_id="loop", **FIXED)
    before = run.steps["loop"]
    complete(run)

    assert before is S.RUNNING
    assert {runs_of(one) for one in children(run, "loop")} == {2}
    assert run.steps["loop"] is S.SUCCEEDED


@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_that_failed_before_its_step_had_children_runs_all_of_them(kind: str) -> None:
    run = restarted_without_value(kind)

    run.restart(INCOMPLETE, run_params={"by": param(1)})
    before = run.steps["loop"]
    complete(run)

    assert before is S.RUNNING
    assert {runs_of(one) for one in children(run, "loop")} == {2}
    assert run.status is I.SUCCEEDED


def test_a_child_of_a_step_that_failed_before_it_had_children_runs_from_its_beginning() -> None:
    engine = pushed(call("loop", "other", **DIVIDED), params={"by": 1})
    run = push(engine, "other", step("first", "in"), step("in")).start("flow")
    succeed(child(run, "loop"), "first")
    fail(child(run, "loop"), "in")
    run.restart(BEGINNING, run_params={"by": param(0)})

    run.restart(INCOMPLETE, run_params={"by": param(1)})

    assert child(run, "loop").key == "other/1"
    assert child(run, "loop").steps == {"first": S.STARTING}


def test_iterations_are_not_kept_when_the_step_was_refused() -> None:
    array = {"type": "LONG_ARRAY", "expression": "return new long[count];"}
    arrays = {"type": "MAP", "value": {"i": array, "j": array}}
    run = started(foreach("loop", step("in"), loop_params=arrays), params={"count": 1})
    complete(run)
    run.restart(BEGINNING, run_params={"count": param(200)})
    assert "at most 25,000 iterations" in reason(run, "loop")

    run.restart(INCOMPLETE, run_params={"count": param(1)})

    assert statuses(run, "loop") == [I.IN_PROGRESS]


# Turns of a cycle -----------------------------------------------------------------------------------------------------


def in_cycle(kind: str, waits: Sequence[Json] = (), **more: Any) -> RunHandle:
    """A run that comes to the step in two turns of a cycle."""
    body = loops(to=["tail"], **more)[kind]
    body[kind]["signal_dependencies"] = waits
    turns = noop("head", "loop", at=AT), body, noop("tail", {"head": "at < 6"}, at=AT)
    engine = pushed(noop("zero", "head", "side"), *turns, step("side"))
    return push(engine, "other", step("in")).start("flow")


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_failed_before_it_had_children_of_its_turn_keeps_none_of_the_turn_before(kind: str) -> None:
    run = in_cycle(kind, **ONLY_AT_FIRST)
    complete(run)
    assert run.steps["loop"] is S.INTERNALLY_FAILED, reason(run, "loop")

    restart(run, SPECIFIC, step_id="loop", **FIXED)

    assert (run.steps["loop"], run.step_rows()["loop"].iteration) == (S.RUNNING, 2)
    assert child(run, "loop").status is I.IN_PROGRESS
    if kind == "subworkflow":
        assert child(run, "loop").key == "other/2"
        assert [runs_of(one) for one in run.engine.runs("other")] == [1, 1]
    else:
        assert runs_of(child(run, "loop")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_children_of_the_turn_before_are_not_kept_when_the_step_was_stopped_while_it_waited(kind: str) -> None:
    match = {"n": {"operator": "=", "param": {"type": "LONG", "expression": "head__at"}}}
    run = in_cycle(kind, [{"name": "ready", "match_params": match}])
    run.engine.announce("ready", {"n": 2})
    complete(run)
    assert run.steps["loop"] is S.WAITING_FOR_SIGNALS
    run.stop()

    run.restart(INCOMPLETE)
    run.engine.announce("ready", {"n": 6})

    assert (run.steps["loop"], run.step_rows()["loop"].iteration) == (S.RUNNING, 2)
    assert child(run, "loop").status is I.IN_PROGRESS
