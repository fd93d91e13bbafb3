"""Trees that were restarted: the view counts the children that steps have now, and tells the past as it was."""

from typing import Any

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from kapelle.views import Views
from kapelle.views.queries import instances, steps
from kapelle.views.queries.aggregates import matrix, told_more
from kapelle.views.queries.children import children
from kapelle.views.queries.instance_lists import Filters, browse, counts
from kapelle.views.queries.pages import PageRequest
from kapelle.views.queries.rollups import REFS_MAX
from tests.unit.views.histories import TYPE, deleted, step, view_of
from tests.unit.views.trees import foreach, sized, sizing, subworkflow, tree

BEGINNING, INCOMPLETE = RestartPolicy.RESTART_FROM_BEGINNING, RestartPolicy.RESTART_FROM_INCOMPLETE
SPECIFIC = RestartPolicy.RESTART_FROM_SPECIFIC
LOOP = inline_id(ChildKind.FOREACH, "etl/1", "loop")


def started(*parts: dict[str, Any], engine: Engine | None = None) -> RunHandle:
    """A workflow of these steps that was started."""
    where = engine or Engine(partitions=2)
    where.push(tree("etl", *parts))
    return where.start("etl")


def resized(loop: dict[str, Any], *parts: dict[str, Any], **given: int | str) -> RunHandle:
    """A workflow with a loop whose size is an output of the step before it."""
    return started(sizing("main", *_names(loop), **given), loop, *parts)


def _names(loop: dict[str, Any]) -> list[str]:
    (inner,) = loop.values()
    return [inner["id"]]


def say(run: RunHandle, report: Report = Report.SUCCEEDED) -> None:
    """All tasks that there are now end like this."""
    for task in run.engine.tasks():
        task.say(report)


def size(run: RunHandle, **outputs: int | str | bool) -> None:
    run.engine.task(run, "main").succeed("w", **outputs)


def enriched(views: Views, run_id: int | None = None, workflow_id: str = "etl") -> Any:
    record = views.read(instances.run, workflow_id, 1, run_id)
    assert record is not None
    (found,) = views.read(told_more, [record], aggregated=False, enriched=True)
    return found["runtime_overview"]


def rollup(run: RunHandle) -> Any:
    return enriched(view_of(run.engine))["rollup_overview"]


def artifact(views: Views, step_id: str, run_id: int | None = None, number: int | None = None) -> Any:
    found = views.read(steps.attempt, ("etl", 1, step_id), run_id, number)
    assert found is not None
    (one,) = found["artifacts"].values()
    return one


def listed(views: Views, step_id: str) -> list[tuple[str, int, str]]:
    page = views.read(children, ("etl", 1, step_id), PageRequest())
    assert page["total_count"] == len(page["elements"])
    return [(one["workflow_id"], one["workflow_instance_id"], one["status"]) for one in page["elements"]]


# What a restart has discarded ---------------------------------------------------------------------------------------


def test_a_while_step_that_runs_again_with_fewer_rounds_counts_these_alone() -> None:
    run = resized(sized("while", "main__long", step("work", TYPE)), long=1)
    size(run, long=5)
    for _ in range(4):
        say(run)
    say(run, Report.FATAL_ERROR)
    run.restart(BEGINNING)
    size(run, long=1)
    say(run)

    found, views = rollup(run), view_of(run.engine)

    # `main`, and in the one round the step that counts and the step that works.
    assert found == {"total_leaf_count": 3, "overview": {"SUCCEEDED": {"cnt": 3}}}
    assert [number for _, number, _ in listed(views, "by_main_long")] == [1]


def test_a_while_step_that_goes_on_with_a_round_counts_the_rounds_before_it() -> None:
    run = resized(sized("while", "main__long", step("work", TYPE)), long=1)
    size(run, long=3)
    say(run)
    say(run)
    say(run, Report.FATAL_ERROR)
    run.restart(INCOMPLETE)

    found = rollup(run)

    assert {status: entry["cnt"] for status, entry in found["overview"].items()} == {"SUCCEEDED": 6, "STARTING": 1}
    assert len(listed(view_of(run.engine), "by_main_long")) == 3


def test_a_foreach_step_that_shrinks_counts_and_lists_the_iterations_that_are_left() -> None:
    run = resized(sized("foreach", "main__wide", step("work", TYPE)), wide=1)
    size(run, wide=3)
    say(run, Report.FATAL_ERROR)
    run.restart(BEGINNING)
    size(run, wide=1)
    say(run)

    found, views = rollup(run), view_of(run.engine)

    assert found == {"total_leaf_count": 2, "overview": {"SUCCEEDED": {"cnt": 2}}}
    assert [(number, status) for _, number, status in listed(views, "by_main_wide")] == [(1, "SUCCEEDED")]


def test_a_foreach_step_that_shrinks_to_nothing_is_a_leaf() -> None:
    run = resized(sized("foreach", "main__wide", step("work", TYPE)), wide=1)
    size(run, wide=3)
    say(run)
    run.restart(BEGINNING)
    size(run, wide=0)

    found = rollup(run)

    assert found == {"total_leaf_count": 2, "overview": {"SUCCEEDED": {"cnt": 2}}}
    assert listed(view_of(run.engine), "by_main_wide") == []


def test_a_subworkflow_step_that_names_another_workflow_counts_the_new_child() -> None:
    engine = Engine()
    engine.push(tree("one", step("work", TYPE)))
    engine.push(tree("two", step("a", TYPE), step("b", TYPE)))
    sub = subworkflow("sub", "one")
    sub["subworkflow"]["params"]["subworkflow_id"] = {"type": "STRING", "expression": "main__child"}
    run = started(sizing("main", "sub", child="one"), sub, engine=engine)
    size(run, child="one")
    say(run, Report.FATAL_ERROR)
    run.restart(BEGINNING)
    size(run, child="two")
    say(run)

    found = rollup(run)

    assert found == {"total_leaf_count": 3, "overview": {"SUCCEEDED": {"cnt": 3}}}
    assert listed(view_of(engine), "sub") == [("two", 1, "SUCCEEDED")]


def test_a_composite_step_in_a_cycle_counts_its_present_turn() -> None:
    review = sizing("review", go=0)
    review["step"]["transition"] = {"successors": {"by_main_wide": "go > 0"}}
    run = resized(sized("foreach", "main__wide", step("work", TYPE), to="review"), review, wide=1)
    size(run, wide=2)
    say(run, Report.SUCCEEDED)
    run.engine.task(run, "review").succeed("w", go=1)
    turn = RunHandle(run.engine, inline_id(ChildKind.FOREACH, "etl/1", "by_main_wide"), 2)
    run.engine.task(turn, "work").succeed()

    found = artifact(view_of(run.engine), "by_main_wide")["foreach_overview"]

    assert found["rollup"] == {"total_leaf_count": 2, "overview": {"SUCCEEDED": {"cnt": 1}, "STARTING": {"cnt": 1}}}
    assert found["details"] == {"SUCCEEDED": [2], "IN_PROGRESS": [1]}


def test_a_composite_step_that_the_next_turn_has_not_come_to_does_not_count() -> None:
    review = sizing("review", "by_main_wide", go=0)
    loop = sized("foreach", "main__wide", step("work", TYPE), to="again")
    again = sizing("again", go=0)
    again["step"]["transition"] = {"successors": {"review": "go > 0"}}
    run = started(sizing("main", "review", wide=1), review, loop, again)
    size(run, wide=2)
    run.engine.task(run, "review").succeed()
    for number in (1, 2):
        turn = RunHandle(run.engine, inline_id(ChildKind.FOREACH, "etl/1", "by_main_wide"), number)
        run.engine.task(turn, "work").succeed()
    run.engine.task(run, "again").succeed("w", go=1)

    found = rollup(run)

    # `main` and the last turn of `again`; `review` runs again.
    assert found == {"total_leaf_count": 3, "overview": {"SUCCEEDED": {"cnt": 2}, "STARTING": {"cnt": 1}}}


def test_what_a_restart_discards_leaves_all_steps_above() -> None:
    engine = Engine(partitions=3)
    engine.push(tree("deep", sizing("main", "by_main_wide", wide=1), sized("foreach", "main__wide", step("in", TYPE))))
    run = started(foreach("loop", [1], subworkflow("sub", "deep")), engine=engine)
    deep = RunHandle(engine, "deep", 1)
    size(deep, wide=4)
    say(run, Report.FATAL_ERROR)
    run.restart(BEGINNING)
    size(deep, wide=1)

    found = rollup(run)

    assert found["overview"] == {"SUCCEEDED": {"cnt": 1}, "STARTING": {"cnt": 1}}
    assert artifact(view_of(engine), "loop")["foreach_overview"]["rollup"] == found


# References ---------------------------------------------------------------------------------------------------------


def test_references_are_to_the_leaves_that_count() -> None:
    loop, kept = foreach("loop", [1, 2], step("work", TYPE)), foreach("kept", [1], step("part", TYPE))
    run = started(step("first", TYPE, "loop"), loop, kept, step("other", TYPE))
    run.engine.task(run, "first").succeed()
    say(run, Report.FATAL_ERROR)
    before = rollup(run)["overview"]["FATALLY_FAILED"]
    run.restart(SPECIFIC, step_id="first")

    after = rollup(run)["overview"]["FATALLY_FAILED"]

    part = {f"{inline_id(ChildKind.FOREACH, 'etl/1', 'kept')}:1": ["1:part:1"]}
    assert before == {"cnt": 4, "ref": {"etl:1": ["1:other:1"], **part, f"{LOOP}:1": ["1:work:1", "2:work:1"]}}
    assert after == {"cnt": 2, "ref": {"etl:1": ["1:other:0"], **part}}


def test_references_that_do_not_count_leave_room_for_those_that_do() -> None:
    inner = sized("foreach", "part__wide", step("work", TYPE))
    run = started(foreach("loop", [1, 2], sizing("part", "by_part_wide", wide=1), inner))
    for wide in (REFS_MAX + 20, 0):
        for number, count in ((1, wide), (2, 1)):
            run.engine.task(RunHandle(run.engine, LOOP, number), "part").succeed("w", wide=count)
        say(run, Report.FATAL_ERROR)
        if wide:
            run.restart(BEGINNING)

    found = rollup(run)["overview"]["FATALLY_FAILED"]

    where = inline_id(ChildKind.FOREACH, f"{LOOP}/2", "by_part_wide")
    assert found == {"cnt": 1, "ref": {f"{where}:2": ["1:work:1"]}}


def test_references_are_limited_over_all_steps_of_an_instance() -> None:
    first, second = (foreach(name, list(range(80)), step(f"in_{name}", TYPE)) for name in ("a", "b"))
    run = started(first, second, step("own", TYPE))
    say(run, Report.FATAL_ERROR)

    found = rollup(run)["overview"]["FATALLY_FAILED"]

    assert found["cnt"] == 161
    assert sum(len(named) for named in found["ref"].values()) == REFS_MAX
    assert found["ref"]["etl:1"] == ["1:own:1"]


# The past -----------------------------------------------------------------------------------------------------------


def restarted_loop() -> RunHandle:
    """A loop of three iterations of which two have failed. Both run again, and one of them succeeds."""
    run = started(foreach("loop", [1, 2, 3], step("work", TYPE)))
    one, two, three = run.engine.tasks()
    one.succeed()
    two.say(Report.FATAL_ERROR)
    three.say(Report.FATAL_ERROR)
    run.restart(INCOMPLETE)
    run.engine.task(RunHandle(run.engine, LOOP, 2), "work").succeed()
    return run


def test_a_run_that_is_not_the_latest_tells_no_leaves_that_changed_since() -> None:
    views = view_of(restarted_loop().engine)

    past, present = enriched(views, 1), enriched(views)

    assert past["rollup_overview"] is None
    assert past["run_status"] == "FAILED"
    assert past["step_overview"]["FATALLY_FAILED"]["cnt"] == 1
    assert present["rollup_overview"]["overview"] == {"SUCCEEDED": {"cnt": 2}, "STARTING": {"cnt": 1}}


def test_an_earlier_attempt_tells_how_its_iterations_have_ended() -> None:
    views = view_of(restarted_loop().engine)

    past, present = (artifact(views, "loop", run_id)["foreach_overview"] for run_id in (1, 2))

    assert (past["stats"], past["running_stats"]) == ({"SUCCEEDED": 1, "FAILED": 2}, {})
    assert past["details"] == {"SUCCEEDED": [1], "FAILED": [(2, 3)]}
    assert past["rollup"] is None
    assert (present["stats"], present["running_stats"]) == ({"SUCCEEDED": 2}, {"IN_PROGRESS": 1})
    assert present["rollup"]["total_leaf_count"] == 3
    assert present["restart_info"] == []  # the new attempt has launched them once


def test_each_run_of_an_iteration_has_the_run_of_its_parent() -> None:
    views = view_of(restarted_loop().engine)

    found = [views.read(instances.run, LOOP, 2, run_id) for run_id in (1, 2)]
    page = views.read(instances.runs, LOOP, 2, PageRequest())

    assert [one and one["parent"]["workflow_run_id"] for one in found] == [1, 2]
    assert [one["parent"]["workflow_run_id"] for one in page["elements"]] == [2, 1]


def test_each_run_of_a_subworkflow_has_the_run_of_its_parent() -> None:
    engine = Engine()
    engine.push(tree("deep", step("work", TYPE)))
    run = started(subworkflow("sub", "deep"), engine=engine)
    say(run, Report.FATAL_ERROR)
    run.restart(INCOMPLETE)
    views = view_of(engine)

    found = [views.read(instances.run, "deep", 1, run_id) for run_id in (1, 2)]
    past = artifact(views, "sub", 1)

    assert [one and one["parent"]["workflow_run_id"] for one in found] == [1, 2]
    assert (past["subworkflow_run_id"], past["subworkflow_status"]) == (1, "FAILED")
    assert past["subworkflow_overview"]["rollup_overview"] is None


def test_a_step_that_waits_to_run_again_has_no_children_now() -> None:
    run = started(step("first", TYPE, "loop"), foreach("loop", [1, 2], step("work", TYPE)))
    say(run)
    say(run, Report.FATAL_ERROR)
    run.restart(SPECIFIC, step_id="first")
    views = view_of(run.engine)

    assert listed(views, "loop") == []
    assert artifact(views, "loop")["foreach_overview"]["stats"] == {"FAILED": 2}


# Artifacts ----------------------------------------------------------------------------------------------------------


def test_a_while_step_tells_the_values_of_all_rounds_and_the_leaves_of_the_last_one_apart() -> None:
    run = resized(sized("while", "main__long", step("work", TYPE)), long=1)
    size(run, long=3)
    running = [artifact(view_of(run.engine), "by_main_long")]
    for _ in range(3):
        say(run)
        running.append(artifact(view_of(run.engine), "by_main_long"))

    values = [one["loop_param_values"]["by_main_long_n"] for one in running]
    leaves = [
        (one["rollup"]["total_leaf_count"], one["last_overview"]["rollup_overview"]["total_leaf_count"])
        for one in running
    ]

    assert [[int(bytes(value)) for value in one] for one in values] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert leaves == [(0, 2), (2, 2), (4, 2), (4, 2)]
    assert running[-1]["last_overview"]["run_status"] == "SUCCEEDED"


def test_the_leaves_of_the_rounds_before_the_last_one_have_references_of_their_own() -> None:
    lenient = step("work", TYPE)
    lenient["step"]["failure_mode"] = "IGNORE_FAILURE"
    run = resized(sized("while", "main__long", step("fails", TYPE), lenient), long=1)
    size(run, long=2)
    engine, inline = run.engine, inline_id(ChildKind.WHILE, "etl/1", "by_main_long")
    engine.task(RunHandle(engine, inline, 1), "fails").succeed()
    engine.task(RunHandle(engine, inline, 1), "work").succeed()
    engine.task(RunHandle(engine, inline, 2), "fails").say(Report.FATAL_ERROR)

    found = artifact(view_of(engine), "by_main_long")

    assert found["rollup"]["overview"] == {"SUCCEEDED": {"cnt": 3}}
    assert found["last_overview"]["rollup_overview"]["overview"]["FATALLY_FAILED"]["ref"] == {
        f"{inline}:1": ["2:fails:1"]
    }


def test_a_subworkflow_step_tells_how_far_the_run_of_its_child_is() -> None:
    engine = Engine()
    engine.push(tree("deep", step("a", TYPE, "b"), step("b", TYPE)))
    run = started(subworkflow("sub", "deep"), engine=engine)
    say(run)

    found = artifact(view_of(engine), "sub")["subworkflow_overview"]

    assert (found["total_step_count"], found["run_status"]) == (2, "IN_PROGRESS")
    assert set(found["step_overview"]) == {"SUCCEEDED", "STARTING"}
    assert found["rollup_overview"]["total_leaf_count"] == 2


def test_a_foreach_step_tells_up_to_where_all_iterations_have_ended_and_which_run_again() -> None:
    run = started(foreach("loop", [1, 2, 3], step("work", TYPE)))
    engine = run.engine
    before = artifact(view_of(engine), "loop")["foreach_overview"]["checkpoint"]
    for number, report in ((1, Report.SUCCEEDED), (2, Report.FATAL_ERROR)):
        engine.task(RunHandle(engine, LOOP, number), "work").say(report)
    RunHandle(engine, LOOP, 2).restart(BEGINNING)
    again = artifact(view_of(engine), "loop")["foreach_overview"]
    for number in (2, 3):
        engine.task(RunHandle(engine, LOOP, number), "work").succeed()

    found = artifact(view_of(engine), "loop")

    assert before == 1
    assert (again["checkpoint"], again["restart_info"], again["running_stats"]) == (2, [2], {"IN_PROGRESS": 2})
    assert (found["foreach_overview"]["checkpoint"], found["foreach_overview"]["restart_info"]) == (4, [])
    assert found["pending_action"] is None


# Deleted workflows --------------------------------------------------------------------------------------------------


def test_iterations_of_a_deleted_workflow_are_not_listed() -> None:
    run = started(foreach("loop", [1, 2], step("work", TYPE)))
    before = view_of(run.engine)
    deleted(run.engine, "etl")

    after = view_of(run.engine)

    for views, count in ((before, 2), (after, 0)):
        assert sum(views.read(counts, LOOP).values()) == count
        for filters in (
            Filters(workflow_id=LOOP),
            Filters(workflow_id=LOOP, statuses=("IN_PROGRESS", "FAILED", "STOPPED")),
        ):
            assert views.read(browse, PageRequest(), filters)["total_count"] == count
        assert len(views.read(matrix, LOOP, 10)["instances"]) == count
        assert (views.read(instances.run, LOOP, 1) is not None) == bool(count)
