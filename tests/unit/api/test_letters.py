"""Dead letters of an embedded log, by HTTP and by the command: listed, shown, and published again with a count."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.api import ApiSettings, Role, Tokens
from kapelle.cli.all_commands import cli
from kapelle.processors.wiring import SIGNALS
from kapelle.topology.journal import EmbeddedJournal
from tests.integration.api.places import Place, embedded_place, until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with embedded_place(tmp_path_factory.mktemp("letters")) as opened:
        yield opened


def set_aside(place: Place, value: bytes, headers: Any = ()) -> Any:
    """Publish a record that is no signal, and give its letter."""
    assert isinstance(place.journal, EmbeddedJournal)
    place.journal._runtime.publish(SIGNALS, "a key", value, headers=headers).result()
    return until(lambda: letter_of(place, value), "the letter")


def letter_of(place: Place, value: bytes, count: int = 1) -> Any:
    """The latest letter about a value, once there are so many."""
    found = place.get("/dead-letters", count=1_000)["elements"]
    mine = [one for one in found if one["value"] == {"text": value.decode()}]
    return mine[-1] if len(mine) == count else None


def unique() -> bytes:
    return f"no signal {uuid.uuid4().hex}".encode()


def kapelle(place: Place, *words: str, answer: str = "") -> Result:
    return CliRunner().invoke(cli, [*words, "--url", place.url], input=answer, prog_name="kapelle")


def test_a_letter_is_listed_shown_and_published_again(place: Place) -> None:
    value = unique()
    first = set_aside(place, value, [("mine", b"1")])

    shown = place.get(f"/dead-letters/{first['offset']}")
    done = place.call("POST", f"/dead-letters/{first['offset']}/actions/redrive")
    second = until(lambda: letter_of(place, value, 2), "the letter of the record that was published again")
    again = place.call("POST", f"/dead-letters/{second['offset']}/actions/redrive")

    assert shown == first
    assert "Expected Avro, JSON or a CloudEvent" in first["reason"]
    assert (first["key"], first["record"]["topic"]) == ({"text": "a key"}, "kapelle.signals")
    assert (done["letter"], done["topic"], done["redriven"]) == (first["offset"], "kapelle.signals", 1)
    assert done["offset"] > first["record"]["offset"]
    headers = [{one["name"]: one["value"]["text"] for one in letter["headers"]} for letter in (first, second)]
    assert headers == [{"mine": "1"}, {"mine": "1", "kapelle-redriven": "1"}]
    assert again["redriven"] == 2


def test_only_the_last_ones_are_listed(place: Place) -> None:
    offsets = [set_aside(place, unique())["offset"] for _ in range(3)]

    found = place.get("/dead-letters", count=2)["elements"]

    assert [one["offset"] for one in found] == offsets[-2:]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/dead-letters?count=0", 400),
        ("GET", "/dead-letters/1000000", 404),
        ("GET", "/dead-letters/-1", 400),
        ("GET", "/dead-letters/x", 400),
        ("POST", "/dead-letters/1000000/actions/redrive", 404),
    ],
)
def test_what_is_not_there_is_refused(place: Place, method: str, path: str, status: int) -> None:
    refused = place.call(method, path, status)

    assert refused["detail"].startswith("Expected")


def test_a_viewer_may_look_and_only_an_operator_may_publish(tmp_path: Path) -> None:
    tokens = Tokens([(Role.VIEWER, "a-token-of-a-viewer"), (Role.OPERATOR, "a-token-of-operators")])
    with embedded_place(tmp_path, ApiSettings(tokens=tokens)) as place:
        place.http.headers["Authorization"] = "Bearer a-token-of-a-viewer"
        looked = place.http.get("/dead-letters").status_code
        refused = place.http.post("/dead-letters/0/actions/redrive").status_code
        place.http.headers["Authorization"] = "Bearer a-token-of-operators"
        missing = place.http.post("/dead-letters/0/actions/redrive").status_code

    assert (looked, refused, missing) == (200, 403, 404)


def test_the_command_does_all_of_it_without_kafka(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAPELLE_BOOTSTRAP_SERVERS", raising=False)
    value = unique()
    at = str(set_aside(place, value)["offset"])

    listed = kapelle(place, "dlq", "list", "-n", "1000")
    shown = kapelle(place, "dlq", "show", at, "-o", "json")
    refused = kapelle(place, "dlq", "redrive", at, answer="n\n")
    done = kapelle(place, "dlq", "redrive", at, answer="y\n")
    until(lambda: letter_of(place, value, 2), "the second letter")
    missing = kapelle(place, "dlq", "show", "1000000")

    assert f"letter {at} " in listed.stdout
    assert place.url in listed.stderr
    assert json.loads(shown.stdout)[0]["value"] == {"text": value.decode()}
    assert (refused.exit_code, done.exit_code, missing.exit_code) == (1, 0, 3)
    assert "kapelle.signals partition" in done.stdout
