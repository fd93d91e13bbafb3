"""Trees of instances in the view: who is whose child, what children share, and how many leaves are below each step."""

import json
import random
from collections import Counter
from typing import Any

import pytest

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind, InstanceStatus, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import Views
from kapelle.views.queries import instances, steps
from kapelle.views.queries.aggregates import told_more
from kapelle.views.queries.artifacts import intervals
from kapelle.views.queries.children import STATUSES, Present, children, counts, statement
from kapelle.views.queries.instance_lists import browse
from kapelle.views.queries.instance_lists import counts as all_counts
from kapelle.views.queries.pages import Page, PageRequest
from kapelle.views.retention import take_away
from tests.unit.views.histories import TYPE, dump, entries_of, fold, step, view_of, written
from tests.unit.views.test_folding import folded, shuffled
from tests.unit.views.trees import counted, everyone, foreach, subworkflow, tree, used_tree, whole_tree

LOOP = inline_id(ChildKind.FOREACH, "etl/1", "loop")


def looped(count: int = 4, **more: Any) -> tuple[Engine, RunHandle]:
    engine = Engine(partitions=2)
    engine.push(tree("etl", foreach("loop", list(range(count)), step("work", TYPE), **more), base=7))
    return engine, engine.start("etl")


def finish(engine: Engine, *numbers: int, report: Report = Report.SUCCEEDED) -> None:
    for number in numbers:
        engine.task(RunHandle(engine, LOOP, number), "work").say(report, message="so it is")


def numbers(page: Page) -> list[int]:
    return [one["workflow_instance_id"] for one in page["elements"]]


def artifact(views: Views, step_id: str = "loop", workflow_id: str = "etl") -> Any:
    found = views.read(steps.attempt, (workflow_id, 1, step_id))
    assert found is not None
    (one,) = found["artifacts"].values()
    return one


# The fold -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_partitions_makes_no_difference_to_trees(seed: int) -> None:
    chance = random.Random(seed)
    points = entries_of(used_tree(seed))
    one_by_one = [entry for entries in points.values() for entry in entries]

    dumps = [folded(one_by_one), *(folded(shuffled(points, chance)) for _ in range(3))]

    assert all(found == dumps[0] for found in dumps)
    assert len(dumps[0]["leaves"]) > 10


@pytest.mark.parametrize("batch_records", [1, 30, 5_000])
def test_a_batch_of_trees_writes_what_its_changes_would_one_by_one(batch_records: int) -> None:
    engine = used_tree(11, operations=60)
    one_by_one = [entry for entries in entries_of(engine).values() for entry in entries]

    views = Views(EmbeddedJournal(engine.runtime), batch_records=batch_records)
    fold(views)

    assert dump(views.database) == dump(written(one_by_one))


@pytest.mark.parametrize("seed", range(12))
def test_the_leaves_counted_are_those_that_exist(seed: int) -> None:
    engine = used_tree(100 + seed, operations=60)

    with view_of(engine).database.reading() as connection:
        rows = connection.execute("SELECT * FROM rollups WHERE count <> 0").fetchall()

    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        at = (f"{row['workflow_id']}/{row['instance_id']}", row["step_id"])
        found.setdefault(at, Counter())[row["status"]] = row["count"]
    assert found == counted(engine)
    assert len(found) > 2


@pytest.mark.parametrize("seed", range(4))
def test_the_view_and_the_engine_agree_on_the_status_of_every_child(seed: int) -> None:
    engine = used_tree(200 + seed)
    views = view_of(engine)

    for run in everyone(engine):
        if run.row is not None:
            assert views.read(instances.status_of, run.workflow_id, run.instance_id) == (run.row.run_id, run.row.status)


# Instances ----------------------------------------------------------------------------------------------------------


def test_an_iteration_knows_its_parent_and_has_the_parameters_of_all_layers() -> None:
    engine, _ = looped()

    found = view_of(engine).read(instances.run, LOOP, 3)

    assert found is not None
    assert found["status"] == "IN_PROGRESS"
    assert found["parent"] == {
        "workflow_id": "etl",
        "workflow_instance_id": 1,
        "workflow_run_id": 1,
        "step_id": "loop",
        "number": 3,
        "kind": "FOREACH",
        "sync": True,
        "root": "etl/1",
        "depth": 1,
    }
    params = json.loads(bytes(found["params"]))
    assert (params["base"], params["loop_i"], params["loop_index"]) == (7, 2, 2)


def test_layers_are_stored_once_however_many_iterations_share_them() -> None:
    engine, _ = looped(40)

    with view_of(engine).database.reading() as connection:
        (texts,) = connection.execute("SELECT COUNT(*) FROM shared").fetchone()

    assert texts == 2  # the parameters around the loop, and the definition of its block


def test_iterations_are_listed_by_their_own_workflow_and_not_among_all_instances() -> None:
    engine, _ = looped(3)
    views = view_of(engine)

    assert numbers(views.read(browse, PageRequest())) == [1]
    assert views.read(all_counts) == {"IN_PROGRESS": 1}
    assert views.read(all_counts, LOOP) == {"IN_PROGRESS": 3}


def test_the_child_of_a_subworkflow_step_is_an_instance_like_any_other_with_a_parent() -> None:
    engine = Engine()
    whole_tree(engine)

    found = view_of(engine).read(children, ("top", 1, "sub"), PageRequest())["elements"][0]

    assert (found["workflow_id"], found["parent"]["kind"], found["parent"]["step_id"]) == (
        "leafy",
        "SUBWORKFLOW",
        "sub",
    )


def test_iterations_leave_the_view_with_the_instance_that_they_belong_to() -> None:
    engine = used_tree(5)
    for run in everyone(engine):
        run.stop()
    views = view_of(engine)

    with views.database.writing() as connection:
        while take_away(connection, 1 << 62, 7):
            pass

    left = dump(views.database)
    of_running = {row[:2] for row in left["instances"]}
    assert {row[3] for row in left["instances"]} <= {"IN_PROGRESS", "SUCCEEDED", "FAILED", "STOPPED"}
    for table in ("runs", "attempts", "fans", "descents", "leaves", "buckets", "rollups", "timeline"):
        assert {row[:2] for row in left[table]} <= of_running


# Lists --------------------------------------------------------------------------------------------------------------


def test_children_are_listed_by_number_and_status_in_pages_that_neither_skip_nor_repeat() -> None:
    engine, _ = looped(7)
    finish(engine, 2, 5)
    views, at = view_of(engine), ("etl", 1, "loop")

    first = views.read(children, at, PageRequest(2), ["IN_PROGRESS"])
    second = views.read(children, at, PageRequest(2, first["page_info"]["end_cursor"]), ["IN_PROGRESS"])
    back = views.read(
        children, at, PageRequest(2, second["page_info"]["start_cursor"], backwards=True), ["IN_PROGRESS"]
    )

    assert [numbers(first), numbers(second), numbers(back)] == [[1, 3], [4, 6], [1, 3]]
    assert (first["total_count"], second["page_info"]["start_index"]) == (5, 3)
    assert numbers(views.read(children, at, PageRequest(), ["SUCCEEDED"])) == [2, 5]
    assert numbers(views.read(children, at, PageRequest())) == [1, 2, 3, 4, 5, 6, 7]
    assert views.read(counts, at) == {"IN_PROGRESS": 5, "SUCCEEDED": 2}


@pytest.mark.parametrize("place", [None, (3, "a", 1)])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("statuses", [["FAILED"], STATUSES])
@pytest.mark.parametrize("last", [None, 3])
def test_no_list_of_children_reads_or_sorts_a_whole_table(
    statuses: list[str], place: tuple[int, str, int] | None, last: int | None, *, backwards: bool
) -> None:
    engine, _ = looped(3)
    present = Present("1.1.1", "1.1.1", last)
    text, values = statement(("etl", 1, "loop"), present, statuses, place, backwards=backwards)

    with view_of(engine).database.reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text} LIMIT 50", values)]

    assert not [line for line in plan if line.startswith(("SCAN", "USE TEMP"))]


# Artifacts and rollups ------------------------------------------------------------------------------------------------


def test_a_foreach_step_tells_how_far_its_iterations_are() -> None:
    engine, _ = looped(6)
    finish(engine, 1, 2, 5)
    finish(engine, 4, report=Report.FATAL_ERROR)

    found = artifact(view_of(engine))

    assert found["foreach_workflow_id"] == LOOP
    assert (found["foreach_run_id"], found["total_loop_count"], found["next_loop_index"]) == (1, 6, 6)
    assert found["foreach_overview"]["stats"] == {"SUCCEEDED": 3, "FAILED": 1}
    assert found["foreach_overview"]["running_stats"] == {"IN_PROGRESS": 2}
    assert found["foreach_overview"]["details"] == {"FAILED": [4], "IN_PROGRESS": [3, 6], "SUCCEEDED": [(1, 2), 5]}
    assert found["foreach_overview"]["checkpoint"] == 3


def test_a_restart_counts_the_iterations_that_it_keeps_and_those_that_it_runs() -> None:
    engine, run = looped(3)
    finish(engine, 1, 2)
    finish(engine, 3, report=Report.FATAL_ERROR)
    run.restart(RestartPolicy.RESTART_FROM_INCOMPLETE)

    found = artifact(view_of(engine))

    assert (found["foreach_run_id"], found["run_policy"], found["ancestor_iteration_count"]) == (
        2,
        "RESTART_FROM_INCOMPLETE",
        3,
    )
    assert found["foreach_overview"]["details"] == {"IN_PROGRESS": [3], "SUCCEEDED": [(1, 2)]}


def test_a_restart_from_the_beginning_counts_no_iteration_of_earlier_runs() -> None:
    engine, run = looped(3, concurrency=1)
    finish(engine, 1, 2, 3)
    run.restart(RestartPolicy.RESTART_FROM_BEGINNING)

    found = artifact(view_of(engine))

    assert found["foreach_overview"]["details"] == {"IN_PROGRESS": [1]}


def test_a_while_step_tells_its_rounds_and_a_subworkflow_step_its_child() -> None:
    engine = Engine()
    run = whole_tree(engine)
    for inner in everyone(engine):
        for task in engine.tasks(inner):
            task.succeed()
    views = view_of(engine)

    again, sub = (artifact(views, name, "top") for name in ("again", "sub"))

    assert run.steps["again"] == "RUNNING"
    assert (again["first_iteration"], again["last_iteration"], again["last_status"]) == (1, 1, "IN_PROGRESS")
    assert (sub["subworkflow_id"], sub["subworkflow_version_id"], sub["subworkflow_run_id"]) == ("leafy", 1, 1)
    assert sub["subworkflow_overview"]["rollup_overview"]["total_leaf_count"] == 2


def test_the_rollup_of_an_instance_names_leaves_that_have_failed_at_any_depth() -> None:
    engine = Engine()
    engine.push(tree("deep", foreach("in", [1, 2], step("work", TYPE))))
    engine.push(tree("etl", foreach("loop", [1], subworkflow("sub", "deep")), step("plain")))
    run = engine.start("etl")
    failing, fine = engine.tasks()
    failing.say(Report.FATAL_ERROR)
    fine.succeed()
    views = view_of(engine)

    record = views.read(instances.run, "etl", 1)
    assert record is not None
    (enriched,) = views.read(told_more, [record], aggregated=False, enriched=True)
    rollup = enriched["runtime_overview"]["rollup_overview"]

    where = inline_id(ChildKind.FOREACH, "deep/1", "in")
    assert run.status is InstanceStatus.FAILED
    assert rollup == {
        "total_leaf_count": 3,
        "overview": {
            "SUCCEEDED": {"cnt": 2},
            "FATALLY_FAILED": {"cnt": 1, "ref": {f"{where}:1": ["1:work:1"]}},
        },
    }


def test_a_child_that_nobody_waits_for_is_a_leaf() -> None:
    engine = Engine()
    whole_tree(engine)
    views = view_of(engine)

    record = views.read(instances.run, "top", 1)
    assert record is not None
    (enriched,) = views.read(told_more, [record], aggregated=False, enriched=True)

    # Below `outer`: work of six inner iterations and three quick ones; `one` of `sub`; `apart` and `plain` themselves.
    overview = enriched["runtime_overview"]["rollup_overview"]["overview"]
    assert {status: entry["cnt"] for status, entry in overview.items()} == {"STARTING": 8, "SUCCEEDED": 4}


@pytest.mark.parametrize(("given", "expected"), [([], []), ([4], [4]), ([1, 2, 3, 7, 9, 10], [(1, 3), 7, (9, 10)])])
def test_numbers_that_follow_one_another_are_told_as_intervals(given: list[int], expected: list[Any]) -> None:
    assert intervals(given) == expected
