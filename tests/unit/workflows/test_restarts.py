"""New runs of instances that have ended."""

import json

import pytest

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus
from tests.unit.workflows.world import NOW_MS, World, only, types

PARAMS = {"rows": {"type": "LONG", "value": 10}, "double": {"type": "LONG", "expression": "rows * 2"}}
BROKEN = '{"rows":{"type":"LONG","expression":"1 / 0"}}'


def world_of(strategy: object, *starts: str) -> World:
    world = World()
    world.push({"params": PARAMS}, run_strategy=strategy)
    for request_id in starts:
        world.start(request_id)
    return world


@pytest.mark.parametrize("status", list(InstanceStatus)[3:7])
def test_a_restart_is_a_new_run_of_the_same_instance(status: InstanceStatus) -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1, status)

    events = world.restart(1, params='{"rows":7}', run_params='{"rows":{"type":"LONG","value":7}}')

    assert types(events) == ["InstanceCreated", "InstanceLaunched"]
    told = world.sent_of(c.StartRun)[-1][1]
    assert (told.instance_id, told.run_id, told.version) == (1, 2, 1)
    assert told.params == '{"rows":7}'
    assert told.run_params == '{"rows":{"type":"LONG","value":7}}'
    assert told.restart == '{"policy":"RESTART_FROM_BEGINNING"}'
    assert told.correlation_id == "etl:1:1"


def test_a_restart_keeps_the_version_that_the_instance_began_with() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1)
    world.push(properties=None)

    assert only(c.InstanceCreated, world.restart(1)).version == 1


def test_a_repeated_restart_is_told_the_run_of_the_first() -> None:
    world = world_of("SEQUENTIAL", "a")
    world.end(1)
    world.restart(1, request_id="again")
    world.end(1, run_id=2)

    repeated = only(c.StartDuplicated, world.restart(1, request_id="again"))

    assert (repeated.instance_id, repeated.run_id) == (1, 2)


def test_an_instance_that_does_not_exist_is_not_found() -> None:
    refused = only(c.CommandRefused, world_of("SEQUENTIAL").restart(1))

    assert refused.refusal == "NOT_FOUND"
    assert refused.message == "Expected instance 1 of workflow 'etl' to exist, but it does not"


@pytest.mark.parametrize(("instance_id", "state"), [(1, "IN_PROGRESS"), (2, "CREATED")])
def test_a_run_that_has_not_ended_is_a_conflict(instance_id: int, state: str) -> None:
    refused = only(c.CommandRefused, world_of("SEQUENTIAL", "a", "b").restart(instance_id))

    assert refused.refusal == "CONFLICT"
    assert refused.message == f"Expected run 1 of instance etl/{instance_id} to have ended, but it is {state}"


def test_first_only_stops_a_restart_while_another_runs_and_tells_runs() -> None:
    world = world_of("FIRST_ONLY", "a")
    world.end(1)
    world.start("b")

    created = only(c.InstanceCreated, world.restart(1))

    assert (created.status, created.run_id) == ("STOPPED", 2)
    assert world.sent[-1] == ("etl/1", c.EndQueuedRun(2, InstanceStatus.STOPPED, created.reason))
    assert created.reason == "Stopped by FIRST_ONLY: instance 2 run 1 is queued or running"


def test_first_only_forgets_the_failure_of_what_it_stops() -> None:
    world = world_of("FIRST_ONLY", "a")
    world.fail(1)
    world.start("b")

    world.restart(1)

    assert list(world.state.reader.failed.prefix()) == []


@pytest.mark.parametrize("strategy", ["LAST_ONLY", "SERIAL_LATEST_ONLY"])
def test_a_restart_that_waits_is_displaced_by_a_start_and_runs_is_told(strategy: str) -> None:
    world = world_of(strategy, "a")
    world.end(1)
    world.start("b")
    world.restart(1)
    assert world.seen() == "1.2q 2r"

    world.start("c")

    assert world.seen() == "1.2S 2r 3q"
    assert [(key, told.run_id) for key, told in world.sent_of(c.EndQueuedRun)] == [("etl/1", 2)]


@pytest.mark.parametrize(("action", "status"), [(Action.STOP, "STOPPED"), (Action.KILL, "FAILED")])
def test_a_restart_that_waits_and_is_ended_by_a_user_is_told_to_runs(action: Action, status: str) -> None:
    world = world_of("SEQUENTIAL", "a", "b")
    world.end(1)
    world.restart(1)

    world.terminate(1, action)

    assert [(key, told.status) for key, told in world.sent_of(c.EndQueuedRun)] == [("etl/1", status)]


def test_the_first_run_of_an_instance_that_ends_in_the_queue_is_unknown_to_runs() -> None:
    world = world_of("SEQUENTIAL", "a", "b")

    world.terminate(2)

    assert not world.sent_of(c.EndQueuedRun)


def test_an_instance_that_never_ran_is_restarted_with_the_parameters_of_its_creation() -> None:
    world = world_of("FIRST_ONLY", "a", "b")
    world.end(1)
    world.now_ms += 60_000

    world.restart(2, params=None)

    told = world.sent_of(c.StartRun)[-1][1]
    assert (told.instance_id, told.run_id) == (2, 2)
    assert json.loads(told.params) == {"RUN_TS": NOW_MS, "rows": 10, "double": 20}


def test_an_instance_that_never_ran_takes_over_its_values_where_the_restart_gives_no_others() -> None:
    world = world_of("FIRST_ONLY", "a", "b")
    world.end(1)
    world.now_ms += 60_000

    world.restart(2, params=None, run_params='{"rows":{"type":"LONG","value":50}}')

    told = world.sent_of(c.StartRun)[-1][1]
    assert json.loads(told.params) == {"RUN_TS": NOW_MS, "rows": 50, "double": 20}


def test_an_instance_whose_parameters_failed_is_evaluated_anew() -> None:
    world = world_of("SEQUENTIAL")
    world.start("a", run_params=BROKEN, persist_failed_run=True)
    assert only(c.CommandRefused, world.restart(1, params=None)).refusal == "INVALID"

    world.restart(1, params=None, run_params='{"rows":{"type":"LONG","value":3}}')

    told = world.sent_of(c.StartRun)[-1][1]
    assert json.loads(told.params) == {"RUN_TS": NOW_MS, "rows": 3, "double": 6}


def test_a_stopped_instance_that_never_ran_can_be_restarted_twice() -> None:
    world = world_of("FIRST_ONLY", "a", "b")
    world.restart(2, params=None)
    world.end(1)

    world.restart(2, params=None)

    assert world.seen() == "1✓ 2.3r"
    assert json.loads(world.sent_of(c.StartRun)[-1][1].params)["rows"] == 10


def test_history_rebuilds_the_tables_of_restarted_instances() -> None:
    world = world_of("LAST_ONLY", "a", "b", "c")
    world.end(1)
    world.restart(1)
    world.restart(2, params=None)
    world.end(3, InstanceStatus.FAILED)

    assert world.replayed() == world.state.fingerprint()
