"""`kapelle workflow`, `run` and `step` on a real server: what people are told of workflows, starts and failures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from tests.integration.api.places import Place, definition, embedded_place, step

AT_ONCE = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 3_600}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def kapelle(place: Place, *words: str, given: str | None = None, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [*words, "--url", place.url], prog_name="kapelle", input=given)
    assert result.exit_code == code, result.output
    return result


def test_a_start_that_the_run_strategy_stops_says_so(place: Place) -> None:
    name = place.push(step("work", "nobody-does-this"), run_strategy="FIRST_ONLY")

    first = kapelle(place, "run", "start", name)
    second = kapelle(place, "run", "start", name)

    assert first.stderr == f"to show it: kapelle run describe {name} 1\n"
    assert second.stdout == f"{name} 2\n"
    assert second.stderr.startswith("STOPPED: Stopped by FIRST_ONLY: instance 1 run 1 is queued or running; to show it")


def test_a_failed_step_tells_when_it_is_tried_again_and_has_one_line_of_its_reason_in_a_table(place: Place) -> None:
    kind = "fails-once"
    name = place.push(step("work", kind, retry_policy=AT_ONCE))
    place.start(name)
    place.report(place.take(kind)[0], "USER_ERROR", message="no table\n  at line 7")

    described = kapelle(place, "run", "describe", name, "1").stdout
    shown = kapelle(place, "step", "describe", name, "1", "work").stdout

    assert described.splitlines()[-1].startswith("work  1    1        USER_FAILED")
    assert "  next attempt at 20" in described
    assert described.endswith(": no table …\n")
    assert "\nreason        no table\n                at line 7\nnext attempt  20" in shown


def test_steps_of_a_loop_tell_their_round(place: Place) -> None:
    counting = "x = params.get('again__n'); return x == null ? 1 : x + 1;"
    loop = step("again", params={"n": {"type": "LONG", "expression": counting}})
    loop["step"]["transition"] = {"successors": {"again": "n < 3"}}
    name = place.push(loop)
    place.ended(name, place.start(name))

    described = kapelle(place, "run", "describe", name, "1").stdout
    shown = kapelle(place, "step", "describe", name, "1", "again").stdout

    assert "\nagain iteration 3  1    1        SUCCEEDED" in described
    assert "\niteration  3\n" in shown


def test_a_definition_is_shown_as_it_can_be_pushed_again(place: Place) -> None:
    share = {"type": "DOUBLE", "value": 0.25}
    body = json.dumps(definition(place.push(), step("first", params={"share": share})))
    name = json.loads(body)["workflow"]["id"]
    kapelle(place, "workflow", "push", "-", given=body.replace("0.25", "0.1000000000000000055"))
    place.push(step("second"), workflow_id=name)

    first = kapelle(place, "workflow", "show", name, "2").stdout
    again = kapelle(place, "workflow", "push", "-", given=first)
    whole = json.loads(kapelle(place, "workflow", "show", name, "-o", "json").stdout)

    assert "0.1000000000000000055" in first
    assert again.stdout == f"{name} version 4\n"
    assert whole["metadata"]["workflow_version_id"] == 4
    assert whole["workflow"]["steps"][0]["step"]["id"] == "first"
    kapelle(place, "workflow", "show", name, "9", code=3)


def test_a_version_that_is_not_active_is_started_by_its_number(place: Place) -> None:
    name = place.push()
    pushed = json.dumps({**definition(name), "is_active": False})

    told = kapelle(place, "workflow", "push", "-", given=pushed)

    assert told.stderr == f"not active; to start it: kapelle run start {name} --version 2\n"


def test_versions_are_listed_page_by_page(place: Place) -> None:
    name = place.push()
    place.push(workflow_id=name)

    first = kapelle(place, "workflow", "versions", name, "--limit", "1")
    cursor = first.stderr.split("--cursor ")[1].strip()
    second = kapelle(place, "workflow", "versions", name, "--limit", "1", "--cursor", cursor)

    assert [page.stdout.splitlines()[1].split()[0] for page in (first, second)] == ["2", "1"]


def test_properties_are_shown_and_changed(place: Place) -> None:
    name = place.push(run_strategy=5)

    before = kapelle(place, "workflow", "properties", name).stdout
    assert "\nrun strategy    PARALLEL, 5 at a time\n" in kapelle(place, "workflow", "describe", name).stdout
    kapelle(place, "workflow", "properties", name, "--set", "run_strategy=first_only", "-s", "description=all of it")
    after = json.loads(kapelle(place, "workflow", "properties", name, "-o", "json").stdout)
    described = kapelle(place, "workflow", "describe", name).stdout

    assert '{"rule":"PARALLEL","workflow_concurrency":5}' in before
    assert (after["run_strategy"]["rule"], after["description"]) == ("FIRST_ONLY", "all of it")
    assert "\nrun strategy    FIRST_ONLY\n" in described


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--set", "run_strategy"), 2, "Expected --set NAME=VALUE, but found 'run_strategy'"),
        (("--set", "run_strategy=paralel"), 1, "run_strategy: Expected one of SEQUENTIAL, STRICT_SEQUENTIAL"),
        (("--set", "colour=red"), 1, "colour"),
    ],
)
def test_a_wrong_property_is_refused(place: Place, words: tuple[str, ...], code: int, reason: str) -> None:
    name = place.push()

    assert reason in kapelle(place, "workflow", "properties", name, *words, code=code).stderr


def test_all_instances_of_a_workflow_are_stopped_after_a_yes(place: Place) -> None:
    name = place.push(step("work", "nobody-does-this"))
    for _ in range(3):
        place.start(name)

    kapelle(place, "workflow", "stop", name, given="n\n", code=1)
    stopped = kapelle(place, "workflow", "stop", name, "--yes", "--reason", "enough")

    assert stopped.stdout == f"{name}: stop is DONE, of 3 instances\n"
    assert [place.ended(name, number) for number in (1, 2, 3)] == ["STOPPED"] * 3


def test_those_behind_a_failure_are_let_go_on(place: Place) -> None:
    kind = "fails-for-good"
    name = place.push(step("work", kind), run_strategy="STRICT_SEQUENTIAL")
    place.start(name)
    place.start(name)
    place.report(place.take(kind)[0], "FATAL_ERROR")
    place.ended(name, 1)

    told = kapelle(place, "workflow", "unblock", name)

    assert told.stdout == f"{name}: unblock is DONE\n"
    assert place.take(kind)[0]["instance_id"] == 2


def test_commands_to_be_copied_are_quoted(place: Place) -> None:
    told = kapelle(place, "signal", "announce", "all orders/eu", "-p", "day=1")

    assert told.stderr == "to show what it led to: kapelle signal explain 'all orders/eu' 1\n"


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (
            ("signal", "announce", "x", "--payload", '{"a": NaN}'),
            2,
            "Expected --payload to be JSON, but NaN is not JSON",
        ),
        (("run", "start", "any", "-p", "x=1e400"), 2, "Expected a finite number for parameter 'x', but found inf"),
    ],
)
def test_numbers_that_json_does_not_have_are_refused(
    place: Place, words: tuple[str, ...], code: int, reason: str
) -> None:
    assert reason in kapelle(place, *words, code=code).stderr


def test_what_python_alone_takes_for_a_number_is_text(place: Place) -> None:
    name = place.push()

    kapelle(place, "run", "start", name, "-p", "x=NaN")

    found: Any = place.get(f"/workflows/{name}/instances/1")
    assert found["run_params"]["x"] == {"type": "STRING", "value": "NaN"}
