"""The commands of the how-to for restarts inside a loop do what the page says of them."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.api.places import Json, Place, embedded_place, step
from tests.unit.cli.test_instances import kapelle
from tests.unit.views.trees import foreach

PAGE = (Path(__file__).parents[3] / "docs" / "composites.md").read_text()
HOW_TO = PAGE[PAGE.index("### How to restart inside a loop") : PAGE.index("## What a push checks")]
KIND = "by-hand"
LOAD, CHECK = "load", "check"
# What runs again by each command of the page, and the parameter that it has.
EXPECTED = [
    ({2: CHECK}, None),
    ({2: LOAD}, None),
    ({2: LOAD}, 10),
    ({2: CHECK}, None),
    ({2: LOAD}, None),
    ({1: LOAD, 2: LOAD, 3: LOAD}, 10),
]


def commands() -> list[list[str]]:
    found = re.findall(r"^kapelle (.*?) *(?:#.*)?$", HOW_TO, re.MULTILINE)
    return [shlex.split(words) for words in found]


LOOK, *RESTARTS = commands()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """The instance of the page: `check` of its second iteration has failed."""
    with embedded_place(tmp_path) as found:
        found.push(foreach("parts", [1, 2, 3], step(LOAD, KIND, CHECK), step(CHECK, KIND)), workflow_id="nightly")
        found.start("nightly")
        for task in take(found, 3):
            found.report(task, "SUCCEEDED")
        for task in take(found, 3):
            found.report(task, "FATAL_ERROR" if task["instance_id"] == 2 else "SUCCEEDED")
        assert found.ended("nightly", 1) == "FAILED"
        yield found


def take(place: Place, count: int) -> list[Json]:
    found: list[Json] = []
    while len(found) < count:
        found += place.take(KIND, most=count)
    return found


def test_the_failed_iterations_are_listed(place: Place) -> None:
    told = kapelle(place, *LOOK).stdout

    (line,) = told.splitlines()[1:]
    assert line.split()[:2] == [RESTARTS[0][2], "2"]


@pytest.mark.parametrize(
    ("words", "expected"), list(zip(RESTARTS, EXPECTED, strict=True)), ids=[" ".join(w) for w in RESTARTS]
)
def test_a_command_runs_again_what_the_page_says(place: Place, words: list[str], expected: Any) -> None:
    kapelle(place, *words)

    again, rows = expected
    tasks = take(place, len(again))
    assert {task["instance_id"]: task["step_id"] for task in tasks} == again
    assert {task["params"].get("rows") for task in tasks} == {rows}
    assert place.get("/workflows/nightly/instances/1")["workflow_run_id"] == 2


def test_the_request_of_the_page_is_accepted(place: Place) -> None:
    found = re.search(r"curl --json '(.*?)' \"\$URL/api/v3(.*?)\"", HOW_TO)
    assert found is not None

    answer = place.call("POST", found.group(2), json=json.loads(found.group(1)))

    assert answer["workflow_run_id"] == 2
    assert [task["step_id"] for task in take(place, 1)] == [LOAD]
