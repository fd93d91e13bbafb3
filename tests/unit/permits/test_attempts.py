"""Attempts ask for permits and give them back."""

import pytest

from kapelle.processors.permits.tables import Limit
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality
from tests.unit.permits.world import FIT, World, holder, types


def test_there_are_never_more_holders_than_the_limit() -> None:
    world = World()
    world.limit(2)

    world.ask("a", "b", "c", "d")

    assert (world.held(), world.waiting()) == (["a", "b"], ["c", "d"])
    assert world.row().held == 2
    assert world.granted == ["a", "b"]


def test_a_permit_that_is_given_back_goes_to_the_one_that_came_first() -> None:
    world = World()
    world.limit(1)
    world.ask("a", "b", "c")

    events = world.give_back("a")

    assert types(events) == ["PermitReturned", "PermitGranted"]
    assert (world.held(), world.waiting()) == (["b"], ["c"])


def test_the_answer_goes_to_the_instance_of_the_attempt_and_says_what_it_is_for() -> None:
    world = World()
    world.limit(1)

    world.ask("a", workflow="report")

    grant = c.GrantPermit(holder("a", "report"), limited="tag/gpu", is_limited=True, sequence=1)
    assert world.sent == [("report/1", grant)]


def test_without_a_limit_everybody_gets_a_permit_and_is_counted() -> None:
    world = World()

    world.ask("a", "b", "c")

    assert (world.held(), world.row().held) == (["a", "b", "c"], 3)
    assert not any(answer.is_limited for _, answer in world.sent_of(c.GrantPermit))


def test_a_limit_of_zero_admits_nobody() -> None:
    world = World()
    world.limit(0)

    world.ask("a")

    assert (world.held(), world.waiting()) == ([], ["a"])


def test_an_attempt_that_holds_a_permit_and_asks_again_gets_no_second_one() -> None:
    world = World()
    world.limit(2)
    world.ask("a")

    assert world.ask("a") == []
    assert (world.row().held, world.granted) == (1, ["a"])


def test_an_attempt_that_waits_and_asks_again_keeps_its_place() -> None:
    world = World()
    world.limit(1)
    world.ask("a", "b", "c")

    assert world.ask("b") == []
    assert world.waiting() == ["b", "c"]


def test_what_was_given_back_cannot_be_given_back_again() -> None:
    world = World()
    world.limit(1)
    world.ask("a", "b", "c")
    world.give_back("a")

    assert world.give_back("a") == []
    assert (world.held(), world.waiting(), world.row().held) == (["b"], ["c"], 1)


def test_a_return_before_the_request_changes_nothing() -> None:
    world = World()
    world.limit(1)

    assert world.give_back("a") == []
    world.ask("a")

    assert (world.held(), world.row().held) == (["a"], 1)


def test_an_attempt_that_waits_no_longer_leaves_the_queue_and_admits_nobody() -> None:
    world = World()
    world.limit(1)
    world.ask("a", "b", "c")

    events = world.give_back("b")

    assert events == [c.PermitReturned("tag/gpu", holder("b"), was_held=False, at_ms=events[0].at_ms)]
    assert (world.held(), world.waiting()) == (["a"], ["c"])
    assert world.row().waiting == (0, 0, 1, 0)


@pytest.mark.parametrize("key", ["", "etl", "etl/0", "etl/x", "a/b/1"])
def test_a_request_of_what_is_no_instance_is_unfit(key: str) -> None:
    asking = c.RequestPermit(c.PermitHolder(key, 1, "load", 1, 1), "etl", Criticality.MEDIUM)

    assert FIT[c.RequestPermit]("tag/gpu", asking) is not None


def test_attempts_of_one_step_hold_permits_of_their_own() -> None:
    world = World()
    world.limit(2)

    for attempt, iteration in ((1, 1), (2, 1), (1, 2)):
        asking = c.PermitHolder("etl/1", 1, "load", attempt, iteration)
        world.decide(c.RequestPermit(asking, "etl", Criticality.MEDIUM))

    assert world.row() == Limit(2, "ann", sequence=1, held=2, ticket=3, waiting=(0, 0, 1, 0))


def test_each_limit_has_holders_and_a_queue_of_its_own() -> None:
    world = World()
    world.limit(1)
    world.ask("a", "b")

    other = c.RequestPermit(holder("a"), "etl", Criticality.MEDIUM)
    events = world.decide(other, "tag/cpu")

    assert types(events) == ["PermitGranted"]
    assert world.waiting() == ["b"]


def test_a_criticality_that_this_release_does_not_know_is_that_of_the_middle() -> None:
    world = World()
    world.limit(0)

    world.ask("a", criticality=Criticality.OTHER)

    assert world.row().waiting == (0, 0, 1, 0)


def test_nothing_is_left_of_a_tree_without_holders_and_attempts_that_wait() -> None:
    world = World("tree/etl/1")
    world.ask("a", "b", max=1)
    world.give_back("b")

    world.give_back("a")

    assert list(world.state.rows()) == []


def test_the_next_step_of_a_tree_brings_the_limit_with_it() -> None:
    world = World("tree/etl/1")
    world.ask("a", max=1)
    world.give_back("a")

    world.ask("b", "c", max=1)

    assert (world.held(), world.waiting()) == (["b"], ["c"])
