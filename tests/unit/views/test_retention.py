"""What leaves the view, and what never does: with a clock of the test's own."""

from pathlib import Path

import pytest

from kapelle.schemas.contracts import RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import Views
from kapelle.views.progress import Progress, ends_of
from kapelle.views.queries import instances
from kapelle.views.queries.instance_lists import Filters, browse, counts
from kapelle.views.queries.pages import PageRequest
from kapelle.views.retention import DAY_MS, Retention, take_away
from tests.unit.views.histories import TYPE, definition, deleted, dump, fold, step, used_engine, view_of

OF_INSTANCES = ("instances", "runs", "attempts", "timeline", "tasks", "labels", "dependencies", "requests")


def ids(views: Views) -> list[int]:
    return [one["workflow_instance_id"] for one in views.read(browse, PageRequest(200))["elements"]]


def aged_engine() -> Engine:
    """Instance 1 ended long ago, 2 began long ago and runs, 3 has just ended."""
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE), run_strategy="PARALLEL"))
    old, _running = engine.start("etl", runtime_tags=["old"]), engine.start("etl")
    engine.task(old, "a").succeed()
    engine.advance(3 * DAY_MS)
    engine.task(engine.start("etl"), "a").succeed()
    return engine


def retention_of(engine: Engine, views: Views, days: int) -> Retention:
    return Retention(views.journal, views.database, days * DAY_MS, clock=lambda: engine.clock.now_ms)


def test_what_ended_long_ago_leaves_and_what_runs_stays() -> None:
    engine = aged_engine()
    views = view_of(engine)

    gone = retention_of(engine, views, 2).turn(views.watermark)

    assert gone == 1
    assert ids(views) == [3, 2]
    assert views.read(instances.run, "etl", 1) is None
    assert views.read(counts) == {"IN_PROGRESS": 1, "SUCCEEDED": 1}
    assert views.read(browse, PageRequest(), Filters(labels=("tag:old",)))["total_count"] == 0


def test_nothing_of_an_instance_that_has_left_stays_behind() -> None:
    views = view_of(used_engine(3, operations=60))

    with views.database.writing() as connection:
        while take_away(connection, 1 << 62, 7):
            pass

    found = dump(views.database)
    left = {(row[0], row[1]) for row in found["instances"]}
    for table in ("runs", "attempts", "tasks", "dependencies", "timeline"):
        assert {(row[0], row[1]) for row in found[table]} <= left, table
    assert {row[3] for row in found["instances"]} <= {"CREATED", "IN_PROGRESS"}


def test_nothing_leaves_before_the_view_is_as_far_as_the_log() -> None:
    engine = aged_engine()
    views = Views(EmbeddedJournal(engine.runtime), batch_records=10)
    retention = retention_of(engine, views, 2)
    views.folding.step()

    early = retention.turn(views.watermark)
    fold(views)
    late = retention.turn(views.watermark)

    assert (early, late) == (0, 1)


def test_an_instance_that_has_left_is_there_again_when_it_is_restarted() -> None:
    engine = aged_engine()
    views = view_of(engine)
    retention_of(engine, views, 2).turn(views.watermark)

    RunHandle(engine, "etl", 1).restart(RestartPolicy.RESTART_FROM_BEGINNING)
    fold(views)

    assert sorted(ids(views)) == [1, 2, 3]
    found = views.read(instances.run, "etl", 1)
    assert found is not None
    assert (found["workflow_run_id"], found["status"]) == (2, "IN_PROGRESS")
    assert views.read(counts) == {"IN_PROGRESS": 2, "SUCCEEDED": 1}


def test_instances_of_deleted_workflows_leave_too() -> None:
    engine = aged_engine()
    deleted(engine, "etl")
    engine.advance(10 * DAY_MS)
    views = view_of(engine)

    gone = retention_of(engine, views, 2).turn(views.watermark)

    assert gone == 3
    assert all(not dump(views.database)[table] for table in OF_INSTANCES if table != "requests")


def test_a_view_that_is_made_anew_is_the_same_as_before(tmp_path: Path) -> None:
    journal = EmbeddedJournal(used_engine(1).runtime)
    first = Views(journal, tmp_path)
    fold(first)
    before = dump(first.database)
    first.close()

    second = Views(journal, tmp_path, anew=True)
    empty = dump(second.database)
    fold(second)
    after = dump(second.database)
    second.close()

    assert not any(empty.values())
    assert after == before


def test_progress_tells_the_rate_and_the_time_that_is_left() -> None:
    now = [100.0]
    journal = EmbeddedJournal(used_engine(1).runtime)
    ends = ends_of(journal)
    total = sum(ends.values())
    progress = Progress(0, clock=lambda: now[0])
    nothing = progress.fields({}, ends)
    now[0] += 2.0

    half = progress.fields({point: end // 2 for point, end in ends.items()}, ends)
    whole = progress.fields(ends, ends)

    assert (nothing["records"], nothing["seconds_left"]) == (0, "unknown")
    assert half["of"] == total
    assert half["records_per_s"] == pytest.approx(half["records"] / 2, abs=1)
    assert half["seconds_left"] == pytest.approx(2 * (total - half["records"]) / half["records"], abs=1)
    assert (whole["records"], whole["seconds_left"]) == (total, 0)
