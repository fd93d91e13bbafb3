"""Stopping, killing and unblocking: one instance, or all of a workflow in batches."""

import pytest

from kapelle.processors.workflows.terminations import TERMINATED_MAX, UNBLOCKED_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus
from tests.unit.workflows.world import World, only, types


def world_of(strategy: object, *starts: str) -> World:
    world = World()
    world.push(run_strategy=strategy)
    for request_id in starts:
        world.start(request_id)
    return world


@pytest.mark.parametrize(("action", "seen"), [(Action.STOP, "1r 2S 3q"), (Action.KILL, "1r 2F 3q")])
def test_a_queued_instance_ends_at_once(action: Action, seen: str) -> None:
    world = world_of("SEQUENTIAL", "a", "b", "c")

    events = world.terminate(2, action)

    assert types(events) == ["TerminationRequested", "InstanceEnded", "CommandSettled"]
    ended = only(c.InstanceEnded, events)
    assert (ended.was_launched, ended.reason) == (False, "enough")
    assert world.seen() == seen
    assert not world.sent_of(c.TerminateRun)


def test_a_running_instance_is_told_to_end_and_has_ended_when_runs_says_so() -> None:
    world = world_of("SEQUENTIAL", "a", "b")

    events = world.terminate(1, Action.KILL, request_id="t")

    assert types(events) == ["TerminationRequested", "CommandSettled"]
    assert world.sent[-1] == ("etl/1", c.TerminateRun("t", "ann", 1, Action.KILL, "enough"))
    assert world.seen() == "1r 2q"
    world.fail(1)
    assert world.seen() == "1F 2r"


def test_a_run_is_told_once_and_a_kill_is_more_than_a_stop() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.terminate(1, Action.STOP)

    again = world.terminate(1, Action.STOP)
    harder = world.terminate(1, Action.KILL)
    softer = world.terminate(1, Action.STOP)

    assert types(again) == ["CommandSettled"]
    assert types(harder) == ["TerminationRequested", "CommandSettled"]
    assert types(softer) == ["CommandSettled"]
    assert [told.action for _, told in world.sent_of(c.TerminateRun)] == ["STOP", "KILL"]


def test_an_instance_that_is_in_the_wanted_state_stays_there() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1, InstanceStatus.STOPPED)

    settled = only(c.CommandSettled, world.terminate(1, Action.STOP))

    assert settled.reason == "The run is STOPPED already"


@pytest.mark.parametrize("status", [InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.TIMED_OUT])
def test_an_instance_that_has_ended_otherwise_cannot_be_stopped(status: InstanceStatus) -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1, status)

    refused = only(c.CommandRefused, world.terminate(1, Action.STOP))

    assert refused.refusal == "INVALID"
    assert refused.message == f"Expected instance etl/1 to be queued or running, but it is {status}"


def test_a_repeated_request_does_not_end_a_later_run() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.terminate(1, request_id="t")
    world.end(1, InstanceStatus.STOPPED)
    world.restart(1)

    assert types(world.terminate(1, request_id="t")) == ["CommandSettled"]
    assert world.seen() == "1.2r"


def test_all_instances_of_a_workflow_are_ended() -> None:
    world = world_of(2, "a", "b", "c", "d")

    events = world.terminate_all()

    progressed = only(c.TerminationProgressed, events)
    assert (progressed.count, progressed.is_last) == (4, True)
    assert world.seen() == "1r 2r 3S 4S"
    assert [key for key, _ in world.sent_of(c.TerminateRun)] == ["etl/1", "etl/2"]


def test_ending_all_of_nothing_is_answered() -> None:
    progressed = only(c.TerminationProgressed, world_of("SEQUENTIAL").terminate_all())

    assert (progressed.count, progressed.is_last) == (0, True)


def test_many_instances_are_ended_in_batches_that_leave_later_ones_alone() -> None:
    world = world_of("SEQUENTIAL", *(f"r{number}" for number in range(2 * TERMINATED_MAX + 5)))
    command = c.TerminateInstances("all", "ann", Action.STOP, "enough")

    first = world.decide(command)
    world.decide(c.StartInstances("ann", (c.Start("late"),)))
    assert len([event for event in first if isinstance(event, c.InstanceEnded)]) == TERMINATED_MAX - 1
    [(_, rest)] = world.continued
    assert (rest.after_instance_id, rest.upto_instance_id) == (TERMINATED_MAX, 2 * TERMINATED_MAX + 5)

    events = []
    while world.continued:
        key, value = world.continued.popleft()
        events += world.decide(value, key)
    progress = [(e.count, e.is_last) for e in events if isinstance(e, c.TerminationProgressed)]
    assert progress == [(TERMINATED_MAX, False), (5, True)]
    assert world.seen().split()[-1] == f"{2 * TERMINATED_MAX + 6}q"
    assert world.seen().count("q") == 1


def test_what_is_launched_between_batches_is_told_to_end_in_its_turn() -> None:
    world = world_of("SEQUENTIAL", *(f"r{number}" for number in range(TERMINATED_MAX + 5)))
    world.decide(c.TerminateInstances("all", "ann", Action.STOP, "enough"))
    [(key, rest)] = world.continued
    world.continued.clear()

    world.end(1, InstanceStatus.STOPPED)
    assert world.seen().split()[TERMINATED_MAX] == f"{TERMINATED_MAX + 1}r"
    world.do(rest, key)

    assert [key for key, _ in world.sent_of(c.TerminateRun)] == ["etl/1", f"etl/{TERMINATED_MAX + 1}"]
    assert "q" not in world.seen()


def test_a_repeated_request_to_end_all_leaves_what_came_after_it() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.terminate_all(request_id="all")
    world.end(1, InstanceStatus.STOPPED)
    world.start("b")

    assert types(world.terminate_all(request_id="all")) == ["CommandSettled"]
    assert world.seen() == "1S 2r"


def test_unblocking_is_for_failures() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1)

    refused = only(c.CommandRefused, world.unblock(1))

    assert refused.refusal == "INVALID"
    assert refused.message == "Expected instance etl/1 to have failed, but it is SUCCEEDED"


def test_a_failure_is_unblocked_once() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.fail(1)

    unblocked = only(c.InstanceUnblocked, world.unblock(1))
    again = world.unblock(1)

    assert (unblocked.instance_id, unblocked.author, unblocked.reason) == (1, "ann", "mended")
    assert only(c.CommandSettled, again).reason == "There is nothing to unblock"
    assert world.seen() == "1F"


def test_a_repeated_unblock_leaves_a_later_failure() -> None:
    world = world_of("STRICT_SEQUENTIAL", "a", "b", "c")
    world.fail(1)
    world.unblock(request_id="u")
    world.fail(2)

    assert types(world.unblock(request_id="u")) == ["CommandSettled"]
    assert world.seen() == "1F 2F 3q"


def test_an_unblock_that_found_nothing_does_not_unblock_a_later_failure() -> None:
    world = world_of("STRICT_SEQUENTIAL", "a")
    world.unblock(request_id="u")
    world.fail(1)

    world.unblock(request_id="u")

    assert len(list(world.state.reader.failed.prefix())) == 1


def test_many_failures_are_unblocked_in_batches_that_leave_later_ones_alone() -> None:
    world = world_of(1000)
    for batch in range(13):
        world.start(*(f"{batch}-{number}" for number in range(10)))
    for number in range(1, UNBLOCKED_MAX + 21):
        world.fail(number)
    assert not world.continued

    first = world.decide(c.UnblockInstances("u", "ann", "mended"))
    assert types(first) == ["InstanceUnblocked"] * UNBLOCKED_MAX
    world.decide(c.StartInstances("ann", (c.Start("late"),)))
    key, rest = world.continued.popleft()
    world.fail(131)
    second = world.decide(rest, key)

    assert types(second) == [*["InstanceUnblocked"] * 20, "CommandSettled"]
    assert not world.continued
    assert [number for (_, number), _ in world.state.reader.failed.prefix()] == [131]


def test_history_rebuilds_the_tables_after_all_of_it() -> None:
    world = world_of(2, "a", "b", "c", "d")
    world.terminate(1)
    world.terminate(4, Action.KILL)
    world.terminate_all(Action.KILL)
    world.fail(1)
    world.unblock()

    assert world.replayed() == world.state.fingerprint()
