"""Cyclic workflows around composite steps, and inside of them."""

from kapelle.schemas.contracts import Action
from tests.unit.composites.trees import (
    call,
    child,
    children,
    fan,
    foreach,
    loop_while,
    push,
    restart,
    runs_of,
    statuses,
    values,
)
from tests.unit.runs.flows import (
    BEGINNING,
    INCOMPLETE,
    SPECIFIC,
    I,
    S,
    fail,
    iterations,
    noop,
    pushed,
    run_status,
    started,
    step,
    succeed,
    value_of,
)

AT = {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}


def test_each_turn_of_a_cycle_runs_all_iterations_of_a_loop_again() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", noop("in", x="=i"), i=[1, 2], to=["tail"]),
        noop("tail", {"head": "at < 7"}, at=AT),
    )

    assert iterations(run, "loop") == [1, 2, 3]
    assert [runs_of(one) for one in children(run, "loop")] == [3, 3]
    assert run.status is I.SUCCEEDED


def test_each_turn_of_a_cycle_starts_another_child() -> None:
    engine = pushed(noop("head", "sub"), call("sub", "other", to=["tail"]), noop("tail", {"head": "at < 7"}, at=AT))

    run = push(engine, "other", noop("c")).start("flow")

    assert iterations(run, "sub") == [1, 2, 3]
    assert [runs_of(one) for one in engine.runs("other")] == [1, 1, 1]
    assert run.status is I.SUCCEEDED


def test_each_turn_of_a_cycle_begins_a_while_with_its_first_values() -> None:
    run = started(
        noop("head", "loop"),
        loop_while("loop", "n < 2", noop("in", n="=n + 1"), first={"n": 0}, to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )

    assert iterations(run, "loop") == [1, 2]
    assert [runs_of(one) for one in children(run, "loop")] == [2, 2]
    assert run.status is I.SUCCEEDED


def test_a_composite_step_may_itself_be_the_whole_cycle() -> None:
    again = {"loop": "params.getFromStep('step_instance_id') < 3"}

    run = started(foreach("loop", noop("in"), i=[1, 2], to=again))

    assert iterations(run, "loop") == [1, 2, 3]
    assert run.status is I.SUCCEEDED


def test_what_is_gathered_is_that_of_the_latest_turn() -> None:
    gather = {"type": "LONG_ARRAY", "expression": "params.getFromForeach('loop', 'in', 'x')"}
    run = started(
        noop("head", "loop", at=AT),
        foreach("loop", noop("in", x="=i + from_head"), i=[1, 2], from_head="=head__at * 10", to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT, all=gather),
    )

    assert value_of(run, "tail", "all") == [41, 42]


def test_a_cycle_inside_an_iteration_is_the_iteration_s_own() -> None:
    run = started(foreach("loop", noop("head", {"head": "at < i"}, at=AT), i=[1, 3]))

    assert values(run, "loop", "head", "at") == [1, 3]
    assert [iterations(one, "head") for one in children(run, "loop")] == [[1], [1, 2, 3]]


def test_an_iteration_of_an_earlier_turn_does_not_answer_for_a_later_one() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", step("in"), i=[1, 2], to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )
    for number in (1, 2):
        succeed(child(run, "loop", number), "in")
    before = statuses(run, "loop"), fan(run, "loop").running

    succeed(child(run, "loop", 1), "in")

    assert before == ([I.IN_PROGRESS, I.IN_PROGRESS], 2)
    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS]


def test_a_failure_in_a_later_turn_fails_the_step_and_a_restart_goes_on_in_that_turn() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", step("in"), i=[1, 2], to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )
    for number in (1, 2):
        succeed(child(run, "loop", number), "in")
    succeed(child(run, "loop", 1), "in")
    fail(child(run, "loop", 2), "in")
    assert run.status is I.FAILED

    run.restart(INCOMPLETE)

    assert [runs_of(one) for one in children(run, "loop")] == [2, 3]
    assert statuses(run, "loop") == [I.SUCCEEDED, I.IN_PROGRESS]
    assert run.step_rows()["loop"].iteration == 2


def test_a_stop_in_a_later_turn_stops_the_children_of_that_turn() -> None:
    engine = pushed(noop("head", "sub"), call("sub", "other", to=["tail"]), noop("tail", {"head": "at < 9"}, at=AT))
    run = push(engine, "other", step("c")).start("flow")
    succeed(child(run, "sub"), "c")

    run.stop()

    assert [one.status for one in engine.runs("other")] == [I.SUCCEEDED, I.STOPPED]
    assert run.status is I.STOPPED


def test_a_restart_of_a_child_of_the_latest_turn_runs_that_child_again() -> None:
    engine = pushed(noop("head", "sub"), call("sub", "other", to=["tail"]), noop("tail", {"head": "at < 6"}, at=AT))
    run = push(engine, "other", step("c")).start("flow")
    succeed(child(run, "sub"), "c")
    fail(child(run, "sub"), "c")
    assert run.status is I.FAILED

    restart(child(run, "sub"), INCOMPLETE)

    assert [runs_of(one) for one in engine.runs("other")] == [1, 2]
    assert run.step_rows()["sub"].iteration == 2


def test_a_restart_from_the_beginning_of_a_cycle_begins_with_its_first_turn() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", step("in"), i=[1], to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )
    succeed(child(run, "loop", 1), "in")
    fail(child(run, "loop", 1), "in")

    run.restart(BEGINNING)
    for _ in range(2):
        succeed(child(run, "loop", 1), "in")

    assert run_status(run) is I.SUCCEEDED


def test_a_step_that_is_skipped_in_a_cycle_is_skipped_in_that_turn_alone() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", step("in"), i=[1], to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )

    run.act("loop", Action.SKIP)

    assert run.steps["loop"] is S.RUNNING
    assert statuses(run, "loop") == [I.IN_PROGRESS]
    assert runs_of(child(run, "loop", 1)) == 2


def test_a_restart_of_the_loop_step_in_a_cycle_keeps_what_succeeded_in_that_turn_alone() -> None:
    run = started(
        noop("head", "loop"),
        foreach("loop", step("in"), i=[1, 2], to=["tail"]),
        noop("tail", {"head": "at < 6"}, at=AT),
    )
    for number in (1, 2):
        succeed(child(run, "loop", number), "in")
    fail(child(run, "loop", 1), "in")
    fail(child(run, "loop", 2), "in")

    run.restart(SPECIFIC, step_id="loop")

    assert statuses(run, "loop") == [I.IN_PROGRESS, I.IN_PROGRESS]
