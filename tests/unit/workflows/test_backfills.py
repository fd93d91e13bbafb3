"""Backfills: one instance for each slot, in a lane beside the run strategy."""

import json
from typing import Any

import pytest

from kapelle.processors.calendar import Schedule, ScheduleType
from kapelle.processors.params.stored import restored
from kapelle.processors.workflows.backfills import ALIVE_MAX, SLOTS_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, BackfillAction, BackfillStatus
from tests.unit.workflows.test_ticks import DAY_MS, at, cron, world_of
from tests.unit.workflows.world import KEY, World, only

DAILY = Schedule(type=ScheduleType.CRON, cron="0 5 * * *")
FIRST, LAST = at("2026-01-01T00:00:00"), at("2026-01-10T23:59:59")


def start(world: World, **fields: Any) -> list[Any]:
    asked: dict[str, Any] = {
        "request_id": world.fresh(),
        "author": "ann",
        "backfill_id": "b",
        "schedule": DAILY.json(),
        "from_ms": FIRST,
        "to_ms": LAST,
    }
    return world.do(c.StartBackfill(**{**asked, **fields}))


def act(world: World, action: BackfillAction, **fields: Any) -> list[Any]:
    backfill_id = fields.pop("backfill_id", "b")
    return world.do(c.ActOnBackfill(world.fresh(), "bob", backfill_id, action, **fields))


def go_on(world: World) -> list[Any]:
    """Let the timers of backfills fire."""
    return world.pass_time(world.now_ms)


def running(world: World) -> list[int]:
    return [instance_id for (_, instance_id), _ in world.state.reader.running.prefix((KEY,))]


def finish(world: World, *, most: int = 1_000) -> list[Any]:
    """End instances, the oldest first, until none is left."""
    events = go_on(world)
    for _ in range(most):
        alive = running(world)
        if not alive:
            return events
        events += world.end(alive[0])
        events += go_on(world)
    raise AssertionError("Expected an end")


def slots(events: list[Any]) -> list[int]:
    """The slots for which an instance was started, in this order."""
    return [
        slot.scheduled_at_ms
        for event in events
        if isinstance(event, c.BackfillProgressed)
        for slot in event.slots
        if slot.is_new
    ]


def existing(events: list[Any]) -> int:
    return sum(event.existing for event in events if isinstance(event, c.BackfillProgressed))


def row_of(world: World) -> Any:
    return world.state.reader.backfills.get((KEY, "b"))


def all_slots() -> list[int]:
    return [FIRST + 5 * 3_600_000 + n * DAY_MS for n in range(10)]


# Slots --------------------------------------------------------------------------------------------------------------


def test_each_slot_starts_one_instance_oldest_first() -> None:
    world = world_of()

    asked = start(world)
    events = finish(world)

    assert only(c.BackfillStarted, asked).total == 10
    assert only(c.CommandSettled, asked).count == 10
    assert slots(events) == all_slots()
    assert row_of(world).status is BackfillStatus.COMPLETED


def test_the_newest_slot_may_come_first() -> None:
    world = world_of()
    start(world, is_newest_first=True)

    assert slots(finish(world)) == all_slots()[::-1]


def test_never_more_instances_run_than_the_concurrency() -> None:
    world = world_of()
    start(world, concurrency=3)
    go_on(world)

    assert len(running(world)) == 3
    world.end(2)
    go_on(world)
    assert running(world) == [1, 3, 4]


def test_an_instance_computes_with_its_slot_and_the_given_parameters() -> None:
    params = {
        "day": {"type": "STRING", "expression": "return TARGET_RUN_DATE;"},
        "due": {"type": "LONG", "expression": 'return params.getFromInstance("SCHEDULED_TIME");'},
        "size": {"type": "LONG", "value": 1},
    }
    world = world_of(params=params)
    start(world, run_params='{ "size": {"type": "LONG", "value": 7}}')

    instance = only(c.InstanceCreated, go_on(world))

    values = restored(instance.params, {})
    assert {name: values[name].value for name in params} == {"day": "20260101", "due": all_slots()[0], "size": 7}
    assert (json.loads(instance.initiator)["backfill_id"], instance.backfill_id) == ("b", "b")


def test_empty_parameters_with_a_blank_are_no_parameters() -> None:
    world = world_of()
    start(world, run_params="{ }")

    assert len(slots(finish(world))) == 10


# Once ---------------------------------------------------------------------------------------------------------------


def test_the_same_backfill_again_continues_and_doubles_nothing() -> None:
    world = world_of()
    start(world)
    go_on(world)
    world.end(1)
    go_on(world)
    act(world, BackfillAction.CANCEL)
    world.end(2)

    start(world, concurrency=4)
    events = finish(world)

    assert existing(events) == 2
    assert slots(events) == all_slots()[2:]


def test_a_backfill_that_has_completed_finds_nothing_to_start() -> None:
    world = world_of()
    start(world)
    finish(world)

    start(world)
    events = finish(world)

    assert (slots(events), existing(events)) == ([], 10)
    assert row_of(world).status is BackfillStatus.COMPLETED


def test_an_overlapping_backfill_starts_only_what_is_missing() -> None:
    world = world_of()
    start(world)
    finish(world)

    start(world, backfill_id="longer", to_ms=LAST + 2 * DAY_MS)
    events = finish(world)

    assert (len(slots(events)), existing(events)) == (2, 10)


def test_other_parameters_are_other_slots() -> None:
    world = world_of()
    start(world)
    finish(world)

    start(world, backfill_id="other", run_params='{"size": {"type": "LONG", "value": 7}}')

    assert len(slots(finish(world))) == 10


def test_a_rerun_starts_each_slot_once_more() -> None:
    world = world_of()
    start(world)
    finish(world)

    start(world, backfill_id="again", is_rerun=True)
    assert len(slots(finish(world))) == 10
    start(world, backfill_id="again", is_rerun=True)
    assert slots(finish(world)) == []


def test_a_backfill_of_a_time_trigger_starts_the_ticks_that_have_no_instance() -> None:
    world = world_of(cron("0 5 * * *"))
    world.jump(at("2026-03-05T12:00:00"))  # of four ticks only the latest starts
    [trigger_id] = [name for (_, name), _ in world.state.reader.schedules.prefix((KEY,))]

    start(world, trigger_id=trigger_id, from_ms=at("2026-03-02T00:00:00"), to_ms=at("2026-03-05T23:00:00"))
    go_on(world)
    world.end(1)
    events = finish(world)

    assert (len(slots(events)) + 1, existing(events)) == (3, 1)


def test_the_same_id_with_another_period_is_refused() -> None:
    world = world_of()
    start(world)

    refused = only(c.CommandRefused, start(world, to_ms=LAST + DAY_MS))

    assert (refused.refusal, "choose another id" in refused.message) == ("CONFLICT", True)


def test_the_concurrency_of_a_backfill_that_runs_cannot_be_changed() -> None:
    world = world_of()
    start(world)

    assert "cancel it first" in only(c.CommandRefused, start(world, concurrency=2)).message


# The lane -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", ["SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "SERIAL_LATEST_ONLY"]
)
def test_a_backfill_and_the_run_strategy_do_not_see_each_other(strategy: str) -> None:
    world = world_of(strategy=strategy)
    start(world, concurrency=2)
    go_on(world)
    assert running(world) == [1, 2]

    world.start("a")
    assert running(world) == [1, 2, 3]
    world.start("b")
    world.end(1)
    go_on(world)

    assert world.seen().startswith("1✓ 2r ")
    assert [row.backfill_id for _, row in world.state.reader.running.prefix((KEY,))].count("b") == 2


def test_a_failed_instance_of_a_backfill_does_not_block_a_strictly_sequential_workflow() -> None:
    world = world_of(strategy="STRICT_SEQUENTIAL")
    start(world)
    go_on(world)

    world.fail(1)
    go_on(world)
    world.start("a")

    assert world.seen() == "1F 2r 3r"


def test_a_restart_of_an_instance_of_a_backfill_is_an_ordinary_run() -> None:
    world = world_of(strategy="SEQUENTIAL")
    start(world, to_ms=FIRST + DAY_MS)
    go_on(world)
    world.fail(1)
    assert row_of(world).running == 0

    world.restart(1)
    counts = world.state.reader.counts.get((KEY,))

    assert counts is not None
    assert (counts.running, row_of(world).running) == (1, 0)


# Acting -------------------------------------------------------------------------------------------------------------


def test_a_paused_backfill_starts_nothing_until_it_is_resumed() -> None:
    world = world_of()
    start(world)
    go_on(world)

    act(world, BackfillAction.PAUSE)
    world.end(1)
    assert go_on(world) == []
    act(world, BackfillAction.RESUME)

    assert len(slots(finish(world))) == 9


def test_a_cancelled_backfill_lets_its_instances_run() -> None:
    world = world_of()
    start(world, concurrency=2)
    go_on(world)

    act(world, BackfillAction.CANCEL)

    assert running(world) == [1, 2]
    world.end(1)
    assert go_on(world) == []
    assert row_of(world).status is BackfillStatus.CANCELLED


def test_a_cancelled_backfill_may_stop_its_instances() -> None:
    world = world_of(strategy="PARALLEL")
    start(world, concurrency=2)
    go_on(world)
    world.start("steady")

    settled = only(c.CommandSettled, act(world, BackfillAction.CANCEL, is_stopping=True))

    assert settled.count == 2
    assert [key for key, _ in world.sent_of(c.TerminateRun)] == ["etl/1", "etl/2"]


@pytest.mark.parametrize("action", [BackfillAction.PAUSE, BackfillAction.RESUME])
def test_a_backfill_that_has_ended_is_neither_paused_nor_resumed(action: BackfillAction) -> None:
    world = world_of()
    start(world)
    finish(world)

    assert only(c.CommandRefused, act(world, action)).refusal == "CONFLICT"


def test_a_backfill_that_is_not_there_is_not_found() -> None:
    assert only(c.CommandRefused, act(world_of(), BackfillAction.PAUSE)).refusal == "NOT_FOUND"


def test_a_stopped_workflow_stops_the_instances_of_its_backfills_too() -> None:
    world = world_of()
    start(world, concurrency=2)
    go_on(world)

    world.terminate_all(Action.STOP)

    assert len(world.sent_of(c.TerminateRun)) == 2


def test_a_backfill_pauses_when_no_version_is_active() -> None:
    world = world_of()
    start(world)
    go_on(world)
    world.do(c.DeactivateWorkflow(world.fresh(), "ann"))
    world.end(1)

    changed = only(c.BackfillChanged, go_on(world))

    assert (changed.status, changed.reason) == (BackfillStatus.PAUSED, "No version of the workflow is active")


def test_a_workflow_is_not_deleted_while_instances_of_a_backfill_run() -> None:
    world = world_of()
    start(world)
    go_on(world)

    assert only(c.CommandRefused, world.do(c.DeleteWorkflow(world.fresh(), "ann"))).refusal == "CONFLICT"
    act(world, BackfillAction.CANCEL)
    world.end(1)
    world.do(c.DeleteWorkflow(world.fresh(), "ann"))
    assert row_of(world) is None


# Refused ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"schedule": Schedule(type=ScheduleType.CRON, cron="* * * * *").json(), "to_ms": at("2045-01-05T00:00:00")},
            "9,99",
        ),
        ({"to_ms": FIRST + 1}, "found 0"),
        ({"to_ms": FIRST - 1}, "begins before it ends"),
        ({"concurrency": 0}, "concurrency of 1 to 100"),
        ({"concurrency": 101}, "concurrency of 1 to 100"),
        ({"backfill_id": ""}, "backfill_id of 1 to 64"),
        ({"backfill_id": "a/b"}, "without slashes"),
        ({"schedule": "{"}, "Expected a schedule"),
        ({"schedule": '{"type":"CRON","cron":"61 * * * *"}'}, "Expected a schedule"),
        ({"schedule": '{"type":"CRON","cron":"0 5 * * *","timezone":"Mars/Base"}'}, "Expected a schedule"),
        ({"schedule": '{"type":"INTERVAL","interval_ms":0}'}, "interval of at least 1000 ms"),
        ({"trigger_id": "none-such"}, "Expected a time trigger"),
        ({"run_params": "[]"}, "JSON object"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(fields: dict[str, Any], expected: str) -> None:
    world = world_of()

    refused = only(c.CommandRefused, start(world, **fields))

    assert expected in refused.message
    assert world.pass_time(world.now_ms) == []


def test_ten_million_slots_are_refused() -> None:
    every_second = Schedule(type=ScheduleType.INTERVAL, interval_ms=1_000)
    world = world_of()

    refused = only(c.CommandRefused, start(world, schedule=every_second.json(), to_ms=FIRST + 10_000_000_000 - 1))

    assert refused.message == f"Expected a period with 1 to {SLOTS_MAX:,} slots, but found 10,000,000"


def test_a_workflow_has_a_bounded_number_of_backfills_at_a_time() -> None:
    world = world_of()
    for number in range(ALIVE_MAX):
        start(world, backfill_id=f"b{number}", run_params=json.dumps({"n": {"type": "LONG", "value": number}}))

    assert only(c.CommandRefused, start(world)).refusal == "CONFLICT"


def test_history_alone_makes_the_same_tables() -> None:
    world = world_of()
    start(world, concurrency=3)
    go_on(world)
    world.end(2)
    go_on(world)
    act(world, BackfillAction.PAUSE)

    assert world.replayed() == world.state.fingerprint()
