"""Schedules and backfills in the test kit, and each rule of the table of cases in docs/schedules.md."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from kapelle.client import (
    FIRST_ONLY,
    LAST_ONLY,
    PARALLEL,
    SEQUENTIAL,
    SERIAL_LATEST_ONLY,
    STRICT_SEQUENTIAL,
    Workflow,
    expression,
)
from kapelle.processors.wiring import WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing import Engine, Refused, assert_run, assert_step
from tests.tidy.files import REPOSITORY

PAGE = (REPOSITORY / "docs" / "schedules.md").read_text()
TABLE = PAGE[PAGE.index("### What a change does") : PAGE.index("## Backfills")]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Check = Callable[[Engine], None]
RULES: dict[str, Check] = {}


def rule(name: str) -> Callable[[Check], Check]:
    """A check of a rule of the page."""

    def register(check: Check) -> Check:
        RULES[name] = check
        return check

    return register


@pytest.fixture
def at_midnight(engine: Engine) -> Engine:
    """An engine whose day begins."""
    engine.advance_to("2026-06-01")
    return engine


def flow(*crons: str, **trigger: Any) -> Workflow:
    """A workflow with these times; every day at noon, if there are none."""
    made = Workflow("etl", owner="ann")
    for cron in crons or ("0 12 * * *",):
        made.at(cron, **trigger)
    made.step("load", "NoOp")
    return made


def days(engine: Engine) -> list[str]:
    """The ticks that were started, as day and hour."""
    return [tick.time[8:13] for tick in engine.schedules("etl").ticks() if tick.instance_id is not None]


def deactivate(engine: Engine) -> None:
    engine.send(WORKFLOW_COMMANDS, "etl", c.DeactivateWorkflow(engine.request_id(), engine.author))


def activate(engine: Engine, version: int) -> None:
    engine.send(WORKFLOW_COMMANDS, "etl", c.ActivateVersion(engine.request_id(), engine.author, str(version)))


def disable(engine: Engine, *, is_disabled: bool) -> None:
    changes = f'{{"time_trigger_disabled": {str(is_disabled).lower()}}}'
    engine.send(WORKFLOW_COMMANDS, "etl", c.ChangeProperties(engine.request_id(), engine.author, changes))


def disarmed(engine: Engine) -> list[c.DisarmedSchedule]:
    events = engine.events(WORKFLOW_EVENTS, "etl")
    return [one for event in events if isinstance(event, c.SchedulesArmed) for one in event.disarmed]


# The rules of the page ------------------------------------------------------------------------------------------------


@rule("same times")
def a_version_with_the_same_times_continues(engine: Engine) -> None:
    engine.push(flow(catch_up="ALL"))
    [before] = engine.schedules("etl").armed
    engine.advance(days=1)
    engine.clock.jump(2 * DAY_MS)

    engine.push(flow(catch_up="ALL"))
    engine.advance(hours=12)

    assert list(engine.schedules("etl").armed) == [before]
    assert days(engine) == ["01T12", "02T12", "03T12", "04T12"]


@rule("new policy")
def another_policy_applies_from_now_on(engine: Engine) -> None:
    engine.push(flow(catch_up="NONE"))
    [before] = engine.schedules("etl").armed
    engine.push(flow(catch_up="ALL"))
    assert list(engine.schedules("etl").armed) == [before]

    engine.clock.jump(2 * DAY_MS)
    engine.advance(1)

    assert days(engine) == ["01T12", "02T12"]


@rule("new times")
def other_times_are_armed_from_now_on(engine: Engine) -> None:
    engine.push(flow())
    engine.advance(hours=13)

    engine.push(flow("0 6 * * *"))
    engine.advance(days=1)

    assert days(engine) == ["01T12", "02T06"]
    assert len(engine.schedules("etl").armed) == 1


@rule("push")
def a_push_keeps_some_times_and_replaces_others(engine: Engine) -> None:
    engine.push(flow("0 12 * * *", "0 18 * * *"))
    engine.advance(hours=13)

    engine.push(flow("0 12 * * *", "0 20 * * *"))
    engine.advance(days=1)

    assert days(engine) == ["01T12", "01T20", "02T12"]


@rule("no version")
def nothing_ticks_without_an_active_version(engine: Engine) -> None:
    engine.push(flow())
    deactivate(engine)

    engine.advance(days=3)

    assert (days(engine), engine.schedules("etl").armed) == ([], {})


@rule("activate")
def an_active_version_ticks_from_now_on(engine: Engine) -> None:
    engine.push(flow(catch_up="ALL"))
    deactivate(engine)
    engine.advance(days=3)

    activate(engine, 1)
    engine.advance(days=1)

    assert days(engine) == ["04T12"]


@rule("disable")
def disabled_ticks_are_not_caught_up(engine: Engine) -> None:
    engine.push(flow(catch_up="ALL"))
    disable(engine, is_disabled=True)
    engine.advance(days=3)
    assert days(engine) == []

    disable(engine, is_disabled=False)
    engine.advance(days=1)

    assert days(engine) == ["04T12"]


@rule("pause")
def a_pause_starts_nothing_until_the_resumption(engine: Engine) -> None:
    schedules = engine.schedules(engine.push(flow("0 12 * * *", "0 18 * * *", catch_up="ALL")))
    noon = next(trigger_id for trigger_id, times in schedules.armed.items() if times.cron == "0 12 * * *")

    schedules.pause(noon)
    engine.advance(days=1)
    schedules.pause()
    engine.advance(days=1)
    schedules.resume()
    engine.advance(days=1)

    assert days(engine) == ["01T18", "03T12", "03T18"]


@rule("sticky pause")
def a_new_version_of_a_paused_workflow_is_paused(engine: Engine) -> None:
    schedules = engine.schedules(engine.push(flow()))
    schedules.pause()

    engine.push(flow("0 6 * * *"))
    engine.advance(days=2)
    assert days(engine) == []
    schedules.resume()
    engine.advance(days=1)

    assert days(engine) == ["03T06"]


@rule("delete")
def a_deleted_workflow_has_no_ticks(engine: Engine) -> None:
    engine.push(flow())

    engine.send(WORKFLOW_COMMANDS, "etl", c.DeleteWorkflow(engine.request_id(), engine.author))
    engine.advance(days=2)

    assert (days(engine), engine.schedules("etl").armed) == ([], {})


@rule("due and disarmed")
def ticks_that_are_due_when_a_time_trigger_is_disarmed_are_counted(engine: Engine) -> None:
    engine.push(flow(catch_up="ALL"))
    engine.clock.jump(3 * DAY_MS)
    engine.runtime.publish(WORKFLOW_COMMANDS, "etl", c.PauseSchedules(engine.request_id(), engine.author))
    engine.advance(days=1)

    started, missed = len(days(engine)), sum(one.missed for one in disarmed(engine))

    assert started + missed == 3
    assert engine.schedules("etl").passed_over() == 0


@rule("clock forward")
def a_clock_that_jumps_forward_is_an_absence(engine: Engine) -> None:
    schedules = engine.schedules(engine.push(flow(catch_up="LATEST")))

    engine.clock.jump(10 * DAY_MS)
    engine.advance(days=1)

    assert days(engine) == ["10T12", "11T12"]
    assert schedules.passed_over() == 9


@rule("clock back")
def a_clock_that_jumps_back_starts_nothing_twice(engine: Engine) -> None:
    engine.push(flow(catch_up="ALL"))
    engine.advance(days=2)

    engine.clock.jump(-2 * DAY_MS)
    engine.advance(days=3)

    assert days(engine) == ["01T12", "02T12", "03T12"]


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_of_the_page_holds(at_midnight: Engine, name: str) -> None:
    RULES[name](at_midnight)


def test_each_rule_of_the_page_has_a_check() -> None:
    assert re.findall(r"^\| ([a-z ]+?) \| ", TABLE, re.MULTILINE)[1:] == [*RULES]


# The test kit ---------------------------------------------------------------------------------------------------------


def test_upcoming_times_are_those_of_all_time_triggers_or_of_one(at_midnight: Engine) -> None:
    schedules = at_midnight.schedules(at_midnight.push(flow("0 12 * * *", "0 18 * * *")))
    evening = next(trigger_id for trigger_id, times in schedules.armed.items() if times.cron == "0 18 * * *")

    assert [time[8:13] for time in schedules.upcoming(3)] == ["01T12", "01T18", "02T12"]
    assert [time[8:13] for time in schedules.upcoming(2, evening)] == ["01T18", "02T18"]


def test_an_interval_ticks_in_elapsed_time(at_midnight: Engine) -> None:
    made = Workflow("etl", owner="ann").every("90m", anchor="2026-06-01T00:30")
    made.step("load", "NoOp")
    at_midnight.push(made)

    at_midnight.advance(hours=4)

    assert [tick.time[11:16] for tick in at_midnight.schedules("etl").ticks()] == ["00:30", "02:00", "03:30"]


def test_an_unknown_time_trigger_is_refused(at_midnight: Engine) -> None:
    schedules = at_midnight.schedules(at_midnight.push(flow()))

    with pytest.raises(Refused, match="Expected a time trigger"):
        schedules.pause("nobody")


def test_a_late_tick_computes_with_its_scheduled_time(at_midnight: Engine) -> None:
    made = Workflow("etl", owner="ann").at("0 12 * * *", catch_up="ALL")
    scheduled = expression("params.getFromInstance('SCHEDULED_TIME')", "LONG")
    made.step("load", "load", params={"at": scheduled, "run_ts": expression("RUN_TS", "LONG")})
    schedules = at_midnight.schedules(at_midnight.push(made))

    at_midnight.clock.jump(DAY_MS)
    at_midnight.advance(hours=1)

    [tick] = schedules.ticks()
    run = at_midnight.runs("etl")[0]
    assert tick.time == "2026-06-01T12:00:00Z"
    assert run.params("load") == {"at": tick.scheduled_at_ms, "run_ts": tick.scheduled_at_ms}


# Backfills ------------------------------------------------------------------------------------------------------------


def working(strategy: Any = SEQUENTIAL) -> Workflow:
    """A workflow with a step for a worker."""
    made = Workflow("etl", owner="ann", run_strategy=strategy).at("0 12 * * *")
    made.step("load", "load")
    return made


def test_a_backfill_runs_so_many_at_a_time_and_ends_with_the_last(at_midnight: Engine) -> None:
    at_midnight.push(working())

    backfill = at_midnight.backfill("etl", "2026-01-01", "2026-01-03", concurrency=2)
    assert len(backfill.instances) == 2
    for task in at_midnight.tasks():
        task.succeed()

    assert (len(backfill.instances), backfill.status) == (3, "RUNNING")
    at_midnight.tasks()[-1].succeed()
    assert backfill.status == "COMPLETED"
    assert [slot.time[:10] for slot in backfill.slots()] == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_the_same_backfill_starts_nothing_twice(at_midnight: Engine) -> None:
    at_midnight.push(flow())
    first = at_midnight.backfill("etl", "2026-01-01", "2026-01-03")

    again = at_midnight.backfill("etl", "2026-01-01", "2026-01-03")
    wider = at_midnight.backfill("etl", "2026-01-01", "2026-01-04")
    once_more = at_midnight.backfill("etl", "2026-01-01", "2026-01-04", is_rerun=True)

    assert again.id == first.id
    assert [len(one.instances) for one in (first, wider, once_more)] == [3, 1, 4]


def test_the_newest_may_come_first_and_times_may_be_of_its_own(at_midnight: Engine) -> None:
    at_midnight.push(flow())

    backfill = at_midnight.backfill(
        "etl", "2026-03-28", "2026-03-30", every="1d", timezone="Europe/Berlin", is_newest_first=True
    )

    assert [slot.time for slot in backfill.slots()] == [
        "2026-03-29T22:00:00Z",
        "2026-03-28T23:00:00Z",
        "2026-03-27T23:00:00Z",
    ]


def test_a_backfill_is_paused_resumed_and_cancelled(at_midnight: Engine) -> None:
    at_midnight.push(working())
    backfill = at_midnight.backfill("etl", "2026-01-01", "2026-01-05", backfill_id="mine")

    backfill.pause()
    at_midnight.tasks()[-1].succeed()
    assert (backfill.status, len(backfill.instances)) == ("PAUSED", 1)
    backfill.resume()
    assert len(backfill.instances) == 2
    backfill.cancel(stop_running=True)

    assert backfill.status == "CANCELLED"
    assert_run(at_midnight.runs("etl")[-1], "STOPPED")


def test_ten_million_slots_are_refused_before_anything_is_started(at_midnight: Engine) -> None:
    at_midnight.push(flow())

    with pytest.raises(Refused, match="Expected a period with 1 to 100,000 slots, but found 10,000,080"):
        at_midnight.backfill("etl", "1990-01-01", "2028-01-10", every="2m")

    assert at_midnight.runs("etl") == []


@pytest.mark.parametrize(
    ("strategy", "statuses"),
    [
        (SEQUENTIAL, ["IN_PROGRESS", "CREATED"]),
        (STRICT_SEQUENTIAL, ["IN_PROGRESS", "CREATED"]),
        (FIRST_ONLY, ["IN_PROGRESS", "STOPPED"]),
        (LAST_ONLY, ["STOPPED", "IN_PROGRESS"]),
        (PARALLEL(2), ["IN_PROGRESS", "IN_PROGRESS"]),
        (SERIAL_LATEST_ONLY, ["IN_PROGRESS", "CREATED"]),
    ],
    ids=lambda value: getattr(value, "rule", ""),
)
def test_a_backfill_is_beside_each_run_strategy(at_midnight: Engine, strategy: Any, statuses: list[str]) -> None:
    at_midnight.push(working(strategy))
    backfill = at_midnight.backfill("etl", "2026-01-01", "2026-01-31", concurrency=3)

    others = [at_midnight.start("etl"), at_midnight.start("etl")]

    assert [other.status for other in others] == statuses
    lane = [run for run in at_midnight.runs("etl") if run.instance_id in backfill.instances]
    assert [run.status for run in lane] == ["IN_PROGRESS"] * 3


def test_a_failed_instance_of_a_backfill_blocks_nothing(at_midnight: Engine) -> None:
    at_midnight.push(working(STRICT_SEQUENTIAL))
    backfill = at_midnight.backfill("etl", "2026-01-01", "2026-01-02")

    first = at_midnight.runs("etl")[0]
    first.stop("KILL")

    assert_run(first, "FAILED")
    assert len(backfill.instances) == 2
    assert_step(at_midnight.start("etl"), "load", "STARTING")
