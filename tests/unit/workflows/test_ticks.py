"""Ticks: when they start an instance, what it computes with, and what becomes of those that were missed."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kapelle.processors.params.stored import restored
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.processors.workflows.catch_up import CAUGHT_UP_MAX, ON_TIME_MS
from kapelle.processors.workflows.slots import tick_request_id
from kapelle.processors.workflows.starts import STARTS_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing import Engine
from tests.unit.workflows.world import KEY, World, only, types

DAY_MS = 86_400_000
PARALLEL = {"rule": "PARALLEL", "workflow_concurrency": 1000}


def at(text: str) -> int:
    """A time in UTC, in milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


START_MS = at("2026-03-01T12:00:00")


def cron(text: str = "0 5 * * *", **fields: Any) -> dict[str, Any]:
    return {"type": "CRON", "cron": text, **fields}


def world_of(*triggers: dict[str, Any], strategy: object = PARALLEL, **workflow: Any) -> World:
    world = World()
    world.now_ms = START_MS
    world.push({"time_triggers": list(triggers), **workflow}, run_strategy=strategy)
    return world


def created(events: list[Any]) -> list[c.InstanceCreated]:
    return [event for event in events if isinstance(event, c.InstanceCreated)]


def ticked(events: list[Any]) -> list[c.ScheduleTicked]:
    return [event for event in events if isinstance(event, c.ScheduleTicked)]


def started(events: list[Any]) -> list[int]:
    """The scheduled times of the ticks that have started an instance."""
    return [tick.scheduled_at_ms for event in ticked(events) for tick in event.ticks if tick.instance_id is not None]


def passed_over(events: list[Any]) -> int:
    return sum(event.passed_over for event in ticked(events))


def days(first: str, count: int) -> list[int]:
    begin = datetime.fromisoformat(first).replace(tzinfo=UTC)
    return [int((begin + timedelta(days=n)).timestamp() * 1000) for n in range(count)]


# In time ------------------------------------------------------------------------------------------------------------


def test_a_tick_starts_one_instance_when_it_comes() -> None:
    world = world_of(cron())

    before = world.pass_time(at("2026-03-02T04:59:59.999"))
    events = world.pass_time(at("2026-03-02T05:00:00"))

    assert before == []
    assert types(events) == ["ScheduleTicked", "InstanceCreated", "InstanceLaunched"]
    assert world.seen() == "1r"


def test_a_tick_computes_with_its_scheduled_time() -> None:
    params = {
        "day": {"type": "STRING", "expression": "return TARGET_RUN_DATE;"},
        "due": {"type": "LONG", "expression": 'return params.getFromInstance("SCHEDULED_TIME");'},
        "kind": {"type": "STRING", "expression": 'return params.getFromInstance("INITIATOR_TYPE");'},
    }
    world = world_of(cron(timezone="Asia/Tokyo"), params=params)

    [instance] = created(world.jump(at("2026-03-03T07:00:00")))

    values = restored(instance.params, {})
    assert {name: values[name].value for name in ("RUN_TS", "day", "due", "kind")} == {
        "RUN_TS": at("2026-03-02T20:00:00"),
        "day": "20260303",
        "due": at("2026-03-02T20:00:00"),
        "kind": "TIME",
    }


def test_the_event_of_a_tick_names_its_instance_and_the_next_time() -> None:
    world = world_of(cron())

    event = only(c.ScheduleTicked, world.pass_time(at("2026-03-02T05:00:00")))

    scheduled = at("2026-03-02T05:00:00")
    request_id = tick_request_id(KEY, event.trigger_id, scheduled)
    assert event.ticks == (c.Tick(scheduled, request_id, 1),)
    assert (event.after_ms, event.next_at_ms) == (scheduled, at("2026-03-03T05:00:00"))


def test_several_triggers_of_a_workflow_tick_by_themselves() -> None:
    world = world_of(cron("0 5 * * *"), cron("30 5 * * *"), {"type": "PREDEFINED", "expression": "@hourly"})

    events = world.pass_time(at("2026-03-02T06:00:00"))

    assert len(started(events)) == 18 + 2


def test_a_trigger_without_another_time_ticks_no_more() -> None:
    world = world_of(cron("0 0 5 2 3 ? 2026"))

    assert started(world.pass_time(at("2030-01-01T00:00:00"))) == [at("2026-03-02T05:00:00")]


def test_a_delay_is_added_to_the_start_but_not_to_the_scheduled_time() -> None:
    world = world_of(cron(fuzzy_max_delay="10m"))
    event = only(c.SchedulesArmed, [event for _, event in world.history])
    [armed] = event.armed
    assert armed.next_at_ms is not None
    assert armed.next_due_ms is not None
    assert armed.next_at_ms <= armed.next_due_ms < armed.next_at_ms + 600_000

    assert world.pass_time(armed.next_due_ms - 1) == []
    assert started(world.pass_time(armed.next_due_ms)) == [armed.next_at_ms]


def test_a_run_strategy_applies_to_a_tick() -> None:
    world = world_of(cron(), strategy="FIRST_ONLY")
    world.start("a")

    world.pass_time(at("2026-03-02T05:00:00"))

    assert world.seen() == "1r 2S"


def test_a_tick_whose_parameters_cannot_be_evaluated_is_a_failed_instance() -> None:
    broken = 'return 1 / (params.getFromInstance("SCHEDULED_TIME") > 0 ? 0 : 1);'
    params = {"broken": {"type": "LONG", "expression": broken}}
    world = world_of(cron(), params=params)

    world.pass_time(at("2026-03-02T05:00:00"))

    assert world.seen() == "1F"


def test_a_tick_that_is_refused_keeps_the_reason_and_does_not_stop_the_next() -> None:
    # A parameter that no start may change: the start of the tick gives RUN_TS.
    params = {"RUN_TS": {"type": "LONG", "value": 7, "mode": "CONSTANT"}}
    world = world_of(cron(), params=params)

    events = world.pass_time(at("2026-03-03T05:00:00"))

    assert len(ticked(events)) == 2
    assert all(tick.instance_id is not None or tick.reason for event in ticked(events) for tick in event.ticks)


# Missed -------------------------------------------------------------------------------------------------------------


def test_of_missed_ticks_the_latest_starts_by_default() -> None:
    world = world_of(cron())

    events = world.jump(at("2026-03-11T12:00:00"))

    assert started(events) == [at("2026-03-11T05:00:00")]
    event = only(c.ScheduleTicked, events)
    assert (event.passed_over, event.passed_upto_ms) == (9, at("2026-03-10T05:00:00"))
    assert "LATEST" in event.reason


def test_all_missed_ticks_start_oldest_first_in_batches() -> None:
    world = world_of(cron(catch_up="ALL"))

    events = world.jump(at("2026-03-26T12:00:00"))

    assert started(events) == days("2026-03-02T05:00:00", 25)
    assert [len(event.ticks) for event in ticked(events)] == [STARTS_MAX, STARTS_MAX, 5]
    assert passed_over(events) == 0


def test_the_oldest_of_too_many_missed_ticks_are_passed_over() -> None:
    world = world_of(cron("0 * * * *", catch_up="ALL"))

    events = world.jump(START_MS + (CAUGHT_UP_MAX + 50) * 3_600_000)

    assert len(started(events)) == CAUGHT_UP_MAX
    assert passed_over(events) == 50
    assert started(events)[-1] == START_MS + (CAUGHT_UP_MAX + 50) * 3_600_000


def test_no_missed_tick_starts_if_none_is_to_be_caught_up() -> None:
    world = world_of(cron(catch_up="NONE"))

    events = world.jump(at("2026-03-11T12:00:00"))

    assert (started(events), passed_over(events)) == ([], 10)
    assert started(world.pass_time(at("2026-03-12T05:00:00"))) == [at("2026-03-12T05:00:00")]


def test_a_tick_that_is_a_minute_late_is_on_time() -> None:
    in_time, late = world_of(cron(catch_up="NONE")), world_of(cron(catch_up="NONE"))
    tick = at("2026-03-02T05:00:00")

    assert started(in_time.jump(tick + ON_TIME_MS)) == [tick]
    assert started(late.jump(tick + ON_TIME_MS + 1)) == []


@pytest.mark.parametrize("catch_up", ["ALL", "LATEST", "NONE"])
def test_each_missed_tick_is_started_or_counted(catch_up: str) -> None:
    world = world_of(cron(catch_up=catch_up))

    events = world.jump(at("2026-06-09T05:00:00"))

    assert len(started(events)) + passed_over(events) == 100


def test_170_years_of_missed_ticks_are_counted_in_one_decision() -> None:
    world = world_of(cron("*/2 * * * *"))

    events = world.jump(at("2196-01-01T00:00:00"))

    assert len(events) == 3
    assert passed_over(events) == (at("2196-01-01T00:00:00") - START_MS) // 120_000 - 1


@pytest.mark.parametrize(("strategy", "seen"), [("LAST_ONLY", "1S 2S 3r"), ("FIRST_ONLY", "1r 2S 3S")])
def test_missed_ticks_arrive_as_one_batch(strategy: str, seen: str) -> None:
    world = world_of(cron(catch_up="ALL"), strategy=strategy)

    world.jump(at("2026-03-04T12:00:00"))

    assert world.seen() == seen


# A clock that was wrong -------------------------------------------------------------------------------------------


def test_a_tick_waits_for_the_wall_clock_if_the_partition_is_ahead_of_it() -> None:
    world = world_of(cron())
    world.state.be_ahead(3_600_000)

    early = world.pass_time(at("2026-03-02T05:59:59"))
    events = world.pass_time(at("2026-03-02T06:00:00"))

    assert started(early) == []
    assert started(events) == [at("2026-03-02T05:00:00")]
    assert len(early) < 10


def test_a_trigger_that_is_armed_while_the_partition_is_ahead_ticks_from_the_wall_clock_on() -> None:
    world = World()
    world.now_ms = at("2200-01-01T00:00:00")
    world.state.be_ahead(world.now_ms - START_MS)
    world.push({"time_triggers": [cron()]})

    events = world.pass_time(world.now_ms + DAY_MS)

    assert started(events) == [at("2026-03-02T05:00:00")]


def test_a_clock_that_jumps_ahead_and_back_starts_no_tick_twice() -> None:
    engine = Engine()
    steps = [{"step": {"id": "load", "type": "NoOp"}}]
    workflow = {"id": KEY, "steps": steps, "time_triggers": [{"type": "PREDEFINED", "expression": "@hourly"}]}
    engine.push({"properties": {"owner": "ann", "run_strategy": PARALLEL}, "workflow": workflow})

    engine.advance(3_600_000)
    engine.clock.jump(5 * 3_600_000)
    engine.advance(60_000)
    engine.clock.jump(-5 * 3_600_000)
    engine.advance(10 * 3_600_000)

    events = engine.events(WORKFLOW_EVENTS, KEY)
    times = started(events)
    assert len(times) == len(set(times))
    assert len(times) + passed_over(events) == 11
    late = [event.at_ms - tick.scheduled_at_ms for event in ticked(events) for tick in event.ticks]
    assert all(ms >= 0 for ms in late)


# Once ---------------------------------------------------------------------------------------------------------------


def test_a_tick_that_was_started_before_its_position_moved_does_not_start_again() -> None:
    world = world_of(cron())
    [armed] = only(c.SchedulesArmed, [event for _, event in world.history]).armed
    scheduled = at("2026-03-02T05:00:00")
    world.trigger(tick_request_id(KEY, armed.trigger_id, scheduled), initiator='{"type":"TIME"}')

    events = world.pass_time(scheduled)

    assert types(events) == ["ScheduleTicked", "StartDuplicated"]
    [tick] = only(c.ScheduleTicked, events).ticks
    assert (tick.instance_id, tick.is_new) == (1, False)


def test_ten_years_of_a_daily_schedule_in_berlin_tick_once_on_each_day() -> None:
    world = world_of(cron("30 2 * * *", timezone="Europe/Berlin"))

    events = []
    for year in range(2026, 2036):
        events += world.pass_time(at(f"{year + 1}-03-01T12:00:00"))
        for instance in created(events[-1:]):
            world.end(instance.instance_id)

    assert len(started(events)) == 3_653
    assert len(set(started(events))) == 3_653
    assert passed_over(events) == 0


def test_history_alone_makes_the_same_tables() -> None:
    world = world_of(cron(), cron("0 * * * *", catch_up="ALL", fuzzy_max_delay="5m"))

    world.jump(at("2026-03-09T12:00:00"))
    world.pass_time(at("2026-03-12T12:00:00"))

    assert world.replayed() == world.state.fingerprint()


def test_a_decision_that_runs_out_of_time_passes_its_ticks_over() -> None:
    from kapelle.processors.effects import Emit
    from kapelle.processors.messages import Message, TimerDue
    from kapelle.processors.workflows import workflows

    world = world_of(cron())
    [(key, name, due_at_ms)] = world.state.due(at("2030-01-01T00:00:00"), 2)
    message = Message(key, TimerDue(name, due_at_ms), "0")

    effects = list(workflows.given_up[TimerDue](message, "out of time", world.state.reader, due_at_ms))

    [event] = [effect.value for effect in effects if isinstance(effect, Emit)]
    assert isinstance(event, c.ScheduleTicked)
    assert (event.passed_over, event.reason, event.after_ms) == (1, "out of time", due_at_ms)


def test_a_tick_starts_the_version_that_is_active_when_it_comes() -> None:
    world = world_of(cron())
    world.push({"time_triggers": [cron()], "description": "two"})

    [instance] = created(world.pass_time(at("2026-03-02T05:00:00")))

    assert (instance.version, json.loads(instance.initiator)["type"]) == (2, "TIME")
    assert instance.status is InstanceStatus.CREATED
