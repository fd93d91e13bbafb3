"""Trees of instances are rebuilt from history: as of a moment, in a file, and when a directory is verified."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing.engine import Engine, RunHandle
from kapelle.testing.replay import Recording, assert_replays
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology
from tests.support.trees import ROOT, foreach, rounds, subworkflow, task, tree
from tests.unit.replay.test_commands import kapelle

LOOP = inline_id(ChildKind.FOREACH, f"{ROOT}/1", "loop")
WHILE = inline_id(ChildKind.WHILE, f"{ROOT}/1", "again")
FAILED_AT = "2023-11-14T22:13:20Z"  # nothing is restarted yet
SECOND_MS = 1_000


def story(engine: Engine) -> None:
    """All kinds of children; an iteration and a subworkflow fail; the tree is restarted, and then one child of it."""
    engine.push(tree(task("below-work"), workflow_id="below"))
    engine.push(tree(foreach("loop", 3, task("work")), rounds("again", 2), subworkflow("call", "below")))
    root = engine.start(ROOT)
    below = RunHandle(engine, "below", 1)
    iterations = [RunHandle(engine, LOOP, number) for number in (1, 2, 3)]
    for number in (0, 2):
        engine.task(iterations[number], "work").succeed()
    engine.task(iterations[1], "work").fail("it broke", c.Report.FATAL_ERROR)
    engine.task(below, "below-work").fail("it broke too", c.Report.FATAL_ERROR)
    engine.advance(SECOND_MS)
    root.restart()
    engine.task(iterations[1], "work").succeed()
    engine.task(below, "below-work").fail("once more", c.Report.FATAL_ERROR)
    engine.advance(SECOND_MS)
    below.restart()
    engine.task(below, "below-work").succeed()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("trees") / "data"
    engine = Engine()
    engine.topology = topology()
    with EmbeddedRuntime(engine.topology, directory / "log", clock=engine.clock) as runtime:
        engine.runtime = runtime
        story(engine)
        assert [run.status for run in engine.runs(ROOT)] == ["SUCCEEDED"]
    return directory


def shown(data: Path, moment: str, *words: str) -> Callable[[str], list[dict[str, Any]]]:
    """The rows of a table, among those that are about something at a moment."""
    told = json.loads(kapelle("replay", "as-of", moment, *words, "--data", data, "-o", "json").stdout)
    return lambda table: [one for one in told["rows"] if one["table"] == table]


def statuses(rows: list[dict[str, Any]], step_id: str) -> list[tuple[int, str, int]]:
    return [(one["key"][2], one["row"]["status"], one["row"]["run_id"]) for one in rows if one["key"][1] == step_id]


def test_the_children_of_an_instance_are_shown_as_they_were(data: Path) -> None:
    before, after = (shown(data, moment, "instance", ROOT, "1") for moment in (FAILED_AT, "end"))

    assert statuses(before("children"), "loop") == [(1, "SUCCEEDED", 1), (2, "FAILED", 1), (3, "SUCCEEDED", 1)]
    assert statuses(after("children"), "loop") == [(1, "SUCCEEDED", 1), (2, "SUCCEEDED", 2), (3, "SUCCEEDED", 1)]
    assert statuses(before("children"), "call") == [(1, "FAILED", 1)]
    assert statuses(after("children"), "call") == [(1, "SUCCEEDED", 3)]
    assert statuses(after("children"), "again") == [(1, "SUCCEEDED", 1), (2, "SUCCEEDED", 1)]
    counts = {one["key"][1]: (one["row"]["total"], one["row"]["failed"]) for one in before("fans")}
    assert (counts["loop"], counts["call"]) == ((3, 1), (1, 1))


@pytest.mark.parametrize(("workflow_id", "number", "run_id"), [(LOOP, 2, 2), (LOOP, 3, 1), (WHILE, 2, 1)])
def test_an_iteration_and_a_round_are_shown_with_their_parents(
    data: Path, workflow_id: str, number: int, run_id: int
) -> None:
    [run] = shown(data, "end", "instance", workflow_id, str(number))("runs")

    assert (run["row"]["run_id"], run["row"]["status"]) == (run_id, "SUCCEEDED")
    parent = run["row"]["parent"]
    assert (parent["key"], parent["number"], parent["root"]) == (f"{ROOT}/1", number, f"{ROOT}/1")


def test_every_table_of_a_tree_is_the_fold_of_its_history(data: Path, tmp_path: Path) -> None:
    found = json.loads(kapelle("verify", "--data", data, "-o", "json").stdout)
    kapelle("replay", "export", tmp_path / "history.avro", "--data", data)
    exported = json.loads(kapelle("verify", "--file", tmp_path / "history.avro", "-o", "json").stdout)

    for verdicts in (found, exported):
        assert [one for one in verdicts if one["first"] is not None or one["differences"]] == []
        assert sum(one["events"] for one in verdicts if one["processor"] == "runs") > 50


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_recorded_tree_is_decided_as_it_was(tmp_path: Path, partitions: int) -> None:
    engine = Recording(partitions=partitions)
    story(engine)
    engine.save(tmp_path / "tree.avro")

    assert_replays(tmp_path / "tree.avro")
