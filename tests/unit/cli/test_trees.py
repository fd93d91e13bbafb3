"""Composite steps on the command line: what people are told of loops, and of the children that did not succeed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.places import Place, embedded_place, step
from tests.unit.cli.test_instances import kapelle
from tests.unit.views.trees import foreach, rounds, subworkflow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


@pytest.fixture
def failed(place: Place) -> tuple[str, str]:
    """A loop of three iterations of which the second has failed: its workflow, and that of its iterations."""
    kind = f"works-{len(place.get('/workflows')['elements'])}"
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
    assert "loop  3 iterations: 2 SUCCEEDED, 1 FAILED  3 steps: 2 SUCCEEDED, 1 FATALLY_FAILED\n" in told
    (line,) = [line for line in told.splitlines() if line.startswith(f"loop  {inline} 2")]
    assert line.split()[3:5] == ["1", "FAILED"]
    assert "no such table" in line


def test_an_instance_as_json_has_its_failed_children(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed

    told = json.loads(kapelle(place, "run", "describe", name, "1", "-o", "json").stdout)

    assert [(one["workflow_id"], one["workflow_instance_id"]) for one in told["children"]["loop"]] == [(inline, 2)]


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


def test_whoever_watches_sees_the_numbers_of_children_move(place: Place) -> None:
    child = place.push(step("only"))
    name = place.push(foreach("loop", [1, 2], step("quick"), to="again"), rounds("again", 2), subworkflow("sub", child))
    place.start(name)

    told = kapelle(place, "run", "watch", name, "1").stdout

    last = {line.split()[1]: line for line in told.splitlines() if "iterations:" in line or ": SUCCEEDED" in line}
    assert last["loop"].endswith("2 iterations: 2 SUCCEEDED")
    assert last["again"].endswith("round 2: SUCCEEDED")
    assert last["sub"].endswith(f"{child} 1: SUCCEEDED")


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


def test_the_leaves_of_an_earlier_run_are_unknown(place: Place, failed: tuple[str, str]) -> None:
    name, inline = failed
    kapelle(place, "run", "restart", inline, "2")

    told = kapelle(place, "run", "describe", name, "1", "--run", "1").stdout

    assert "steps     unknown\n" in told
    assert "loop  3 iterations: 2 SUCCEEDED, 1 FAILED  unknown\n" in told


def test_a_while_step_shows_the_steps_of_all_its_rounds(place: Place) -> None:
    name = place.push(rounds("again", 3, step("quick")))
    place.start(name)
    assert place.ended(name, 1) == "SUCCEEDED"

    told = kapelle(place, "run", "describe", name, "1").stdout

    assert "again  round 3: SUCCEEDED  6 steps: 6 SUCCEEDED\n" in told
