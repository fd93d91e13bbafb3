"""An arrival displaces all that are queued, in batches that a decision can bear, and nobody of them ever runs."""

import pytest

from kapelle.processors.workflows.arrivals import DISPLACED_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from tests.unit.workflows.world import KEY, World, only, types

MANY = 3 * DISPLACED_MAX + 7
STATUSES = {"S": InstanceStatus.STOPPED, "F": InstanceStatus.FAILED}


def crowded(count: int = MANY) -> World:
    """One that runs and so many behind it, of a workflow where only the latest counts from now on."""
    world = World()
    world.push(run_strategy="SEQUENTIAL")
    for number in range(count + 1):
        world.start(f"old-{number}")
    only(c.PropertiesChanged, world.switch("SERIAL_LATEST_ONLY"))
    return world


def started(world: World, request_id: str) -> list[object]:
    """Start one, and leave what the processor asks itself undone."""
    return world.decide(c.StartInstances("ann", (Start(request_id),)))


def go_on(world: World) -> list[object]:
    """One more of the decisions that the processor asked itself for."""
    key, value = world.continued.popleft()
    return world.decide(value, key)


def drain(world: World) -> None:
    while world.continued:
        go_on(world)


def counts(world: World) -> tuple[int, int, int]:
    row = world.state.reader.counts.get((KEY,))
    assert row is not None
    return row.queued, row.running, row.displaced


def status(world: World, instance_id: int) -> InstanceStatus:
    row = world.state.reader.instances.get((KEY, instance_id))
    assert row is not None
    return row.status


@pytest.mark.parametrize("count", [1, DISPLACED_MAX - 1, DISPLACED_MAX, DISPLACED_MAX + 1, MANY])
def test_the_switch_is_free_and_the_next_arrival_displaces_however_many_are_queued(count: int) -> None:
    world = crowded(count)
    assert counts(world) == (count, 1, 0)

    world.start("new")

    newest = count + 2
    assert counts(world) == (1, 1, 0)
    assert {status(world, one) for one in range(2, newest)} == {InstanceStatus.STOPPED}
    assert (status(world, 1), status(world, newest)) == (InstanceStatus.IN_PROGRESS, InstanceStatus.CREATED)
    world.end(1)
    assert status(world, newest) is InstanceStatus.IN_PROGRESS
    assert world.replayed() == world.state.fingerprint()


def test_until_somebody_arrives_those_who_are_queued_run_one_by_one() -> None:
    world = crowded()

    world.end(1)
    world.end(2)

    assert status(world, 3) is InstanceStatus.IN_PROGRESS
    assert counts(world) == (MANY - 2, 1, 0)


def test_every_end_names_the_run_that_was_started() -> None:
    world = crowded()

    ended = [event for event in world.start("new") if isinstance(event, c.InstanceEnded)]

    assert len(ended) == MANY
    assert {event.reason for event in ended} == {
        f"Stopped by SERIAL_LATEST_ONLY: instance {MANY + 2} run 1 was started"
    }


def test_no_decision_ends_more_than_a_batch() -> None:
    world = crowded()

    sizes = [types(started(world, "new")).count("InstanceEnded")]
    while world.continued:
        sizes.append(types(go_on(world)).count("InstanceEnded"))

    assert sizes == [DISPLACED_MAX, DISPLACED_MAX, DISPLACED_MAX, 7]


def test_nothing_is_launched_before_the_last_of_the_displaced_has_ended() -> None:
    world = crowded()
    started(world, "new")

    world.decide(c.RecordRunEnd(1, 1, InstanceStatus.SUCCEEDED, ""))
    assert counts(world) == (MANY + 1 - DISPLACED_MAX, 0, MANY - DISPLACED_MAX)

    drain(world)
    assert counts(world) == (0, 1, 0)
    assert status(world, MANY + 2) is InstanceStatus.IN_PROGRESS


def test_a_second_arrival_displaces_the_first_and_all_that_are_left() -> None:
    world = crowded()
    started(world, "new")
    go_on(world)

    started(world, "newer")
    drain(world)

    assert counts(world) == (1, 1, 0)
    assert status(world, MANY + 2) is InstanceStatus.STOPPED
    assert status(world, MANY + 3) is InstanceStatus.CREATED


def test_an_arrival_after_most_have_ended_displaces_the_few_that_are_left_and_the_first() -> None:
    world = crowded()
    started(world, "new")
    go_on(world)
    go_on(world)
    assert counts(world) == (8, 1, 7)

    started(world, "newer")

    assert counts(world) == (1, 1, 0)
    drain(world)
    assert counts(world) == (1, 1, 0)


def test_a_restart_of_an_old_instance_displaces_newer_ones_too() -> None:
    world = crowded()
    world.end(1)

    world.restart(1)

    assert counts(world) == (1, 1, 0)
    assert world.seen().startswith("1.2q 2r 3S")


def test_who_arrives_after_a_switch_back_is_not_displaced() -> None:
    world = crowded()
    started(world, "new")
    world.decide(c.ChangeProperties("back", "ann", '{"run_strategy":{"rule":"PARALLEL","workflow_concurrency":3}}'))
    started(world, "later")
    assert counts(world)[1] == 1

    drain(world)

    assert counts(world) == (0, 3, 0)
    assert {status(world, one) for one in range(2, MANY + 2)} == {InstanceStatus.STOPPED}


@pytest.mark.parametrize("after", ["FIRST_ONLY", "LAST_ONLY"])
def test_nobody_can_be_the_only_one_while_displaced_ones_are_left(after: str) -> None:
    world = crowded()
    started(world, "new")

    events = world.decide(c.ChangeProperties("to", "ann", f'{{"run_strategy":"{after}"}}'))

    assert only(c.CommandRefused, events).refusal == "PRECONDITION_FAILED"


@pytest.mark.parametrize(("action", "letter"), [(Action.STOP, "S"), (Action.KILL, "F")])
def test_who_is_displaced_may_be_ended_by_a_user_first(action: Action, letter: str) -> None:
    world = crowded()
    started(world, "new")

    world.decide(c.TerminateInstance("enough", "bob", MANY, action, ""))
    drain(world)

    assert status(world, MANY) is STATUSES[letter]
    assert counts(world) == (1, 1, 0)


def test_ending_all_while_displaced_ones_are_left_leaves_nobody() -> None:
    world = crowded()
    started(world, "new")

    world.decide(c.TerminateInstances("enough", "bob", Action.STOP, ""))
    drain(world)

    assert counts(world) == (0, 1, 0)
    assert world.replayed() == world.state.fingerprint()


def test_a_repeated_request_to_go_on_does_nothing() -> None:
    world = crowded()
    started(world, "new")
    key, value = world.continued[0]
    drain(world)

    assert world.decide(value, key) == []
    assert not world.continued
