"""What the view knows of time triggers: their state, the next ticks, and what became of the last ones."""

import random
from typing import Any

import pytest

from kapelle.processors.calendar import times_of
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import Views
from kapelle.views.database import Database
from kapelle.views.queries import instances, schedules, workflows
from kapelle.views.queries.schedules import Shown, interval_text
from kapelle.views.schema_schedules import TICKS_KEPT
from tests.unit.views.gates import batched, of_workflows
from tests.unit.views.histories import deleted, dump, entries_of, fold, view_of, written
from tests.unit.views.scheduled import DAILY, DAY_MS, HOUR_MS, HOURLY, be_away, busy_schedules, pause, push, resume
from tests.unit.views.test_aging import aged
from tests.unit.views.test_folding import shuffled

FIVE = Shown()


def shown(views: Views, trigger_id: str = HOURLY.id, shown: Shown = FIVE) -> Any:
    found = views.read(schedules.schedule, "etl", trigger_id, shown)
    assert found is not None
    return found


def listed(views: Views, *, with_disarmed: bool = False) -> Any:
    found = views.read(schedules.listed, "etl", FIVE, with_disarmed=with_disarmed)
    assert found is not None
    return found["schedules"]


# Folding --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_partitions_and_batches_makes_no_difference_to_schedules(seed: int) -> None:
    engine, chance = busy_schedules(seed), random.Random(seed)
    points = entries_of(engine)

    one_by_one = [dump(written(shuffled(points, chance))) for _ in range(3)]
    in_batches = []
    for size in (1, 7, 1_000, 20_000):
        views = Views(EmbeddedJournal(engine.runtime), batch_records=size)
        fold(views)
        in_batches.append(dump(views.database))

    assert all(found == one_by_one[0] for found in (*one_by_one, *in_batches))
    assert one_by_one[0]["schedules"]
    assert one_by_one[0]["ticks"]
    assert one_by_one[0]["backfills"]


@pytest.mark.parametrize("seed", range(6))
def test_armed_triggers_and_their_next_ticks_are_those_of_the_engine(seed: int) -> None:
    engine = busy_schedules(seed)
    views = view_of(engine)

    for name in ("wf-0", "wf-1", "wf-2"):
        state = engine.state("workflows", name)
        rows = {trigger_id: row for (_, trigger_id), row in state.schedules.prefix((name,))}
        found = views.read(schedules.listed, name, FIVE)
        assert found is not None
        armed = {one["trigger_id"]: one for one in found["schedules"] if one["state"] in ("ARMED", "ENDED")}
        assert armed.keys() == rows.keys()
        for trigger_id, one in armed.items():
            assert one["next"][0] == {
                "scheduled_at": rows[trigger_id].next_at_ms,
                "due_at": rows[trigger_id].next_due_ms,
            }
            assert one["catch_up"] == rows[trigger_id].catch_up


# States ---------------------------------------------------------------------------------------------------------------


def test_an_armed_trigger_shows_its_next_ticks_and_its_last_with_their_instances() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    armed_ms = engine.clock.now_ms
    engine.advance(7 * HOUR_MS)

    found = shown(view_of(engine), shown=Shown(next=3, last=2))

    assert (found["state"], found["cron"], found["timezone"]) == ("ARMED", HOURLY.cron, "Europe/Berlin")
    assert (found["type"], found["interval"], found["catch_up"]) == ("CRON", None, "LATEST")
    assert (found["armed_at"], found["disarmed_at"], found["paused"]) == (armed_ms, None, None)
    first = times_of(HOURLY).next_after(engine.clock.now_ms)
    assert first is not None
    assert [tick["scheduled_at"] for tick in found["next"]] == [first, first + HOUR_MS, first + 2 * HOUR_MS]
    assert [tick["due_at"] for tick in found["next"]] == [first, first + HOUR_MS, first + 2 * HOUR_MS]
    last = found["last"][0]
    assert (last["fate"], last["scheduled_at"], last["late_ms"]) == ("STARTED", first - HOUR_MS, 0)
    assert (last["workflow_instance_id"], last["status"]) == (found["started"], "SUCCEEDED")
    assert len(found["last"]) == 2
    assert (found["started"], found["passed_over"], found["refused"], found["not_armed"]) == (7, 0, 0, 0)


def test_ticks_that_are_passed_over_are_one_entry_with_their_count_and_period() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    began_ms = engine.clock.now_ms
    be_away(engine, 5 * HOUR_MS)

    found = shown(view_of(engine))

    started, passed = found["last"]
    first = times_of(HOURLY).next_after(began_ms)
    assert first is not None
    assert (started["fate"], started["scheduled_at"]) == ("STARTED", first + 4 * HOUR_MS)
    assert started["late_ms"] == started["started_at"] - started["scheduled_at"] > 10 * 60_000
    assert (passed["fate"], passed["count"]) == ("PASSED_OVER", 4)
    assert (passed["from"], passed["to"]) == (first, first + 3 * HOUR_MS)
    assert "LATEST starts only the latest" in passed["reason"]
    assert (passed["scheduled_at"], passed["workflow_instance_id"], passed["late_ms"]) == (None, None, None)
    assert (found["started"], found["passed_over"]) == (1, 4)


def test_delayed_ticks_are_late_from_their_due_times() -> None:
    engine = Engine()
    push(engine, HOURLY.cron, fuzzy_max_delay="30 min")
    engine.advance(10 * HOUR_MS)

    found = shown(view_of(engine))

    assert found["fuzzy_max_delay_ms"] == 30 * 60_000
    assert any(tick["due_at"] > tick["scheduled_at"] for tick in found["last"])
    assert [tick["late_ms"] for tick in found["last"]] == [0] * 5
    assert any(tick["due_at"] > tick["scheduled_at"] for tick in found["next"])


def test_a_pause_is_shown_with_its_author_and_scope_until_it_is_resumed() -> None:
    engine = Engine()
    push(engine, HOURLY.cron, DAILY.cron)
    pause(engine, DAILY.id, reason="no data")
    pause(engine, reason="a move")

    views = view_of(engine)
    both = listed(views)
    resume(engine)
    fold(views)
    resumed = listed(views)

    assert [one["state"] for one in both] == ["PAUSED", "PAUSED"]
    assert [one["next"] for one in both] == [[], []]
    assert [one["paused"]["scope"] for one in both] == ["WORKFLOW", "WORKFLOW"]
    assert (both[0]["paused"]["by"], both[0]["paused"]["reason"]) == ("ann", "a move")
    assert [one["state"] for one in resumed] == ["ARMED", "ARMED"]
    assert [one["paused"] for one in resumed] == [None, None]


def test_one_trigger_is_paused_while_others_go_on() -> None:
    engine = Engine()
    push(engine, HOURLY.cron, DAILY.cron)
    pause(engine, DAILY.id)
    engine.advance(2 * HOUR_MS)

    hourly, daily = listed(view_of(engine))

    assert (hourly["state"], daily["state"]) == ("ARMED", "PAUSED")
    assert daily["paused"]["scope"] == "TRIGGER"
    assert daily["disarmed_at"] is not None
    assert hourly["started"] == 2


def test_a_trigger_that_was_never_armed_is_listed_with_its_state() -> None:
    engine = Engine()
    push(engine, time_trigger_disabled=True)
    push(engine, HOURLY.cron)

    (found,) = listed(view_of(engine))

    assert (found["state"], found["armed_at"], found["last"], found["started"]) == ("DISABLED", None, [], 0)


def test_due_ticks_of_a_trigger_that_is_disarmed_are_counted() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    gone = c.DisarmedSchedule(HOURLY.id, "All time triggers are paused", missed=3, after_ms=0)
    disarmed = c.SchedulesArmed("etl", 1, (), disarmed=(gone,), at_ms=3 * HOUR_MS + 5)
    entries = [entry for each in entries_of(engine).values() for entry in each]
    entries += of_workflows("etl", disarmed, first=1_000)

    for database in (written(entries), batched(entries)):
        with database.reading() as connection:
            found = schedules.schedule(connection, "etl", HOURLY.id, FIVE)
        assert found is not None
        assert found["not_armed"] == 3
        (tick,) = found["last"]
        assert (tick["fate"], tick["count"], tick["reason"]) == ("NOT_ARMED", 3, "All time triggers are paused")
        assert (tick["from"], tick["to"]) == (HOUR_MS, 3 * HOUR_MS)


def test_triggers_of_earlier_versions_are_inactive_and_listed_on_demand() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    engine.advance(HOUR_MS)
    push(engine, DAILY.cron)
    views = view_of(engine)

    assert [one["trigger_id"] for one in listed(views)] == [DAILY.id]
    now, before = listed(views, with_disarmed=True)
    assert (now["trigger_id"], now["workflow_version_id"]) == (DAILY.id, 2)
    assert (before["trigger_id"], before["state"], before["started"]) == (HOURLY.id, "INACTIVE", 1)
    assert before["workflow_version_id"] is None
    assert shown(views)["state"] == "INACTIVE"
    assert views.read(schedules.schedule, "etl", "nothing", FIVE) is None
    assert views.read(schedules.listed, "nobody", FIVE) is None


def test_without_an_active_version_the_triggers_of_the_latest_are_inactive() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    engine.send(WORKFLOW_COMMANDS, "etl", c.DeactivateWorkflow(engine.request_id(), "ann"))

    (found,) = listed(view_of(engine))

    assert (found["state"], found["next"], found["workflow_version_id"]) == ("INACTIVE", [], None)


def test_a_schedule_without_further_times_has_ended() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    ended = c.ArmedSchedule(HOURLY.id, HOURLY.json(), c.CatchUp.ALL, fuzzy_max_delay_ms=0, after_ms=5)
    entries = [entry for each in entries_of(engine).values() for entry in each]
    entries += of_workflows("etl", c.SchedulesArmed("etl", 1, (ended,), disarmed=(), at_ms=5), first=1_000)

    with written(entries).reading() as connection:
        found = schedules.schedule(connection, "etl", HOURLY.id, FIVE)

    assert found is not None
    assert (found["state"], found["next"], found["catch_up"]) == ("ENDED", [], "LATEST")


# Bounds ---------------------------------------------------------------------------------------------------------------


def tick_of(at: int, instance_id: int | None = 1, reason: str = "") -> c.Tick:
    return c.Tick(at * HOUR_MS, f"r{at}", instance_id, reason=reason)


def ticked(*ticks: c.Tick, at_ms: int = 9, **more: Any) -> c.ScheduleTicked:
    return c.ScheduleTicked("etl", HOURLY.id, ticks, after_ms=5, at_ms=at_ms, **more)


def test_only_the_last_ticks_of_a_trigger_stay_and_the_totals_count_all() -> None:
    armed = c.ArmedSchedule(HOURLY.id, HOURLY.json(), c.CatchUp.ALL, fuzzy_max_delay_ms=0, after_ms=5)
    events = [c.SchedulesArmed("etl", 1, (armed,), disarmed=(), at_ms=5)]
    many = [ticked(*(tick_of(10 * number + at) for at in range(10))) for number in range(30)]
    refused = ticked(tick_of(999, None, "too large"), passed_over=50, passed_after_ms=0, passed_upto_ms=9 * HOUR_MS)
    entries = of_workflows("etl", *events, *many, refused)

    for database in (written(entries), batched(entries)):
        rows = dump(database)
        with database.reading() as connection:
            totals = connection.execute("SELECT started, refused, passed_over, not_armed FROM schedules").fetchone()
        assert tuple(totals) == (300, 1, 50, 0)
        assert len(rows["ticks"]) == TICKS_KEPT
        assert rows["ticks"][-1][5] is not None


def test_a_workflow_that_is_deleted_takes_its_schedules_along_also_when_it_comes_back() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    engine.advance(3 * HOUR_MS)
    pause(engine, DAILY.id)
    deleted(engine, "etl")
    gone = dump(view_of(engine).database)
    push(engine, HOURLY.cron)
    engine.advance(HOUR_MS)

    found = shown(view_of(engine))

    assert [gone[table] for table in ("schedules", "ticks", "schedule_pauses")] == [[], [], []]
    assert (found["state"], found["started"]) == ("ARMED", 1)
    assert len(found["last"]) == 1


def test_triggers_that_were_disarmed_long_ago_leave_with_their_ticks() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    engine.advance(2 * HOUR_MS)
    push(engine, DAILY.cron)
    engine.advance(3 * DAY_MS)
    views = view_of(engine)

    aged(engine, views, 1)

    rows = dump(views.database)
    assert {row[1] for row in rows["schedules"]} == {DAILY.id}
    assert {row[1] for row in rows["ticks"]} == {DAILY.id}


# Elsewhere ------------------------------------------------------------------------------------------------------------


def test_the_instance_of_a_tick_shows_its_scheduled_time() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    be_away(engine, 3 * HOUR_MS)
    engine.start("etl")
    views = view_of(engine)

    tick, start = (views.read(instances.run, "etl", number) for number in (1, 2))

    assert tick is not None
    assert start is not None
    assert (tick["scheduled_at"], tick["backfill_id"]) == (shown(views)["last"][0]["scheduled_at"], None)
    assert (start["scheduled_at"], start["backfill_id"]) == (None, None)


def test_the_changes_of_schedules_are_on_the_timeline_of_the_workflow() -> None:
    engine = Engine()
    push(engine, HOURLY.cron)
    pause(engine, reason="a move")
    resume(engine)

    logs = [(note["author"], note["log"]) for note in view_of(engine).read(workflows.notes, "etl")]

    assert ("ann", "Paused all time triggers: a move") in logs
    assert ("bob", "Resumed all time triggers") in logs
    assert ("kapelle", f"Time triggers: Armed {HOURLY.id}") in logs
    assert ("kapelle", f"Time triggers: Disarmed {HOURLY.id}") in logs


def test_a_version_is_enriched_with_the_next_times_of_its_triggers() -> None:
    engine = Engine()
    push(engine, DAILY.cron, HOURLY.cron)
    pause(engine, DAILY.id)
    views = view_of(engine)
    hour = times_of(HOURLY).next_after(engine.clock.now_ms)

    assert views.read(schedules.enriched, "etl", 1) == {
        "next_execution_time": hour,
        "next_execution_times": [None, hour],
    }
    assert views.read(schedules.enriched, "etl", 2) == {"next_execution_time": None, "next_execution_times": []}


@pytest.mark.parametrize(
    ("interval_ms", "text"),
    [(DAY_MS, "1d"), (90 * 60_000, "90m"), (7_200_000, "2h"), (90_000, "90s"), (1_500, "1500ms")],
)
def test_an_interval_is_shown_in_its_largest_whole_unit(interval_ms: int, text: str) -> None:
    assert interval_text(interval_ms) == text


@pytest.mark.parametrize(
    ("statement", "given"),
    [
        (schedules.ROW, ("etl", "t")),
        (schedules.DISARMED, ("etl", 5)),
        (schedules.PAUSE, ("etl", "", "t")),
        (schedules.TICKS, ("etl", "t", 5)),
    ],
)
def test_no_statement_about_schedules_scans_or_sorts_a_table(statement: str, given: tuple[object, ...]) -> None:
    with Database(None, "any").reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)]

    assert [line for line in plan if line.startswith(("SCAN", "USE TEMP"))] == []
    assert plan[0].startswith("SEARCH")
