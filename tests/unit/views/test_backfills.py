"""What the view knows of backfills: how far they are, and their instances by status."""

from collections import Counter
from typing import Any

import pytest

from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillAction, BackfillStatus, RestartPolicy
from kapelle.testing.engine import Engine
from kapelle.views import Views
from kapelle.views.database import Database
from kapelle.views.queries import backfills, instances, workflows
from kapelle.views.queries.instance_lists import Filters, browse
from kapelle.views.queries.pages import PageRequest
from kapelle.views.schema_schedules import REFUSALS_KEPT
from tests.unit.views.gates import batched, of_workflows
from tests.unit.views.histories import deleted, dump, view_of, written
from tests.unit.views.scheduled import DAILY, DAY_MS, HOURLY, act, backfill, busy_schedules, push
from tests.unit.views.test_aging import aged


def shown(views: Views, backfill_id: str = "b", workflow_id: str = "etl") -> Any:
    found = views.read(backfills.backfill, workflow_id, backfill_id)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_instances_and_of_the_events(seed: int) -> None:
    engine = busy_schedules(seed)
    views = view_of(engine)

    for name in ("wf-0", "wf-1", "wf-2"):
        listed = views.read(backfills.listed, name, PageRequest())["elements"]
        state = engine.state("workflows", name)
        statuses = {backfill_id: row.status for (_, backfill_id), row in state.backfills.prefix((name,))}
        assert {one["backfill_id"]: one["status"] for one in listed} == statuses
        for one in listed:
            filters = Filters(workflow_id=name, labels=(f"backfill:{one['backfill_id']}",))
            found = views.read(browse, PageRequest(200), filters)["elements"]
            assert one["counts"] == Counter(run["status"] for run in found)
            assert all(run["backfill_id"] == one["backfill_id"] for run in found)
            assert one["decided"] == one["started"] + one["existing"] + one["refused"]
            assert one["slots_left"] == one["total"] - one["decided"] >= 0
            if one["status"] == BackfillStatus.COMPLETED:
                assert one["slots_left"] == 0


def test_a_backfill_shows_what_was_asked_for_and_how_far_it_is() -> None:
    engine = Engine()
    push(engine, kind="python")
    backfill(engine, days=5, run_params='{"day":{"type":"LONG","value":1234567890123456789}}')
    (first, _) = engine.tasks()
    first.succeed()

    found = shown(view_of(engine))

    assert (found["status"], found["by"], found["order"], found["concurrency"]) == ("RUNNING", "ann", "oldest", 2)
    assert (found["total"], found["decided"], found["slots_left"]) == (5, 3, 2)
    assert found["counts"] == {"SUCCEEDED": 1, "IN_PROGRESS": 2}
    assert found["schedule"]["cron"] == DAILY.cron
    assert b"1234567890123456789" in bytes(found["params"])
    assert (found["from"], found["to"]) == (found["started_at"] - 5 * DAY_MS, found["started_at"])
    assert (found["ended_at"], found["reason"], found["trigger_id"]) == (None, None, None)
    assert found["position"] is not None


def test_a_backfill_is_completed_when_all_of_its_instances_have_ended() -> None:
    engine = Engine()
    push(engine)
    backfill(engine, days=5)

    found = shown(view_of(engine))

    assert (found["status"], found["decided"], found["slots_left"]) == ("COMPLETED", 5, 0)
    assert found["counts"] == {"SUCCEEDED": 5}
    assert found["ended_at"] is not None


def test_a_backfill_that_is_started_again_counts_its_slots_anew() -> None:
    engine = Engine()
    push(engine)
    backfill(engine, days=3)
    (started,) = [event for event in engine.events(WORKFLOW_EVENTS, "etl") if isinstance(event, c.BackfillStarted)]
    backfill(engine, from_ms=started.from_ms, to_ms=started.to_ms)

    found = shown(view_of(engine))

    assert (found["status"], found["started"], found["existing"]) == ("COMPLETED", 0, 3)
    assert (found["decided"], found["counts"]) == (3, {"SUCCEEDED": 3})


def test_a_backfill_that_is_paused_or_cancelled_tells_by_whom_and_why() -> None:
    engine = Engine()
    push(engine, kind="python")
    backfill(engine)
    act(engine, BackfillAction.PAUSE)
    paused = shown(view_of(engine))
    act(engine, BackfillAction.CANCEL)
    views = view_of(engine)
    cancelled = shown(views)

    assert (paused["status"], paused["modified_by"], paused["reason"]) == ("PAUSED", "bob", "as it is")
    assert (cancelled["status"], cancelled["ended_at"]) == ("CANCELLED", engine.clock.now_ms)
    assert cancelled["counts"] == {"IN_PROGRESS": 2}
    logs = [note["log"] for note in views.read(workflows.notes, "etl")]
    assert "Paused backfill b: as it is" in logs
    assert "Cancelled backfill b: as it is" in logs
    assert "Started backfill b of 4 instances" in logs


def test_backfills_are_listed_page_by_page_the_latest_first() -> None:
    engine = Engine()
    push(engine)
    for number in range(5):
        backfill(engine, f"b{number}", schedule=(DAILY if number % 2 else HOURLY).json(), days=1)
        engine.advance(1_000)
    views = view_of(engine)

    first = views.read(backfills.listed, "etl", PageRequest(2))
    rest = views.read(backfills.listed, "etl", PageRequest(9, first["page_info"]["end_cursor"]))

    assert [one["backfill_id"] for one in (*first["elements"], *rest["elements"])] == ["b4", "b3", "b2", "b1", "b0"]
    assert (first["total_count"], rest["page_info"]["start_index"]) == (5, 3)
    assert views.read(backfills.listed, "other", PageRequest())["elements"] == []
    assert views.read(backfills.backfill, "etl", "other") is None


def test_the_instances_of_a_backfill_show_their_scheduled_times_and_their_restarts_too() -> None:
    engine = Engine()
    push(engine)
    backfill(engine, days=2)
    engine.runs("etl")[0].restart(RestartPolicy.RESTART_FROM_BEGINNING)
    views = view_of(engine)

    run = views.read(instances.run, "etl", 1)

    assert run is not None
    assert (run["workflow_run_id"], run["backfill_id"]) == (2, "b")
    assert run["scheduled_at"] is not None
    assert shown(views)["counts"] == {"SUCCEEDED": 2}


# By hand --------------------------------------------------------------------------------------------------------------


def was_started(at_ms: int = 1) -> c.BackfillStarted:
    return c.BackfillStarted(
        request_id="r",
        author="ann",
        workflow_id="etl",
        backfill_id="b",
        schedule=DAILY.json(),
        from_ms=0,
        to_ms=9 * DAY_MS,
        is_newest_first=True,
        concurrency=3,
        run_params="{}",
        total=500,
        at_ms=at_ms,
    )


def progressed(*slots: c.Tick, existing: int = 0) -> c.BackfillProgressed:
    return c.BackfillProgressed("etl", "b", slots, existing=existing, position_ms=5, is_last=False, at_ms=2)


def refused(at: int) -> c.Tick:
    return c.Tick(at, f"r{at}", None, is_new=False, reason=f"too large: {at}")


def test_refused_slots_are_counted_and_the_last_of_them_are_shown() -> None:
    many = [progressed(*(refused(100 * number + at) for at in range(20))) for number in range(9)]
    entries = of_workflows("etl", was_started(), *many)

    for database in (written(entries), batched(entries)):
        with database.reading() as connection:
            found = backfills.backfill(connection, "etl", "b")
        assert found is not None
        assert (found["refused"], found["decided"], found["slots_left"]) == (180, 180, 320)
        assert len(dump(database)["backfill_refusals"]) == REFUSALS_KEPT
        assert found["refusals"][0] == {"scheduled_at": 819, "reason": "too large: 819"}
        assert len(found["refusals"]) == backfills.REFUSALS_SHOWN
        assert found["order"] == "newest"


def test_what_came_before_a_new_start_counts_no_more_whatever_the_batch() -> None:
    slots = [c.Tick(at, f"r{at}", at + 1, is_new=at < 2) for at in range(3)]
    before, after = progressed(*slots, refused(7), existing=1), progressed(slots[0])
    entries = of_workflows("etl", was_started(), before, was_started(3), after)

    for database in (written(entries), batched(entries)):
        with database.reading() as connection:
            found = backfills.backfill(connection, "etl", "b")
        assert found is not None
        assert (found["started"], found["existing"], found["refused"]) == (1, 0, 0)
        assert found["refusals"] == []
        assert found["started_at"] == 3


# Going ----------------------------------------------------------------------------------------------------------------


def test_the_backfills_of_a_deleted_workflow_go_with_it() -> None:
    engine = Engine()
    push(engine)
    backfill(engine)
    deleted(engine, "etl")

    rows = dump(view_of(engine).database)

    for table in ("backfills", "backfill_progress", "backfill_refusals", "backfill_counts"):
        assert rows[table] == [], table


def test_a_backfill_leaves_with_the_last_of_its_instances() -> None:
    engine = Engine()
    push(engine)
    backfill(engine, "old", days=2)
    engine.advance(3 * DAY_MS)
    push(engine, kind="python")
    backfill(engine, "new", days=2, schedule=HOURLY.json())
    views = view_of(engine)

    aged(engine, views, 1)

    rows = dump(views.database)
    assert [row[1] for row in rows["backfills"]] == ["new"]
    assert {row[1] for row in rows["backfill_progress"]} == {"new"}


@pytest.mark.parametrize(
    ("statement", "given"),
    [
        (backfills.ONE, ("etl", "b")),
        (backfills.COUNTS, ("etl", "b")),
        (backfills.REFUSALS, ("etl", "b", 5)),
        (backfills.EXISTING, ("r", "etl")),
    ],
)
def test_no_statement_about_backfills_scans_or_sorts_a_table(statement: str, given: tuple[object, ...]) -> None:
    with Database(None, "any").reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)]

    assert [line for line in plan if line.startswith(("SCAN", "USE TEMP"))] == []
    assert plan[0].startswith("SEARCH")


def test_no_list_of_backfills_reads_or_sorts_a_whole_table() -> None:
    search = backfills.backfills_search("etl")

    with Database(None, "any").reading() as connection:
        for after, backwards in ((None, False), ((0, "b"), False), ((0, "b"), True)):
            text, given = search.rows(after, backwards=backwards)
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text} LIMIT 5", given)]
            assert [line for line in plan if line.startswith("USE TEMP") or not line.startswith("SEARCH")] == []
