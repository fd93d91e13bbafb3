"""`kapelle signal` and `kapelle trigger`: what they say of a real server, right and wrong; and lineages as graphs."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.text import lineages
from kapelle.client import Lineage, LineageEdge, LineageNode
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind
from tests.integration.api.places import Place, definition, embedded_place, step, until
from tests.unit.views.trees import foreach


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def kapelle(place: Place, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--url", place.url], prog_name="kapelle")


def new() -> str:
    return f"orders/{uuid.uuid4().hex[:8]}"


def push(place: Place, triggers: list[Any], *steps: Any) -> str:
    name = f"wf-{uuid.uuid4().hex[:12]}"
    body = definition(name, *steps)
    body["workflow"]["signal_triggers"] = triggers
    place.call("POST", "/workflows", json=body)
    return name


def explained(place: Place, name: str, verdict: str) -> Result:
    """What the command says once there is such a verdict."""

    def look() -> Result | None:
        told = kapelle(place, "signal", "explain", name, "1")
        return told if verdict in told.stdout else None

    found: Result = until(look, f"{verdict} of {name}")
    return found


def test_a_signal_is_announced_once_and_shown(place: Place) -> None:
    name = new()

    first = kapelle(place, "signal", "announce", name, "-p", "day=7", "-p", "region=eu", "--payload", '{"a": [1]}')
    again = kapelle(place, "signal", "announce", name, "-p", "day=7", "-p", "region=eu")
    shown = kapelle(place, "signal", "show", name, "1")

    assert (first.exit_code, first.stdout) == (0, f"{name} 1 ACCEPTED\n")
    assert f"kapelle signal explain {name} 1" in first.stderr
    assert (again.exit_code, again.stdout) == (0, f"{name} 1 DUPLICATED\n")
    assert "duplicate of signal 1" in again.stderr
    assert '{"day": 7, "region": "eu"}' in shown.stdout
    assert '{"a": [1]}' in shown.stdout


def test_answers_are_json_for_programs(place: Place) -> None:
    name = new()

    told = kapelle(place, "signal", "announce", name, "--id", "mine", "-o", "json")
    kapelle(place, "signal", "announce", name, "--id", "mine")
    answers = {
        word: json.loads(kapelle(place, "signal", word, name, "-o", "json").stdout)
        for word in ("show", "list", "explain", "lineage", "refused")
    }

    assert json.loads(told.stdout)["signal_id"] == "mine"
    assert answers["show"]["sequence"] == 1
    assert answers["list"]["total_count"] == 1
    assert answers["explain"]["repetitions"]["count"] == 1
    assert answers["lineage"]["root"] == f"signal {name} 1"
    assert answers["refused"]["elements"][0]["duplicate_of"] == 1


def test_names_and_signals_are_listed_page_by_page(place: Place) -> None:
    name = new()
    for day in range(3):
        kapelle(place, "signal", "announce", name, "-p", f"day={day}")

    names = kapelle(place, "signal", "list", "--prefix", name)
    page = kapelle(place, "signal", "list", name, "-n", "2")
    rest = kapelle(place, "signal", "list", name, "-n", "2", "--cursor", page.stderr.split()[-1])

    assert names.stdout.splitlines()[1].split() == [name, "3", "0", "0", "0", "0"]
    assert [line.split()[0] for line in page.stdout.splitlines()] == ["SEQUENCE", "3", "2"]
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["SEQUENCE", "1"]


def test_a_signal_is_explained_in_words(place: Place) -> None:
    name = new()
    workflow_id = push(place, [{"definitions": {name: {"match_params": {"day": {"value": 2, "operator": "="}}}}}])
    kapelle(place, "signal", "announce", name, "-p", "day=1")

    told = explained(place, name, "NOT_MATCHED")

    assert f"trigger {workflow_id}" in told.stdout
    assert "Expected day = 2, but day is 1" in told.stdout


def test_a_signal_that_nobody_waits_for_says_so(place: Place) -> None:
    name = new()
    kapelle(place, "signal", "announce", name)

    assert "no trigger or step subscribed to this signal" in kapelle(place, "signal", "explain", name).stderr
    assert "no lineage is known for this signal" in kapelle(place, "signal", "lineage", name).stderr


def test_what_came_too_late_is_told_and_listed(tmp_path: Path) -> None:
    name = new()
    with embedded_place(tmp_path) as place:
        for week in range(3):
            kapelle(place, "signal", "announce", name, "--id", f"w{week}", "--time", str(1 + week * 7 * 86_400_000))
        place.call("POST", "/signals", json={"name": name, "id": "old", "request_time": 1})

        listed = kapelle(place, "signal", "refused", name, "--id", "old")

    assert listed.stdout.splitlines()[1].split()[:2] == ["old", "TOO_LATE"]


@pytest.mark.parametrize(
    "moment", ["2001-01-01T00:00:00Z", "2001-01-01T00:00:00", "2001-01-01T01:00:00+01:00", "978307200000"]
)
def test_a_signal_happened_when_its_announcer_says(place: Place, moment: str) -> None:
    name = new()
    kapelle(place, "signal", "announce", name)

    told = json.loads(kapelle(place, "signal", "announce", name, "--id", "old", "--time", moment, "-o", "json").stdout)
    wrong = kapelle(place, "signal", "announce", name, "--time", "noon")

    found = place.get(f"/signals/{name}/instances/{told['sequence']}")
    assert (told["status"], found["happened_time"]) == ("ACCEPTED", 978_307_200_000)
    assert (wrong.exit_code, "Expected --time as ISO 8601" in wrong.stderr) == (2, True)


def test_triggers_tell_what_waits_for_whom_and_what_is_missing(place: Place) -> None:
    name = new()
    joined = {name: {"join_keys": ["day"]}, f"{name}/b": {"join_keys": ["day"]}}
    workflow_id = push(place, [{"definitions": joined}])
    kapelle(place, "signal", "announce", name, "-p", "day=1")
    explained(place, name, "KEPT")

    listed = kapelle(place, "trigger", "list", workflow_id)
    missing = kapelle(place, "trigger", "explain", workflow_id)
    as_json = json.loads(kapelle(place, "trigger", "explain", workflow_id, "-o", "json").stdout)

    assert listed.stdout.splitlines()[-1].split()[1:] == ["[1]", name, "1", f"{name}/b"]
    assert f"'{name}/b' has not been announced yet" in missing.stdout
    assert as_json["triggers"][0]["missing"]
    assert json.loads(kapelle(place, "trigger", "list", workflow_id, "--all", "-o", "json").stdout)["triggers"]


def test_a_step_that_waits_can_be_let_go_without_its_signal(place: Place) -> None:
    workflow_id = push(place, [], step("wait", signal_dependencies=[{"name": new()}]))
    instance_id = place.start(workflow_id)

    done = kapelle(place, "step", "bypass", workflow_id, str(instance_id), "wait", "--reason", "closed today")

    assert (done.exit_code, place.ended(workflow_id, instance_id)) == (0, "SUCCEEDED")


def test_a_workflow_without_triggers_says_so(place: Place) -> None:
    workflow_id = push(place, [])

    assert kapelle(place, "trigger", "explain", workflow_id).stdout == "Version 1 has no signal trigger that is armed\n"


def test_lineage_is_a_table_and_graphs(place: Place) -> None:
    name = new()
    workflow_id = push(place, [{"definitions": {name: {}}}], step("say", signal_outputs=[{"name": f"{name}/done"}]))
    kapelle(place, "signal", "announce", name)
    until(lambda: len(place.get(f"/signals/{name}/instances/1/lineage")["nodes"]) == 3, "the lineage")

    told = {
        form: kapelle(place, "signal", "lineage", name, "1", "-o", form).stdout for form in ("text", "dot", "mermaid")
    }
    cut = kapelle(place, "signal", "lineage", name, "1", "--direction", "forward", "--depth", "1")

    assert f"{workflow_id}/1  published say  {name}/done 1" in told["text"]
    assert f'"signal {name} 1" -> "instance {workflow_id} 1" [label="started"]' in told["dot"]
    assert '-->|"published say"| ' in told["mermaid"]
    assert f"more exists beyond {workflow_id}/1" in cut.stderr


def test_lineage_leads_from_a_workflow_into_its_loops_in_all_forms(place: Place) -> None:
    name = new()
    loop = foreach("loop", [1], step("say", signal_outputs=[{"name": f"{name}/done"}]))
    workflow_id = push(place, [{"definitions": {name: {}}}], loop)
    kapelle(place, "signal", "announce", name)
    until(lambda: len(place.get(f"/signals/{name}/instances/1/lineage")["nodes"]) == 4, "the lineage")
    inline = inline_id(ChildKind.FOREACH, f"{workflow_id}/1", "loop")
    place.ended(inline, 1)

    told = {
        form: kapelle(place, "signal", "lineage", f"{name}/done", "1", "-o", form).stdout
        for form in ("text", "json", "dot", "mermaid")
    }

    lines = [line.split() for line in told["text"].splitlines()]
    assert [f"{workflow_id}/1", "launched", "loop", f"{inline}/1", "SUCCEEDED"] in lines
    ends = {"from": f"instance {workflow_id} 1", "to": f"instance {inline} 1"}
    launched = {**ends, "type": "LAUNCHED", "step_id": "loop"}
    assert launched in json.loads(told["json"])["edges"]
    assert f'"instance {workflow_id} 1" -> "instance {inline} 1" [label="launched loop"]' in told["dot"]
    assert '-->|"launched loop"| ' in told["mermaid"]


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("signal", "announce", "a", "-p", "day"), 2, "Expected --param NAME=VALUE, but found 'day'"),
    (("signal", "announce", "a", "--payload", "{"), 2, "Expected --payload to be JSON"),
    (("signal", "announce", "a", "--payload", "[1]"), 2, "Expected --payload to be an object, but found a list"),
    (("signal", "announce", "a", "-p", "x=1.5"), 1, "Expected strings and integers of 64 bits"),
    (("signal", "announce", ""), 1, "body.name"),
    (("signal", "show", "a", "first"), 2, "Expected the number of a signal or latest, but found 'first'"),
    (("signal", "show", "a", "0"), 2, "Expected the number of a signal or latest"),
    (("signal", "show", "nobody/says", "1"), 3, "Expected signal 1 of 'nobody/says' to exist"),
    (("signal", "list", "nobody/says"), 3, "Expected a signal 'nobody/says' to exist"),
    (("signal", "explain", "nobody/says"), 3, "Expected a signal 'nobody/says' to exist"),
    (("signal", "lineage", "nobody/says"), 3, "Expected a signal 'nobody/says' to exist"),
    (("signal", "lineage", "a", "--depth", "21"), 2, "'--depth'"),
    (("signal", "lineage", "a", "-o", "svg"), 2, "'svg' is not one of"),
    (("signal", "lineage", "a", "--direction", "up"), 2, "'up' is not one of"),
    (("signal", "refused", "nobody/says"), 3, "Expected a signal 'nobody/says' to exist"),
    (("trigger", "list", "no-such"), 3, "Expected workflow 'no-such' to exist"),
    (("trigger", "explain", "no-such"), 3, "Expected workflow 'no-such' to exist"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_a_wrong_call_ends_with_its_code_and_its_reason(
    place: Place, words: tuple[str, ...], code: int, message: str
) -> None:
    result = kapelle(place, *words)

    assert message in " ".join(result.stderr.split())
    assert result.exit_code == code
    assert result.stdout == ""


def test_names_with_signs_of_the_graph_languages_stay_names() -> None:
    nasty = 'a"b\\c\n{d}[e](f)|g|;#<i>&'
    nodes = [LineageNode("one", "SIGNAL", name=nasty, sequence=1), LineageNode("two", "INSTANCE", 1, is_cut=True)]
    edges = [LineageEdge("one", "two", "STARTED", is_repetition=True)]
    found = Lineage("one", "both", 1, nodes, edges, is_cut=True)

    dot, mermaid = lineages.as_dot(found).splitlines(), lineages.as_mermaid(found).splitlines()

    assert dot[2] == '  "one" [label="a\\"b\\\\c\\n{d}[e](f)|g|;#<i>& 1", shape=ellipse, style=bold]'
    assert "style=dashed" in dot[4]
    assert re.fullmatch(r'  n0\(\["(?:[a-z0-9 ]|#\d+;)+"\]\)', mermaid[1])
    assert mermaid[3] == '  n0 -.->|"started again"| n1'
