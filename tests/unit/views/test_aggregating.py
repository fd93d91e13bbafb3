"""An instance after all its runs: each rule of the aggregated view, the rollup of its leaves, and the matrix."""

from typing import Any

import pytest

from kapelle.schemas.contracts import Action, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from kapelle.views import Views
from kapelle.views.queries import instances
from kapelle.views.queries.aggregates import aggregate, aggregated_info, matrix, runtime_overview
from kapelle.views.queries.instance_lists import browse
from kapelle.views.queries.pages import PageRequest
from tests.unit.views.histories import TYPE, definition, fold, step, used_engine, view_of

SPECIFIC = RestartPolicy.RESTART_FROM_SPECIFIC
INCOMPLETE = RestartPolicy.RESTART_FROM_INCOMPLETE
BEGINNING = RestartPolicy.RESTART_FROM_BEGINNING


def two_chains() -> tuple[Engine, RunHandle]:
    """a → b and c → d: the workflow of the specification's own example, of which b and d have failed."""
    engine = Engine()
    engine.push(definition("etl", step("a", "NoOp", "b"), step("b", TYPE), step("c", "NoOp", "d"), step("d", TYPE)))
    run = engine.start("etl")
    for name in ("b", "d"):
        engine.task(run, name).fail(report=Report.FATAL_ERROR)
    return engine, run


def info(views: Views, run_id: int | None = None) -> Any:
    found = views.read(aggregate, ("etl", 1), run_id)
    assert found is not None
    return aggregated_info(found)


def steps(found: Any) -> dict[str, tuple[int | None, str]]:
    return {name: (one["workflow_run_id"], one["status"]) for name, one in found["step_aggregated_views"].items()}


def test_a_fresh_run_begins_with_nothing_and_has_the_status_of_the_run() -> None:
    engine, _ = two_chains()

    found = info(view_of(engine))

    assert found["workflow_instance_status"] == "FAILED"
    assert steps(found) == {
        "a": (1, "SUCCEEDED"),
        "b": (1, "FATALLY_FAILED"),
        "c": (1, "SUCCEEDED"),
        "d": (1, "FATALLY_FAILED"),
    }


def test_a_restart_of_one_failed_step_of_two_succeeds_as_a_run_and_fails_as_an_instance() -> None:
    engine, run = two_chains()
    run.restart(SPECIFIC, step_id="b")
    engine.task(run, "b").succeed()
    views = view_of(engine)

    found, record = info(views), views.read(instances.run, "etl", 1)

    assert steps(found) == {
        "a": (1, "SUCCEEDED"),
        "b": (2, "SUCCEEDED"),
        "c": (1, "SUCCEEDED"),
        "d": (1, "FATALLY_FAILED"),
    }
    assert found["workflow_instance_status"] == "FAILED"
    assert record is not None
    assert (record["run_status"], record["status"]) == ("SUCCEEDED", "FAILED")
    assert steps(info(views, 1))["b"] == (1, "FATALLY_FAILED")


def test_steps_that_a_run_has_to_do_and_has_not_created_are_not_created_again() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE, "b"), step("b", TYPE)))
    run = engine.start("etl")
    engine.task(run, "a").succeed()
    engine.task(run, "b").succeed()
    run.restart(BEGINNING)

    found = info(view_of(engine))

    assert steps(found) == {"a": (2, "STARTING"), "b": (2, "NOT_CREATED")}
    assert found["workflow_instance_status"] == "IN_PROGRESS"
    assert found["step_aggregated_views"]["b"]["start_time"] is None


def test_steps_of_which_no_run_has_told_anything_are_not_created_and_have_no_run() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE, "b"), step("b"), run_strategy="SEQUENTIAL"))
    engine.start("etl")
    queued = engine.start("etl")
    queued.stop()
    views = view_of(engine)

    waiting = views.read(aggregate, ("etl", 2))

    assert waiting is not None
    assert {name: (one.run_id, one.status) for name, one in waiting.steps.items()} == {
        "a": (None, "NOT_CREATED"),
        "b": (None, "NOT_CREATED"),
    }
    assert waiting.status == "STOPPED"


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ((Action.KILL, Action.STOP), "FAILED"),
        ((Action.STOP, Action.STOP), "STOPPED"),
        ((None, Action.STOP), "STOPPED"),
        ((None, None), "SUCCEEDED"),
    ],
)
def test_the_worst_step_decides_of_a_restart_that_succeeded(left: tuple[Action | None, ...], expected: str) -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE), step("b", TYPE), step("c", TYPE)))
    run = engine.start("etl")
    for name, action in zip("bc", left, strict=True):
        if action is None:
            engine.task(run, name).succeed()
        else:
            run.act(name, action)
    engine.task(run, "a").fail(report=Report.FATAL_ERROR)
    run.restart(SPECIFIC, step_id="a")
    engine.task(run, "a").succeed()

    found = info(view_of(engine))

    assert found["workflow_instance_status"] == expected == run.status


def test_a_step_that_timed_out_counts_more_than_one_that_was_stopped() -> None:
    engine = Engine()
    late: dict[str, Any] = step("b", TYPE)
    engine.push(definition("etl", step("a", TYPE), late, step("c", TYPE)) | {})
    run = engine.start("etl")
    run.act("c", Action.STOP)
    engine.advance(40 * 24 * 60 * 60 * 1000)  # longer than anything may take
    before = run.status
    run.restart(SPECIFIC, step_id="a")
    engine.task(run, "a").succeed()

    found = info(view_of(engine))

    assert before == "TIMED_OUT"
    assert (steps(found)["b"][1], steps(found)["c"][1]) == ("TIMED_OUT", "STOPPED")
    assert found["workflow_instance_status"] == "TIMED_OUT" == run.status


@pytest.mark.parametrize("seed", range(6))
def test_the_status_of_every_instance_is_that_of_the_engine(seed: int) -> None:
    views = view_of(used_engine(seed, operations=120))
    page = views.read(browse, PageRequest(200))

    compared = 0
    for record in page["elements"]:
        found = views.read(aggregate, (record["workflow_id"], record["workflow_instance_id"]))
        assert found is not None
        assert found.status == record["status"], record
        compared += record["workflow_run_id"] > 1

    assert compared > 0


# Overview and rollup --------------------------------------------------------------------------------------------------


def overview(views: Views, run_id: int | None = None) -> Any:
    found = views.read(aggregate, ("etl", 1), run_id)
    assert found is not None
    return views.read(runtime_overview, found, ("etl", 1))


def test_an_overview_counts_the_steps_of_the_run_by_status_with_their_places() -> None:
    engine, _ = two_chains()

    found = overview(view_of(engine))

    assert (found["total_step_count"], found["steps"], found["run_status"]) == (4, ["a", "b", "c", "d"], "FAILED")
    assert {status: one["cnt"] for status, one in found["step_overview"].items()} == {
        "SUCCEEDED": 2,
        "FATALLY_FAILED": 2,
    }
    assert sorted(one[0] for one in found["step_overview"]["FATALLY_FAILED"]["steps"]) == [2, 4]


def test_a_rollup_names_the_leaves_that_somebody_may_want_to_look_at() -> None:
    engine, _ = two_chains()

    found = overview(view_of(engine))["rollup_overview"]

    assert found["total_leaf_count"] == 4
    assert found["overview"]["SUCCEEDED"] == {"cnt": 2}
    assert found["overview"]["FATALLY_FAILED"] == {"cnt": 2, "ref": {"etl:1": ["1:b:1", "1:d:1"]}}


def test_a_rollup_of_a_restart_begins_with_what_earlier_runs_have_left() -> None:
    engine, run = two_chains()
    run.restart(SPECIFIC, step_id="b")
    views = view_of(engine)
    running = overview(views)
    engine.task(run, "b").begin("w")
    engine.task(run, "b").succeed("w")
    fold(views)

    done = overview(views)

    assert (running["total_step_count"], running["steps"]) == (1, ["b"])
    assert running["rollup_overview"]["overview"]["STARTING"] == {"cnt": 1}
    assert done["rollup_overview"] == {
        "total_leaf_count": 4,
        "overview": {"SUCCEEDED": {"cnt": 3}, "FATALLY_FAILED": {"cnt": 1, "ref": {"etl:1": ["1:d:0"]}}},
    }


def test_a_matrix_has_a_row_for_each_of_the_last_instances_and_a_column_for_each_step() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", TYPE, "b"), step("b"), run_strategy="PARALLEL"))
    for _ in range(4):
        engine.start("etl")
    engine.push(definition("etl", step("a", TYPE, "c"), step("c"), run_strategy="PARALLEL"))
    engine.task(engine.start("etl"), "a").succeed()

    found = view_of(engine).read(matrix, "etl", 3)

    assert found["steps"] == ["a", "c", "b"]
    rows = [(one["workflow_instance_id"], one["workflow_version_id"], one["status"]) for one in found["instances"]]
    assert rows == [(5, 2, "SUCCEEDED"), (4, 1, "IN_PROGRESS"), (3, 1, "IN_PROGRESS")]
    shown = [{name: one["status"] for name, one in row["steps"].items()} for row in found["instances"][:2]]
    assert shown == [{"a": "SUCCEEDED", "c": "SUCCEEDED"}, {"a": "STARTING", "b": "NOT_CREATED"}]
