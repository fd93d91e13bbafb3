"""`kapelle breakpoint`, `kapelle permit` and `kapelle step resume`: what they say of a real server, right and wrong."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from tests.integration.api.places import Place, embedded_place, step, until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def kapelle(place: Place, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--url", place.url], prog_name="kapelle")


def said(place: Place, text: str, *words: str) -> str:
    """What a command says once it says this."""

    def look() -> str | None:
        told = kapelle(place, *words)
        return told.stdout if text in told.stdout else None

    return str(until(look, f"{text!r} of kapelle {' '.join(words)}"))


def lines(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def new(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


# Breakpoints ----------------------------------------------------------------------------------------------------------


def test_a_breakpoint_is_set_listed_and_deleted(place: Place) -> None:
    name = place.push(step("load"))

    set_ = kapelle(place, "breakpoint", "set", name, "load")
    precise = kapelle(place, "breakpoint", "set", name, "load", "--instance", "7", "--run", "2", "--attempt", "1")
    listed = kapelle(place, "breakpoint", "list", name, "--step", "load")
    gone = kapelle(place, "breakpoint", "delete", name, "load", "--instance", "7", "--run", "2", "--attempt", "1")
    left = kapelle(place, "breakpoint", "list", name, "-o", "json")

    assert (set_.exit_code, set_.stdout) == (0, f"{name} load: the breakpoint is set\n")
    assert precise.stdout == f"{name} load: the breakpoint is set (instance 7, run 2, attempt 1)\n"
    assert lines(listed)[0] == ["WORKFLOW", "STEP", "VERSION", "INSTANCE", "RUN", "ATTEMPT", "AUTHOR", "SET"]
    assert [line[:2] for line in lines(listed)[1:]] == [[name, "load"]] * 2
    assert gone.stdout == f"{name} load: the breakpoint is deleted (instance 7, run 2, attempt 1)\n"
    assert [one["step_attempt_id"] for one in json.loads(left.stdout)["elements"]] == [None]


def test_a_paused_step_is_shown_with_its_reason_and_resumed(place: Place) -> None:
    name = place.push(step("load"))
    kapelle(place, "breakpoint", "set", name, "load")
    instance = str(place.start(name))

    paused = said(place, name, "breakpoint", "paused", name)
    told = kapelle(place, "breakpoint", "paused", name)
    described = kapelle(place, "step", "describe", name, instance, "load")
    run = kapelle(place, "run", "describe", name, instance)
    wrong = kapelle(place, "step", "resume", name, instance, "load", "--attempt", "9")
    resumed = kapelle(place, "step", "resume", name, instance, "load", "--run", "1", "--attempt", "1")

    assert paused.splitlines()[1].split()[:5] == [name, instance, "1", "load", "1"]
    assert f"kapelle step resume {name} {instance} load" in told.stderr
    assert re.search(r"waits for +a person to resume it: paused by a breakpoint of ", described.stdout)
    assert "paused since" in described.stdout
    assert "PAUSED" in run.stdout
    assert "breakpoint" in run.stdout
    assert wrong.exit_code != 0
    assert "which is the present one, but found 9" in wrong.stderr
    assert (resumed.exit_code, resumed.stdout) == (0, f"{name} {instance} load: resume is DONE\n")
    assert place.ended(name, int(instance)) == "SUCCEEDED"


def test_attempts_stay_paused_if_that_is_wanted(place: Place) -> None:
    name = place.push(step("load"))
    kapelle(place, "breakpoint", "set", name, "load")
    place.start(name)
    said(place, name, "breakpoint", "paused", name)

    kapelle(place, "breakpoint", "delete", name, "load", "--keep-paused")

    assert "no breakpoint any more" in said(place, "no breakpoint", "breakpoint", "paused", name)


def test_a_step_is_resumed_with_other_parameters(place: Place) -> None:
    name = place.push(step("load", params={"rows": {"type": "LONG", "value": 1, "mode": "MUTABLE"}}))
    kapelle(place, "breakpoint", "set", name, "load")
    instance = str(place.start(name))
    said(place, name, "breakpoint", "paused", name)

    resumed = kapelle(place, "step", "resume", name, instance, "load", "--param", "rows=10")

    assert resumed.exit_code == 0, resumed.stderr
    assert place.ended(name, int(instance)) == "SUCCEEDED"
    assert lines(kapelle(place, "step", "describe", name, instance, "load"))[-1] != []
    assert place.get(f"/workflows/{name}/instances/{instance}/steps/load")["params"]["rows"] == 10


def test_an_unknown_breakpoint_is_refused_with_the_reason(place: Place) -> None:
    name = place.push(step("load"))

    none = kapelle(place, "breakpoint", "delete", name, "load")
    no_step = kapelle(place, "breakpoint", "set", name, "nobody")
    lone = kapelle(place, "breakpoint", "list", "--step", "load")

    assert "there is none" in none.stderr
    assert "found 'nobody'" in no_step.stderr
    assert "Expected `workflowId` beside `stepId`" in lone.stderr
    assert 0 not in (none.exit_code, no_step.exit_code, lone.exit_code)


# Permits --------------------------------------------------------------------------------------------------------------


def test_a_limit_is_set_shown_and_removed(place: Place) -> None:
    tag = new("team/gpu")

    set_ = kapelle(place, "permit", "set", tag, "4", "--extra", '{"team": "ml"}')
    again = kapelle(place, "permit", "set", tag, "4", "--extra", '{"team": "ml"}')
    shown = kapelle(place, "permit", "show", tag)
    listed = kapelle(place, "permit", "list", "--kind", "tag", "--prefix", tag)
    removed = kapelle(place, "permit", "remove", tag)
    gone = kapelle(place, "permit", "show", tag)

    assert (set_.exit_code, set_.stdout) == (0, f"{tag} has a limit of 4\n")
    assert "is 4 already" in again.stderr
    assert lines(shown)[:4] == [["tag", tag], ["limit", "4"], ["held", "0"], ["waiting", "0"]]
    assert '"ml"' in shown.stdout
    assert lines(listed)[1][:5] == ["tag", tag, "4", "0", "0"]
    assert removed.stdout == f"{tag} has no limit\n"
    assert f"Expected a limit of tag/{tag}, but there is none" in gone.stderr


def test_holders_and_those_that_wait_are_shown(place: Place) -> None:
    tag = new("gpu")
    kapelle(place, "permit", "set", tag, "1")
    name = place.push(step("train", new("kind"), tags=[tag]), run_strategy="PARALLEL")
    started = [str(place.start(name)) for _ in range(3)]

    shown = said(place, "HOLDER", "permit", "show", tag)
    shown = said(place, " 2  ", "permit", "show", tag)
    found = json.loads(kapelle(place, "permit", "show", tag, "-o", "json").stdout)
    waiting = found["waiting"]
    described = kapelle(place, "step", "describe", name, str(waiting[1]["workflow_instance_id"]), "train")
    short = kapelle(place, "permit", "show", tag, "-n", "1")

    assert "PLACE" in shown
    assert (found["limit"]["held"], found["limit"]["waiting"]) == (1, 2)
    assert [one["place"] for one in waiting] == [1, 2]
    assert {str(one["workflow_instance_id"]) for one in (*found["holders"], *waiting)} == set(started)
    assert f"a permit of tag/{tag}: limit 1, 1 held, place 2 of 2, since 20" in described.stdout
    assert ", place 2 of 2" in described.stdout
    assert "more results exist that are not shown" in short.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("set", "gpu", "--", "-1"), "Invalid value"),
        (("set", "gpu", "1", "--extra", "[1]"), "Expected --extra to be an object"),
        (("set", "gpu", "1", "--extra", "{"), "Expected --extra to be JSON"),
        (("list", "--prefix", "a"), "Expected `kind` beside `prefix`"),
        (("show", "gpu", "--kind", "other"), "Invalid value"),
    ],
)
def test_wrong_words_are_refused_with_the_reason(place: Place, words: tuple[str, ...], reason: str) -> None:
    told = CliRunner().invoke(cli, ["permit", words[0], "--url", place.url, *words[1:]], prog_name="kapelle")

    assert told.exit_code != 0
    assert reason in told.stderr
