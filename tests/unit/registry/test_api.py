"""The registry for development answers as the documentation of Confluent's API says, over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kapelle.registry import RegistryServer
from kapelle.registry.server import CONTENT_TYPE

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
MORE = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": "string", "default": ""}]}
BROKEN = {**FIRST, "fields": [*FIRST["fields"], {"name": "count", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[httpx.Client]:
    with RegistryServer() as server, httpx.Client(base_url=server.url, timeout=60.0) as client:
        yield client


def schema(of: Any) -> dict[str, str]:
    return {"schema": json.dumps(of)}


def register(client: httpx.Client, subject: str, of: Any) -> int:
    return int(client.post(f"/subjects/{subject}/versions", json=schema(of)).raise_for_status().json()["id"])


def refused(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error_code"]


def test_a_schema_is_found_by_the_id_that_it_was_given(registry: httpx.Client) -> None:
    number = register(registry, "orders-value", FIRST)

    found = registry.get(f"/schemas/ids/{number}")

    assert json.loads(found.json()["schema"]) == FIRST
    assert found.headers["content-type"] == CONTENT_TYPE


def test_the_same_schema_has_the_same_id_under_every_subject(registry: httpx.Client) -> None:
    number = register(registry, "orders-value", FIRST)

    assert register(registry, "orders-value", FIRST) == number
    assert register(registry, "copies-value", FIRST) == number
    assert register(registry, "copies-value", MORE) == number + 1
    assert registry.get("/subjects/orders-value/versions").json() == [1]


def test_versions_are_counted_within_their_subject(registry: httpx.Client) -> None:
    register(registry, "orders-value", FIRST)
    newest = register(registry, "orders-value", MORE)

    latest = registry.get("/subjects/orders-value/versions/latest").json()

    assert registry.get("/subjects").json() == ["orders-value"]
    assert registry.get("/subjects/orders-value/versions").json() == [1, 2]
    assert {key: latest[key] for key in ("subject", "id", "version")} == {
        "subject": "orders-value",
        "id": newest,
        "version": 2,
    }
    assert registry.get("/subjects/orders-value/versions/1/schema").json() == FIRST


def test_a_schema_is_looked_up_without_being_registered(registry: httpx.Client) -> None:
    number = register(registry, "orders-value", FIRST)

    found = registry.post("/subjects/orders-value", json=schema(FIRST)).json()

    assert (found["id"], found["version"]) == (number, 1)
    assert refused(registry.post("/subjects/orders-value", json=schema(MORE))) == (404, 40403)
    assert refused(registry.post("/subjects/others-value", json=schema(FIRST))) == (404, 40401)


def test_what_is_not_there_has_its_own_code(registry: httpx.Client) -> None:
    register(registry, "orders-value", FIRST)

    assert refused(registry.get("/subjects/others-value/versions")) == (404, 40401)
    assert refused(registry.get("/subjects/orders-value/versions/7")) == (404, 40402)
    assert refused(registry.get("/subjects/orders-value/versions/none")) == (422, 42202)
    assert refused(registry.get("/schemas/ids/99")) == (404, 40403)
    assert registry.get("/nothing/of/the/kind").status_code == 404


def test_an_incompatible_version_is_refused(registry: httpx.Client) -> None:
    register(registry, "orders-value", FIRST)

    answer = registry.post("/subjects/orders-value/versions", json=schema(BROKEN))

    assert refused(answer) == (409, 409)
    assert "count" in answer.json()["message"]


@pytest.mark.parametrize(
    ("level", "is_compatible"), [("NONE", True), ("BACKWARD", False), ("FORWARD", True), ("FULL_TRANSITIVE", False)]
)
def test_the_level_of_a_subject_says_what_is_compatible(
    registry: httpx.Client, level: str, is_compatible: bool
) -> None:
    register(registry, "orders-value", FIRST)

    registry.put("/config/orders-value", json={"compatibility": level}).raise_for_status()

    assert registry.get("/config/orders-value").json() == {"compatibilityLevel": level}
    asked = registry.post("/compatibility/subjects/orders-value/versions/latest", json=schema(BROKEN))
    assert asked.json() == {"is_compatible": is_compatible}


def test_a_level_that_there_is_not_is_refused(registry: httpx.Client) -> None:
    assert refused(registry.put("/config", json={"compatibility": "MAYBE"})) == (422, 42203)
    assert registry.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize(
    "body",
    [
        {"schema": "{"},
        {"schema": '{"type": "nothing"}'},
        {},
        {"schema": "{}", "schemaType": "PROTOBUF"},
        {"schema": json.dumps(FIRST), "references": [{"name": "A", "subject": "a", "version": 1}]},
    ],
)
def test_what_is_no_schema_is_refused(registry: httpx.Client, body: dict[str, Any]) -> None:
    assert refused(registry.post("/subjects/orders-value/versions", json=body)) == (422, 42201)
    assert registry.get("/subjects").json() == []


def test_a_body_that_is_no_json_is_refused(registry: httpx.Client) -> None:
    assert registry.post("/subjects/orders-value/versions", content=b"\xff").status_code == 400


def test_a_subject_that_is_deleted_is_gone(registry: httpx.Client) -> None:
    register(registry, "orders-value", FIRST)

    assert registry.delete("/subjects/orders-value").json() == [1]

    assert registry.get("/subjects").json() == []


def test_subjects_may_have_any_name(registry: httpx.Client) -> None:
    register(registry, "a%2Fb%20c-value", FIRST)

    assert registry.get("/subjects").json() == ["a/b c-value"]
