"""Signals by HTTP: announced once, explained to the last condition, and refused with all that is wrong."""

import json
import os
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from kapelle.api import BASE, ApiSettings, Role, Tokens
from tests.integration.api.places import Place, definition, embedded_place, step, until


def new(name: str = "orders/eu") -> str:
    """A name that nobody else has, with a slash in it."""
    return f"{name}/{uuid.uuid4().hex[:8]}"


def announce(api: Place, name: str, **body: Any) -> Any:
    return api.call("POST", "/signals", json={"name": name, **body})


def push(api: Place, triggers: list[Any], *steps: Any) -> str:
    """A workflow with these triggers."""
    name = f"wf-{uuid.uuid4().hex[:12]}"
    body = definition(name, *steps)
    body["workflow"]["signal_triggers"] = triggers
    api.call("POST", "/workflows", json=body)
    return name


def verdict(api: Place, signal: str, workflow_id: str, expected: str, number: int = 1) -> Any:
    """The verdict of a workflow on a signal, once it is that."""

    def look() -> Any:
        found = api.get(f"/signals/{signal}/instances/{number}/explain")["verdicts"]
        return next((one for one in found if one["workflow_id"] == workflow_id and one["verdict"] == expected), None)

    return until(look, f"{expected} of {workflow_id}")


def test_an_announcement_is_accepted_once(api: Place) -> None:
    name = new()

    first = announce(api, name, params={"day": 1}, request_id="mine", request_time=None)
    again = announce(api, name, params={"day": 1}, request_id="mine")
    other = announce(api, name, params={"day": 1}, id="other")

    assert (first["name"], first["signal_id"], first["sequence"], first["status"]) == (name, "mine", 1, "ACCEPTED")
    assert (again["status"], again["duplicate_of"], again["sequence"]) == ("DUPLICATED", 1, 1)
    assert (other["status"], other["sequence"]) == ("ACCEPTED", 2)


def test_an_announcement_without_an_id_is_known_by_its_name_and_parameters(api: Place) -> None:
    name = new()

    first, again, other = (announce(api, name, params={"day": day}) for day in (1, 1, 2))

    assert first["signal_id"] == again["signal_id"] != other["signal_id"]
    assert [one["status"] for one in (first, again, other)] == ["ACCEPTED", "DUPLICATED", "ACCEPTED"]


def event_of(name: str, **more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "type": name, "source": "/shop", "id": "e1", **more}


def test_a_cloud_event_is_the_same_signal_in_both_modes(api: Place) -> None:
    name = new("orders/grün")
    data = {"day": 1, "region": "eu", "lines": [1.5]}
    structured = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    binary = {"ce-specversion": "1.0", "ce-type": quote(name), "ce-source": "/shop", "ce-id": "e1"}

    first = api.call("POST", "/signals", content=json.dumps(event_of(name, data=data)), headers=structured)
    again = api.call("POST", "/signals", json=data, headers={**binary, "ce-time": "2026-11-16T10:00:00Z"})
    other = api.call("POST", "/signals", json=event_of(name, id="e2", data=data))
    found = api.get(f"/signals/{name}/instances/1")

    assert (first["name"], first["signal_id"], first["status"]) == (name, "/shop e1", "ACCEPTED")
    assert (again["signal_id"], again["status"], again["duplicate_of"]) == ("/shop e1", "DUPLICATED", 1)
    assert (other["signal_id"], other["status"]) == ("/shop e2", "ACCEPTED")
    assert (found["params"], found["payload"]) == ({"day": 1, "region": "eu"}, {"lines": [1.5]})


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({"ce-id": "e1", "ce-type": "orders"}, {}, "with a source and an id"),
        ({"ce-source": "/shop", "ce-type": "orders"}, {}, "with a source and an id"),
        ({"ce-id": "e1", "ce-source": "/shop"}, {}, "Expected the name of a signal"),
        ({"ce-id": "e1", "ce-source": "/shop", "ce-type": "orders", "ce-time": "noon"}, {}, "Expected a time"),
        ({"ce-id": "e1", "ce-source": "/shop", "ce-type": "orders"}, [1], "Expected a JSON object"),
        ({"Content-Type": "application/cloudevents+json"}, {"type": "orders"}, "with a source and an id"),
        ({"Content-Type": "application/cloudevents-batch+json"}, [], "found a batch"),
        ({"Content-Type": "text/plain"}, {"name": "orders"}, "but found 'text/plain'"),
    ],
)
def test_what_is_no_cloud_event_is_refused_with_the_reason(
    api: Place, headers: dict[str, str], body: Any, reason: str
) -> None:
    sent = {"Content-Type": "application/json", **headers}

    refused = api.call("POST", "/signals", 400, content=json.dumps(body), headers=sent)

    assert reason in refused["detail"]


def test_the_cloud_event_of_the_page_is_one_signal_in_both_modes(api: Place) -> None:
    page = (Path(__file__).parents[3] / "docs" / "http.md").read_text().partition("### CloudEvents")[2]
    structured, binary = (re.findall(rf"```{form}\n(.*?)```", page, re.DOTALL)[0] for form in ("json", "sh"))

    api.call("POST", "/signals", content=structured, headers={"Content-Type": "application/cloudevents+json"})
    done = subprocess.run(
        ["sh", "-euc", binary],
        env=os.environ | {"URL": api.url},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    answer = json.loads(done.stdout)
    assert (answer["name"], answer["signal_id"], answer["status"]) == ("orders", "/shop 4711", "DUPLICATED")


def test_an_announcement_from_a_time_that_is_forgotten_is_too_late_and_listed_as_such(tmp_path: Path) -> None:
    name = new()
    with embedded_place(tmp_path) as api:
        for day in ("01", "09", "17"):
            announce(api, name, request_id=day, request_time=f"2001-01-{day}T00:00:00Z")

        late = announce(api, name, request_id="then", request_time="2001-01-01T00:00:00Z")
        refused = api.get(f"/signals/{name}/refused")
        none = api.get(f"/signals/{name}/refused", signal_id="09")

    assert (late["status"], late["sequence"]) == ("TOO_LATE", None)
    assert late["happened_time"] == 978_307_200_000 < late["floor_time"]
    assert [(one["signal_id"], one["status"]) for one in refused["elements"]] == [("then", "TOO_LATE")]
    assert none["elements"] == []


def test_a_signal_can_be_read_as_it_was_announced(api: Place) -> None:
    name = new()
    params = {"day": 2**63 - 1, "region": "eu"}
    announce(api, name, params=params, id="one", payload={"a": [1.5]}, more={"b": None})

    found = api.get(f"/signals/{name}/instances/latest")

    assert found == api.get(f"/signals/{name}/instances/1")
    assert (found["params"], found["payload"]) == (params, {"a": [1.5], "more": {"b": None}})
    assert found["source"]["user"] == "anonymous"


def test_names_and_signals_are_pages(api: Place) -> None:
    prefix = f"pages-{uuid.uuid4().hex[:8]}"
    for number in range(3):
        announce(api, f"{prefix}/a", params={"n": number})
    announce(api, f"{prefix}/b")

    names = api.get("/signals", prefix=prefix)
    first = api.get(f"/signals/{prefix}/a/instances", limit=2)
    second = api.get(f"/signals/{prefix}/a/instances", limit=2, cursor=first["page_info"]["end_cursor"])

    assert [(one["name"], one["signals"]) for one in names["elements"]] == [(f"{prefix}/a", 3), (f"{prefix}/b", 1)]
    assert [one["sequence"] for one in (*first["elements"], *second["elements"])] == [3, 2, 1]


def test_a_signal_explains_what_came_of_it_and_what_did_not(api: Place) -> None:
    name = new()
    fires = push(api, [{"definitions": {name: {}}}])
    keeps = push(api, [{"definitions": {name: {"join_keys": ["day"]}, f"{name}/b": {"join_keys": ["day"]}}}])
    other = push(api, [{"definitions": {name: {"match_params": {"day": {"value": 2, "operator": "="}}}}}])
    announce(api, name, params={"day": 1})

    fired = verdict(api, name, fires, "FIRED")
    kept = verdict(api, name, keeps, "KEPT")
    failed = verdict(api, name, other, "NOT_MATCHED")

    until(lambda: api.get(f"/signals/{name}/instances/1/lineage")["edges"], "the start to be visible")
    assert verdict(api, name, fires, "FIRED")["workflow_instance_id"] == 1
    assert fired["request_id"]
    assert (kept["waiting_for"], kept["join_value"]) == ([f"{name}/b"], [1])
    assert failed["reason"] == "Expected day = 2, but day is 1"


def test_triggers_tell_what_waits_and_what_is_missing(api: Place) -> None:
    name = new()
    joined = {name: {"join_keys": ["day"]}, f"{name}/b": {"join_keys": ["day"]}}
    workflow_id = push(api, [{"definitions": joined}])
    announce(api, name, params={"day": 1})
    verdict(api, name, workflow_id, "KEPT")

    (trigger,) = api.get(f"/workflows/{workflow_id}/triggers")["triggers"]
    explained = api.get(f"/workflows/{workflow_id}/triggers/explain")

    there = {name: {"next": 1, "count": 1}}
    assert trigger["waiting"] == [{"join_value": [1], "there": there, "waiting_for": [f"{name}/b"]}]
    assert explained["obstacles"] == []
    assert f"'{name}/b' has not been announced yet" in explained["triggers"][0]["missing"]


def test_lineage_goes_from_a_signal_over_an_instance_to_what_it_published(api: Place) -> None:
    name = new()
    first = push(api, [{"definitions": {name: {}}}], step("say", signal_outputs=[{"name": f"{name}/done"}]))
    announce(api, name, params={"day": 1})
    expected = [f"signal {name} 1", f"instance {first} 1", f"signal {name}/done 1"]

    def forward() -> Any:
        found = api.get(f"/signals/{name}/instances/1/lineage", direction="forward")
        return found if len(found["nodes"]) == 3 else None

    found = until(forward, "all of the lineage")
    backward = api.get(f"/signals/{name}/done/instances/latest/lineage", direction="backward", depth=20)
    middle = api.get(f"/workflows/{first}/instances/1/lineage", depth=1)

    assert [one["id"] for one in found["nodes"]] == expected
    assert [one["id"] for one in backward["nodes"]] == expected
    assert [one["distance"] for one in middle["nodes"]] == [-1, 0, 1]
    assert found["edges"] == backward["edges"] == middle["edges"]


WRONG: list[tuple[Any, list[str]]] = [
    ({}, ["body.name"]),
    ({"name": ""}, ["body.name"]),
    ({"name": "x" * 257}, ["body.name"]),
    ({"name": 1, "params": [], "id": {}, "request_time": "soon"}, ["body.name", "body.params", "body.id", "body.req"]),
    (
        {"name": "x", "params": {"a": 1.5, "b": True, "c": None, "d": 2**63}},
        ["body.params: Expected strings and integers", "'a', 'b', 'c', 'd'"],
    ),
    ({"name": "x", "params": {str(n): n for n in range(129)}}, ["body.params"]),
    ({"name": "x", "id": ""}, ["body.id"]),
    ({"name": "x", "request_id": "y" * 1_025}, ["body.request_id"]),
    ({"name": "x", "time": -1}, ["body.time: Expected a time as ISO 8601 or in milliseconds, but found '-1'"]),
    ({"name": "x", "time": 1.5}, ["body.time: Expected a time as ISO 8601 or in milliseconds, but found '1.5'"]),
    ({"name": "x", "time": 2**63}, ["body.time: Expected a time as ISO 8601 or in milliseconds, but found"]),
    ([], ["body"]),
    ("x", ["body"]),
]


@pytest.mark.parametrize(("body", "errors"), WRONG)
def test_a_wrong_announcement_is_told_all_that_is_wrong(api: Place, body: Any, errors: list[str]) -> None:
    found = api.call("POST", "/signals", 400, json=body)

    assert [one for one in errors if not any(one in told for told in found["errors"])] == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"name": "\\ud800"}', b'{"name": "x", "id": "a", "request_id": "b"}']
)
def test_an_announcement_that_is_no_json_or_contradicts_itself_is_refused(api: Place, content: bytes) -> None:
    response = api.http.post("/signals", content=content, headers={"Content-Type": "application/json"})

    assert response.status_code == 400
    assert response.json()["detail"]


MISSING = [
    "/signals/nobody/says/instances",
    "/signals/nobody/says/instances/1",
    "/signals/nobody/says/instances/latest",
    "/signals/nobody/says/instances/1/explain",
    "/signals/nobody/says/instances/1/lineage",
    "/signals/nobody/says/refused",
    "/workflows/no-such/instances/1/lineage",
    "/workflows/no-such/triggers",
    "/workflows/no-such/triggers/explain",
]


@pytest.mark.parametrize("path", MISSING)
def test_what_is_not_there_is_not_found(api: Place, path: str) -> None:
    assert "but it does not" in api.get(path, 404)["detail"]


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/signals/a/instances/first", {}),
        ("/signals/a/instances/0", {}),
        ("/signals/a/instances/99999999999999999999", {}),
        ("/signals/a/instances/1/lineage", {"depth": 21}),
        ("/signals/a/instances/1/lineage", {"depth": 0}),
        ("/signals/a/instances/1/lineage", {"direction": "sideways"}),
        ("/signals", {"cursor": "nonsense"}),
        (f"/signals/{'a' * 257}/instances", {}),
    ],
)
def test_a_read_that_makes_no_sense_is_refused(api: Place, path: str, params: dict[str, Any]) -> None:
    assert api.get(path, 400, **params)["status"] == 400


def test_an_operator_announces_and_a_viewer_reads(tmp_path: Path) -> None:
    tokens = Tokens([(Role.VIEWER, "viewer-token"), (Role.OPERATOR, "operator-token")])
    codes: dict[str, tuple[int, int]] = {}
    with embedded_place(tmp_path, ApiSettings(tokens=tokens)) as place:
        for role in ("operator", "viewer"):
            headers = {"Authorization": f"Bearer {role}-token"}
            with httpx.Client(base_url=f"{place.url}{BASE}", headers=headers, timeout=30) as http:
                said = http.post("/signals", json={"name": "a"}).status_code
                codes[role] = said, http.get("/signals/a/instances/1/explain").status_code

    assert codes == {"operator": (200, 200), "viewer": (403, 200)}


def test_a_write_that_is_not_seen_in_time_can_be_waited_for(api: Place) -> None:
    name, key = new(), uuid.uuid4().hex

    response = api.http.post("/signals", json={"name": name}, params={"wait_ms": 0}, headers={"Idempotency-Key": key})
    found = api.get(f"/signals/{name}/instances/latest", wait_for=key)

    assert response.status_code in (200, 202)
    assert response.json()["request_id"] == key
    assert found["sequence"] == 1


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "\n",
        "a\r\n",
        "a/instances/1",
        "/a",
        "a/",
        "a//b",
        "refused",
        "a b?c#d%2F",
        "ü\u2028",
        "a\\b",
        "..",
        "\x01",
    ],
)
def test_a_signal_of_any_name_that_is_taken_can_be_read_by_its_path(api: Place, name: str) -> None:
    unique = f"{uuid.uuid4().hex[:8]}"
    said = announce(api, name, id=unique)
    path = f"/signals/{quote(name, safe='').replace('.', '%2E')}"

    listed = api.get(f"{path}/instances", first=200)["elements"]
    found = api.get(f"{path}/instances/{said['sequence']}")
    explained = api.get(f"{path}/instances/latest/explain")

    assert listed[0]["signal_id"] == unique
    assert (found["name"], found["signal_id"]) == (name, unique)
    assert explained["name"] == name
    assert "elements" in api.get(f"{path}/refused")
    assert api.get(f"{path}/instances/latest/lineage")


def test_a_name_of_unicode_alone_is_taken(api: Place) -> None:
    response = api.http.post("/signals", content=b'{"name":"\\ud800"}', headers={"Content-Type": "application/json"})

    assert response.status_code == 400
