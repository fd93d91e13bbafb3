"""Limits are set, changed and removed: by people for tags, by definitions and properties for workflows and trees."""

from typing import Any

import pytest

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import CommandStatus, Refusal
from tests.unit.permits.world import World, types


def outcome(events: list[Any]) -> Any:
    return events[-1].status if isinstance(events[-1], c.CommandSettled) else events[-1].refusal


def crowded(most: int = 2) -> World:
    world = World()
    world.limit(most)
    world.ask("a", "b", "c", "d")
    return world


def test_a_raised_limit_admits_at_once() -> None:
    world = crowded()

    events = world.limit(3)

    assert types(events) == ["LimitSet", "PermitGranted", "CommandSettled"]
    assert (world.held(), world.waiting()) == (["a", "b", "c"], ["d"])


def test_a_lowered_limit_stops_nobody_and_admits_nobody_until_there_is_room() -> None:
    world = crowded()

    assert types(world.limit(1)) == ["LimitSet", "CommandSettled"]
    assert world.held() == ["a", "b"]

    assert types(world.give_back("a")) == ["PermitReturned"]
    assert (world.held(), world.waiting()) == (["b"], ["c", "d"])

    world.give_back("b")
    assert (world.held(), world.waiting()) == (["c"], ["d"])


def test_a_removed_limit_admits_all_and_keeps_counting_the_holders() -> None:
    world = crowded()

    events = world.remove()

    assert types(events) == ["LimitRemoved", "PermitGranted", "PermitGranted", "CommandSettled"]
    assert (world.held(), world.waiting(), world.row().held) == (["a", "b", "c", "d"], [], 4)


def test_a_limit_that_is_set_after_a_removal_counts_those_that_hold_a_permit() -> None:
    world = crowded()
    world.remove()

    world.limit(4)
    world.ask("e")

    assert world.waiting() == ["e"]


@pytest.mark.parametrize("repeat", [1, 5])
def test_a_request_that_comes_again_is_carried_out_once(repeat: int) -> None:
    world = crowded()
    world.limit(3, request_id="raise")
    world.limit(2)

    for _ in range(repeat):
        assert outcome(world.limit(3, request_id="raise")) is CommandStatus.UNCHANGED

    assert (world.row().max, len(world.held())) == (2, 3)


def test_a_removal_that_comes_again_does_not_remove_a_later_limit() -> None:
    world = World()
    world.limit(3)
    world.remove(request_id="remove")
    world.limit(2)

    assert outcome(world.remove(request_id="remove")) is CommandStatus.UNCHANGED
    assert world.row().max == 2


def test_the_same_limit_again_is_no_change() -> None:
    world = World()
    world.limit(3, extra='{"info":"x"}')

    assert types(world.limit(3, extra='{"info":"x"}')) == ["CommandSettled"]
    assert types(world.limit(3, extra='{"info":"y"}')) == ["LimitSet", "CommandSettled"]
    assert world.row().extra == '{"info":"y"}'


def test_the_removal_of_no_limit_is_no_change() -> None:
    assert outcome(World().remove()) is CommandStatus.UNCHANGED


@pytest.mark.parametrize(
    "command",
    [
        c.SetLimit("r", "ann", 1, "[]"),
        c.SetLimit("r", "ann", 1, "{"),
        c.SetLimit("r", "ann", 1, "[" * 3_000),
        c.SetLimit("r", "ann", 1, f'{{"x":"{"y" * 4_000}"}}'),
        c.SetLimit("r", "x" * 257, 1),
        c.SetLimit("r" * 257, "ann", 1),
        c.RemoveLimit("r" * 257, "ann"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(command: Any) -> None:
    world = World()

    assert outcome(world.decide(command)) is Refusal.INVALID
    assert list(world.state.rows()) == []


def test_a_tag_that_is_too_long_is_refused() -> None:
    world = World()

    assert outcome(world.decide(c.SetLimit("r", "ann", 1), f"tag/{'x' * 257}")) is Refusal.INVALID


@pytest.mark.parametrize("key", ["workflow/etl", "tree/etl/1"])
def test_people_limit_tags_only(key: str) -> None:
    world = World(key)

    assert outcome(world.limit(1)) is Refusal.INVALID
    assert outcome(world.remove()) is Refusal.INVALID


def test_what_was_refused_may_be_asked_for_again() -> None:
    world = World()
    world.limit(1, request_id="r", extra="[]")

    assert outcome(world.limit(1, request_id="r")) is CommandStatus.DONE


# Workflows and trees ------------------------------------------------------------------------------------------------


def test_the_limit_of_a_workflow_comes_with_the_first_request() -> None:
    world = World("workflow/etl")

    world.ask("a", "b", max=1, snapshot=4)

    assert (world.held(), world.waiting(), world.row().snapshot) == (["a"], ["b"], 4)
    assert types([event for _, event in world.history]).count("LimitSet") == 1


def test_a_request_of_an_older_run_does_not_bring_back_an_older_limit() -> None:
    world = World("workflow/etl")
    world.limit_workflow(3, snapshot=5)

    world.ask("a", max=1, snapshot=4)

    assert (world.row().max, world.row().snapshot) == (3, 5)


def test_a_request_of_a_newer_run_brings_the_newer_limit_and_admits_at_once() -> None:
    world = World("workflow/etl")
    world.ask("a", "b", max=1, snapshot=4)

    world.ask("c", max=3, snapshot=5)

    assert world.held() == ["a", "b", "c"]
    assert world.granted == ["a", "b", "c"]


def test_news_of_older_properties_change_nothing() -> None:
    world = World("workflow/etl")
    world.limit_workflow(3, snapshot=5)

    assert world.limit_workflow(1, snapshot=5) == []
    assert world.limit_workflow(None, snapshot=4) == []


def test_a_workflow_without_a_limit_admits_all_and_an_older_request_does_not_limit_it_again() -> None:
    world = World("workflow/etl")
    world.ask("a", "b", max=1, snapshot=4)

    world.limit_workflow(None, snapshot=5)
    world.ask("c", max=1, snapshot=4)

    assert world.held() == ["a", "b", "c"]


def test_a_request_for_a_tag_brings_no_limit() -> None:
    world = World()
    world.limit(1)

    world.ask("a", "b")

    assert (world.row().max, world.row().sequence) == (1, 1)


# Partitions that want to know ---------------------------------------------------------------------------------------


def news(world: World) -> list[tuple[str, bool, int]]:
    return [(key, one.is_limited, one.sequence) for key, one in world.sent_of(c.LearnLimit)]


def test_a_partition_learns_from_its_first_permit_that_there_is_no_limit() -> None:
    world = World()

    world.ask("a", watches=True)

    ((_, grant),) = world.sent_of(c.GrantPermit)
    assert (grant.is_limited, grant.sequence) == (False, 1)


def test_who_watches_is_told_when_a_tag_becomes_limited_and_when_it_no_longer_is() -> None:
    world = World()
    world.ask("a", watches=True, workflow="etl")
    world.ask("b", watches=True, workflow="report")

    world.limit(1)
    world.limit(2)
    world.remove()

    assert news(world) == [("etl/1", True, 2), ("report/1", True, 2), ("etl/1", False, 4), ("report/1", False, 4)]


def test_who_does_not_watch_is_told_nothing() -> None:
    world = World()
    world.ask("a")

    world.limit(1)

    assert news(world) == []


def test_who_watches_twice_is_told_once() -> None:
    world = World()
    world.ask("a", "b", watches=True)

    world.limit(1)

    assert news(world) == [("etl/1", True, 2)]
    assert types([event for _, event in world.history]).count("TagWatched") == 1
