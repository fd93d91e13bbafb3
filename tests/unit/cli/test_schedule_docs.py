"""The commands of docs/schedules.md do what the page says of them, one after the other."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from tests.integration.api.places import Place, embedded_place
from tests.tidy.files import REPOSITORY

PAGE = (REPOSITORY / "docs" / "schedules.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAILY = """
Workflow:
  id: etl
  owner: ann
  time_triggers: [{type: CRON, cron: "0 5 * * *", timezone: Europe/Berlin}]
  jobs: [{job: {id: load, type: NoOp}}]
"""
SLOW = DAILY.replace("NoOp", "by-hand")
BACKFILL_ID = "3f9c21ab04de"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with embedded_place(tmp_path) as found:
        yield found


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def push(place: Place, text: str) -> None:
    place.call("POST", "/workflows/yaml", content=text, headers={"content-type": "application/yaml"})


def kapelle(place: Place, words: list[str]) -> Result:
    url = [] if words[:2] == ["schedule", "preview"] else ["--url", place.url]
    return CliRunner().invoke(cli, [*words, *url], prog_name="kapelle")


def commands(block: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in block.splitlines()]


def test_the_definition_of_the_page_is_armed(place: Place) -> None:
    [text] = blocks("yaml")
    push(place, text)

    schedules = place.get("/workflows/etl/schedules")["schedules"]

    assert [one["state"] for one in schedules] == ["ARMED"] * 3
    assert [one["catch_up"] for one in schedules] == ["ALL", "LATEST", "LATEST"]
    assert [one["interval"] for one in schedules] == [None, None, "90m"]


def test_the_first_commands_of_the_page_run(place: Place) -> None:
    push(place, DAILY)

    for words in commands(blocks("sh")[0]):
        told = kapelle(place, words)
        assert told.exit_code == 0, told.stderr

    assert place.get("/workflows/instances/counts", workflow_id="etl")["counts"]["SUCCEEDED"] == 90


def test_the_commands_for_backfills_run(place: Place) -> None:
    push(place, SLOW)
    dry_run, start, list_, watch, pause, resume, cancel, failed = commands(blocks("sh")[1])

    told = [kapelle(place, words) for words in (dry_run, [*start, "--id", BACKFILL_ID], list_, pause, resume, cancel)]
    ended = kapelle(place, watch)
    listed = kapelle(place, failed)

    assert [one.exit_code for one in told] == [0] * 6, [one.stderr for one in told]
    assert "90 of 90 scheduled times would be started" in told[0].stderr
    assert (ended.exit_code, f"{BACKFILL_ID} is CANCELLED" in ended.stderr) == (1, True)
    assert listed.exit_code == 0


def test_the_short_form_of_the_page_is_a_backfill(place: Place) -> None:
    push(place, DAILY)
    assert "`kapelle backfill WORKFLOW --from …`" in PAGE

    told = kapelle(place, ["backfill", "etl", "--from", "2026-01-01", "--to", "2026-01-02"])

    assert told.stdout.endswith("COMPLETED: 2 SUCCEEDED\n")
