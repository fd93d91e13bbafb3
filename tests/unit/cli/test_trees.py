"""Composite steps on the command line: trees of children down to the steps that failed, and how they move."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.cli.progress import PROGRESS, follow
from kapelle.cli.text.children import are_all_there, progress_text
from kapelle.client import Client, StepRecord, TimelineEntry
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind
from tests.integration.api.places import Json, Place, embedded_place, step, until
from tests.unit.cli.test_instances import kapelle
from tests.unit.views.trees import foreach, rounds, subworkflow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def new(kind: str) -> str:
    """A type of steps that no other test has."""
    return f"{kind}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def failed(place: Place) -> tuple[str, str]:
    """A loop of three iterations of which the second has failed: its workflow, and that of its iterations."""
    kind = new("works")
    name = place.push(foreach("loop", [1, 2, 3], step("work", kind)))
    place.start(name)
    tasks = {task["instance_id"]: task for task in place.take(kind, most=3)}
    while len(tasks) < 3:
        tasks |= {task["instance_id"]: task for task in place.take(kind, most=3)}
    for number, report in ((1, "SUCCEEDED"), (2, "FATAL_ERROR"), (3, "SUCCEEDED")):
        place.report(tasks[number], report, message="no such table" if number == 2 else "")
    assert place.ended(name, 1) == "FAILED"
    return name, tasks[1]["workflow_id"]


def test_an_instance_shows_how_its_loops_are_and_which_children_have_failed(
    place: Place, failed: tuple[str, str]
) -> None:
    name, inline = failed

    told = kapelle(place, "run", "describe", name, "1").stdout

    assert "steps     3 steps: 2 SUCCEEDED, 1 FATALLY_FAILED\n" in told
    heads, step, *tree = told.partition("\n\n")[2].splitlines()
    assert heads.split() == ["STEP", "RUN", "ATTEMPT", "STATUS", "TOOK", "WORKER", "WHAT"]
    assert step.split()[:4] == ["loop", "1", "1", "FATALLY_FAILED"]
    assert tree == [
        "  3 iterations: 2 SUCCEEDED, 1 FAILED; 3 steps: 2 SUCCEEDED, 1 FATALLY_FAILED",
        f"  {inline}/2  run 1  FAILED",
        "    work  run 1  attempt 1  FATALLY_FAILED  no such table",
        f"      to restart it: kapelle step restart {inline} 2 work",
        "  … and 2 more: 2 SUCCEEDED",
    ]


def test_an_instance_as_json_has_its_failed_children_in_its_own_form(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    told = json.loads(kapelle(place, "run", "describe", name, "1", "-o", "json").stdout)

    (child,) = told["children"]["loop"]
    assert (child["workflow_id"], child["workflow_instance_id"], child["status"]) == (inline, 2, "FAILED")
    assert [(one["step_id"], one["status"]) for one in child["steps"]] == [("work", "FATALLY_FAILED")]
    assert told["other_children"] == {"loop": {"count": 2, "statuses": {"SUCCEEDED": 2}}}


def fail_deep(place: Place, *, sizes: tuple[int, int] = (3, 12), bad: tuple[int, int]) -> tuple[str, list[str]]:
    """A foreach in a subworkflow in a foreach, of which one step at the bottom has failed; all others wait."""
    kind = new("deep")
    numbers = [list(range(size)) for size in sizes]
    below = place.push(foreach("inner", numbers[1], step("work", kind)), run_strategy="PARALLEL")
    name = place.push(foreach("outer", numbers[0], subworkflow("call", below)))
    place.start(name)
    outer = inline_id(ChildKind.FOREACH, f"{name}/1", "outer")
    tasks: list[Json] = []
    while len(tasks) < sizes[0] * sizes[1]:
        tasks += place.take(kind, most=50)
    call = place.get(f"/workflows/{outer}/instances/{bad[0]}/steps")[0]["artifacts"]["maestro_subworkflow"]
    inner = inline_id(ChildKind.FOREACH, f"{below}/{call['subworkflow_instance_id']}", "inner")
    (task,) = [one for one in tasks if (one["workflow_id"], one["instance_id"]) == (inner, bad[1])]
    place.report(task, "FATAL_ERROR", message="no such table")
    until(lambda: place.get(f"/workflows/{inner}/instances/{bad[1]}")["status"] == "FAILED", "the failure")
    until(lambda: rollup(place, name, "outer").keys() == {"RUNNING", "FATALLY_FAILED"}, "the steps to be counted")
    return name, [f"{outer}/{bad[0]}", f"{below}/{call['subworkflow_instance_id']}", f"{inner}/{bad[1]}"]


def rollup(place: Place, name: str, step_id: str) -> Json:
    steps = {one["step_id"]: one for one in place.get(f"/workflows/{name}/instances/1/steps")}
    overview: Json = steps[step_id]["artifacts"]["maestro_foreach"]["foreach_overview"]["rollup"]["overview"]
    return overview


def test_a_failure_three_levels_down_is_shown_with_the_way_to_it_though_everything_above_it_runs(place: Place) -> None:
    name, way = fail_deep(place, bad=(3, 12))

    told = kapelle(place, "run", "describe", name, "1").stdout

    tree = told.partition("\n\n")[2].splitlines()[2:]
    inner, number = way[2].split("/")
    assert [line for line in tree if "FAIL" in line] == [
        "  3 iterations: 3 IN_PROGRESS; 36 steps: 35 RUNNING, 1 FATALLY_FAILED",
        f"      {way[1].replace('/', ' ')}: IN_PROGRESS; 12 steps: 11 RUNNING, 1 FATALLY_FAILED",
        "          12 iterations: 11 IN_PROGRESS, 1 FAILED; 12 steps: 11 RUNNING, 1 FATALLY_FAILED",
        f"          {way[2]}  run 1  FAILED",
        "            work  run 1  attempt 1  FATALLY_FAILED  no such table",
    ]
    assert f"  {way[0]}  run 1  IN_PROGRESS" == tree[1]
    assert f"      {way[1]}  run 1  IN_PROGRESS" in tree
    assert f"              to restart it: kapelle step restart {inner} {number} work" in tree
    assert "          … and 2 more: 2 IN_PROGRESS" in tree


def test_the_command_that_a_tree_shows_for_a_failed_step_restarts_it(place: Place) -> None:
    name, way = fail_deep(place, bad=(1, 2))
    told = kapelle(place, "run", "describe", name, "1").stdout
    (line,) = [line for line in told.splitlines() if "to restart it: " in line]

    kapelle(place, *line.partition("kapelle ")[2].split())

    path = "/workflows/{}/instances/{}/steps".format(*way[2].split("/"))
    until(lambda: place.get(path)[0]["status"] == "STARTING", "the step to be started again")


@pytest.mark.parametrize(("depth", "shown"), [(0, 0), (1, 1), (2, 2), (3, 3)])
def test_a_depth_bounds_the_levels_of_children(place: Place, depth: int, shown: int) -> None:
    name, way = fail_deep(place, bad=(1, 1))

    told = kapelle(place, "run", "describe", name, "1", "--depth", str(depth)).stdout

    assert [at in told for at in way] == [level < shown for level in range(3)]
    assert "1 FATALLY_FAILED" in told


def test_a_step_that_failed_below_an_iteration_that_succeeded_is_shown(place: Place) -> None:
    kind = new("ignored")
    inner = foreach("inner", [1], step("work", kind), failure_mode="IGNORE_FAILURE")
    name = place.push(foreach("outer", [1], foreach("middle", [1], inner)))
    place.start(name)
    place.report(place.take(kind)[0], "FATAL_ERROR", message="no such table")
    assert place.ended(name, 1) == "SUCCEEDED"

    told = kapelle(place, "run", "describe", name, "1").stdout

    assert "  middle  run 1  attempt 1  SUCCEEDED\n" in told
    assert "  work  run 1  attempt 1  FATALLY_FAILED  no such table\n" in told


def test_a_tree_of_failures_is_bounded_and_tells_how_much_is_not_shown(place: Place) -> None:
    kind = new("many")
    name = place.push(foreach("outer", list(range(12)), foreach("inner", list(range(12)), step("work", kind))))
    place.start(name)
    tasks: list[Json] = []
    while len(tasks) < 144:
        tasks += place.take(kind, most=50)
    for task in tasks:
        place.report(task, "FATAL_ERROR", message="no such table")
    assert place.ended(name, 1) == "FAILED"
    until(lambda: rollup(place, name, "outer").keys() == {"FATALLY_FAILED"}, "the end of all steps")

    told = kapelle(place, "run", "describe", name, "1").stdout

    outer = inline_id(ChildKind.FOREACH, f"{name}/1", "outer")
    assert [f"  {outer}/{number}  run 1  FAILED" in told for number in range(1, 13)] == [True] * 10 + [False] * 2
    listing = f"kapelle run list --parent {name}/1 --step outer --status FAILED"
    assert f"\n  … and 2 more: 2 FAILED; to list them: {listing}\n" in told
    assert f"to see its steps: kapelle run describe {outer} 10\n" in told
    assert len(told.splitlines()) < 300


def test_an_iteration_shows_its_parent(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    told = kapelle(place, "run", "describe", inline, "2").stdout

    assert f"parent    {name} 1 run 1, step loop\n" in told


def test_children_of_a_step_are_listed_by_status(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    told = kapelle(place, "run", "list", "--parent", f"{name}/1", "--step", "loop", "--status", "failed").stdout

    heads, line = told.splitlines()
    assert heads.split() == ["WORKFLOW", "INSTANCE", "RUN", "STATUS", "CREATED", "TOOK", "REASON"]
    assert line.split()[:4] == [inline, "2", "1", "FAILED"]


@pytest.mark.parametrize(
    "words",
    [
        ("--parent", "etl/12"),
        ("--step", "loop"),
        ("--parent", "etl", "--step", "loop"),
        ("--parent", "etl/x", "--step", "loop"),
        ("etl", "--parent", "etl/12", "--step", "loop"),
    ],
)
def test_a_parent_that_is_not_whole_is_refused(place: Place, words: tuple[str, ...]) -> None:
    assert "--parent" in kapelle(place, "run", "list", *words, code=2).stderr


def test_a_watch_ends_with_the_numbers_of_all_children(place: Place) -> None:
    child = place.push(step("only"))
    name = place.push(foreach("loop", [1, 2], step("quick"), to="again"), rounds("again", 2), subworkflow("sub", child))
    place.start(name)

    told = kapelle(place, "run", "watch", name, "1").stdout

    last = {line.split()[1]: line for line in told.splitlines() if "iterations:" in line or ": SUCCEEDED" in line}
    assert last["loop"].endswith("2 iterations: 2 SUCCEEDED; 2 steps: 2 SUCCEEDED")
    assert last["again"].endswith("round 2: SUCCEEDED; 2 steps: 2 SUCCEEDED")
    assert last["sub"].endswith(f"{child} 1: SUCCEEDED; 1 step: 1 SUCCEEDED")


def test_a_watch_shows_steps_move_below_children_that_do_not(place: Place) -> None:
    kind = new("moves")
    name = place.push(foreach("outer", [1, 2], foreach("inner", [1, 2, 3], step("work", kind))))
    place.start(name)
    tasks: list[Json] = []
    while len(tasks) < 6:
        tasks += place.take(kind, most=6)
    looks: list[str] = []

    def look(entry: TimelineEntry) -> None:
        """One task is done whenever the numbers have moved."""
        if entry.type == PROGRESS and entry.step_id == "outer":
            looks.append(entry.message or "")
            if tasks:
                place.report(tasks.pop(0), "SUCCEEDED")

    with Client(place.url) as client:
        follow(client, (name, 1), 60, look)

    while_it_ran = looks[:5]
    assert {text.partition(";")[0] for text in while_it_ran[:3]} == {"2 iterations: 2 IN_PROGRESS"}
    done = [re.findall(r"6 steps:.*?(\d) SUCCEEDED", text) for text in looks]
    assert done == [[], ["1"], ["2"], ["3"], ["4"], ["5"], ["6"]]
    assert looks[-1] == "2 iterations: 2 SUCCEEDED; 6 steps: 6 SUCCEEDED"


@pytest.mark.parametrize(("status", "is_waited_for"), [("SUCCEEDED", True), ("RUNNING", False)])
def test_a_watch_waits_for_steps_that_still_run_below_a_step_that_has_ended(status: str, is_waited_for: bool) -> None:
    rollup = {"total_leaf_count": 2, "overview": {"SUCCEEDED": {"cnt": 1}, "RUNNING": {"cnt": 1}}}
    overview = {"stats": {"SUCCEEDED": 1}, "running_stats": {}, "rollup": rollup}
    artifacts = {"maestro_foreach": {"foreach_overview": overview, "next_loop_index": 1}}

    assert are_all_there(StepRecord("loop", 1, 1, status, artifacts=artifacts)) is not is_waited_for


def test_the_steps_of_the_last_round_are_counted_with_those_of_the_rounds_before_it() -> None:
    before = {"total_leaf_count": 2, "overview": {"SUCCEEDED": {"cnt": 2}}}
    last = {
        "total_leaf_count": 2,
        "overview": {"SUCCEEDED": {"cnt": 1}, "RUNNING": {"cnt": 1, "ref": {"w:1": ["3:x:1"]}}},
    }
    found = {"last_iteration": 3, "last_status": "IN_PROGRESS", "rollup": before}
    overview = {"last_overview": {"rollup_overview": last}}

    step = StepRecord("again", 1, 1, "RUNNING", artifacts={"maestro_while": {**found, **overview}})

    assert progress_text(step) == "round 3: IN_PROGRESS; 4 steps: 3 SUCCEEDED, 1 RUNNING"


def test_steps_that_the_server_does_not_know_are_said_to_be_unknown() -> None:
    found = {"last_iteration": 3, "last_status": "SUCCEEDED", "rollup": None, "last_overview": None}

    step = StepRecord("again", 1, 1, "SUCCEEDED", artifacts={"maestro_while": found})

    assert progress_text(step) == "round 3: SUCCEEDED; steps unknown"
    assert are_all_there(step)


def test_an_iteration_is_restarted_and_stopped_by_its_address(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    restarted = kapelle(place, "run", "restart", inline, "2").stdout
    stopped = kapelle(place, "run", "stop", inline, "2").stdout

    assert restarted == f"{name} 1 run 2\n"
    assert stopped == f"{inline} 2 is STOPPED\n"


def test_a_restart_of_a_step_in_an_iteration_tells_which_run_carries_it_out(
    place: Place, failed: tuple[str, str]
) -> None:
    name, inline = failed

    restarted = kapelle(place, "step", "restart", inline, "2", "work").stdout
    told = kapelle(place, "step", "describe", name, "1", "loop").stdout

    assert restarted == f"{inline} 2 work is restarted in run 2 of {name} 1\n"
    assert "children       3 iterations: 2 SUCCEEDED, 1 " in told


def test_a_step_of_an_iteration_is_restarted_from_the_inline_root(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    told = kapelle(
        place, "step", "restart", inline, "2", "work", "--from-inline-root", "--from-start", "--param", "x=7"
    ).stdout

    assert told == f"{inline} 2 work is restarted in run 2 of {name} 1\n"

    def given() -> bool:
        steps = [place.get(f"/workflows/{inline}/instances/{number}/steps/work") for number in (1, 2, 3)]
        return [one["params"].get("x") for one in steps] == [7, 7, 7]

    until(given, "all iterations to have the parameter")


def test_all_iterations_that_run_are_stopped_by_their_workflow_id(place: Place) -> None:
    kind = f"works-{len(place.get('/workflows')['elements'])}"
    name = place.push(foreach("loop", [1, 2, 3], step("work", kind)))
    place.start(name)
    inline = place.take(kind)[0]["workflow_id"]

    told = kapelle(place, "workflow", "stop", inline, "--yes").stdout

    assert "3" in told
    assert place.ended(name, 1) == "STOPPED"


def test_the_leaves_of_an_earlier_run_are_unknown(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed
    kapelle(place, "run", "restart", inline, "2")

    told = kapelle(place, "run", "describe", name, "1", "--run", "1").stdout

    assert "steps     unknown\n" in told
    assert "  3 iterations: 2 SUCCEEDED, 1 FAILED; steps unknown\n" in told


def test_a_while_step_shows_the_steps_of_all_its_rounds(place: Place) -> None:
    name = place.push(rounds("again", 3, step("quick")))
    place.start(name)
    assert place.ended(name, 1) == "SUCCEEDED"

    told = kapelle(place, "run", "describe", name, "1").stdout

    assert "  round 3: SUCCEEDED; 6 steps: 6 SUCCEEDED\n" in told
