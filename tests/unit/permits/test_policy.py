"""Who is admitted next: by criticality, by turns of the workflows, then first come, first served."""

import pytest

from kapelle.processors.permits.policy import PASSED_OVER_MAX
from kapelle.schemas.contracts import Criticality
from tests.unit.permits.world import World

CRITICAL, HIGH, MEDIUM, LOW = Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW
LIMIT = 1


def full() -> World:
    """One attempt has the only permit."""
    world = World()
    world.limit(LIMIT)
    world.ask("first")
    return world


def admitted(world: World, count: int) -> list[str]:
    """The next that are admitted, one after the other."""
    before = len(world.granted)
    for _ in range(count):
        world.give_back(world.held()[0])
    return world.granted[before:]


def test_more_critical_attempts_go_first() -> None:
    world = full()
    for name, criticality in (("l", LOW), ("m", MEDIUM), ("h", HIGH), ("c", CRITICAL)):
        world.ask(name, criticality=criticality)

    assert admitted(world, 4) == ["c", "h", "m", "l"]


def test_attempts_of_one_workflow_are_admitted_in_the_order_in_which_they_came() -> None:
    world = full()
    world.ask("b", "a", "c")

    assert admitted(world, 3) == ["b", "a", "c"]


def test_a_flood_of_one_workflow_takes_one_place_in_each_turn() -> None:
    world = full()
    world.ask("flood1", "flood2", "flood3", "flood4", workflow="flood")

    world.ask("x1", "x2", workflow="x")
    world.ask("y1", workflow="y")

    assert admitted(world, 7) == ["flood1", "x1", "y1", "flood2", "x2", "flood3", "flood4"]


def test_who_comes_late_takes_part_in_the_current_turn() -> None:
    world = full()
    world.ask("flood1", "flood2", "flood3", "flood4", workflow="flood")
    admitted(world, 2)

    world.ask("late", workflow="late")

    assert admitted(world, 2) == ["late", "flood3"]


def test_who_asks_again_and_again_does_not_go_before_a_flood_each_time() -> None:
    world = full()
    world.ask("flood1", "flood2", "flood3", workflow="flood")
    world.ask("x1", workflow="x")
    order = admitted(world, 2)
    world.ask("x2", workflow="x")
    order += admitted(world, 2)
    world.ask("x3", workflow="x")

    assert order + admitted(world, 2) == ["flood1", "x1", "flood2", "x2", "flood3", "x3"]


def test_turns_of_attempts_that_stopped_waiting_are_not_held_against_their_workflow() -> None:
    world = full()
    killed = [f"killed{number}" for number in range(20)]
    world.ask(*killed, workflow="etl")
    world.ask(*(f"x{number}" for number in range(1, 10)), workflow="x")
    world.give_back(*killed)

    world.ask("again", workflow="etl")

    assert admitted(world, 3) == ["x1", "x2", "again"]


@pytest.mark.parametrize("low", [HIGH, MEDIUM, LOW])
def test_a_class_that_waits_is_passed_over_at_most_ten_times(low: Criticality) -> None:
    world = full()
    world.ask(*(f"c{number:02}" for number in range(20)), criticality=CRITICAL)
    world.ask("low", criticality=low)

    order = admitted(world, PASSED_OVER_MAX + 1)

    assert order.index("low") == PASSED_OVER_MAX


def test_classes_that_have_waited_too_long_come_one_after_the_other() -> None:
    world = full()
    world.ask(*(f"c{number:02}" for number in range(20)), criticality=CRITICAL)
    for name, criticality in (("l", LOW), ("m", MEDIUM), ("h", HIGH)):
        world.ask(name, criticality=criticality)

    order = admitted(world, PASSED_OVER_MAX + 4)

    assert order[PASSED_OVER_MAX:] == ["h", "m", "l", "c10"]


def test_the_class_that_has_waited_longest_comes_first() -> None:
    world = full()
    world.ask(*(f"c{number:02}" for number in range(30)), criticality=CRITICAL)
    world.ask("l", criticality=LOW)
    world.ask("m", criticality=MEDIUM)
    admitted(world, 1)
    world.ask("h", criticality=HIGH)

    order = admitted(world, PASSED_OVER_MAX + 2)

    assert order[-3:] == ["m", "l", "h"]


def test_a_class_in_which_nobody_is_left_begins_to_wait_when_the_next_one_comes() -> None:
    world = full()
    world.ask(*(f"c{number:02}" for number in range(30)), criticality=CRITICAL)
    world.ask("gone", criticality=LOW)
    admitted(world, PASSED_OVER_MAX - 1)
    world.give_back("gone")

    world.ask("low", criticality=LOW)

    assert admitted(world, PASSED_OVER_MAX + 1).index("low") == PASSED_OVER_MAX
