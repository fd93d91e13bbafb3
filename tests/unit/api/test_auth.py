"""Tokens and roles: who is let in, who may do what, and where the API may be served without them."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from kapelle.api import ApiServer, ApiSettings, BadTokens, ExposedWithoutTokens, Role, Tokens, check_exposure
from kapelle.api.auth import is_local, is_same_origin
from kapelle.api.routes import ROUTERS
from tests.integration.api.places import Place, definition, embedded_place

TOKENS = {Role.VIEWER: "viewer-token", Role.OPERATOR: "operator-token", Role.ADMIN: "admin-token"}

# What each role may do at least. Every route of the API is in this table: a test holds it complete.
ATTEMPT = "{workflow_id}/instances/{instance_id}/runs/{run_id}/steps/{step_id}/attempts/{attempt}"
ROUTES: list[tuple[Role, str, str]] = [
    (Role.ADMIN, "POST", "/workflows"),
    (Role.ADMIN, "POST", "/workflows/yaml"),
    (Role.VIEWER, "PUT", "/workflows/actions/validate"),
    (Role.VIEWER, "PUT", "/workflows/actions/validate/yaml"),
    (Role.VIEWER, "GET", "/workflows"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/versions/pagination"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/versions/{version}"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/overview"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/timeline"),
    (Role.ADMIN, "DELETE", "/workflows/{workflow_id}"),
    (Role.ADMIN, "PUT", "/workflows/{workflow_id}/versions/{version}/actions/activate"),
    (Role.ADMIN, "PUT", "/workflows/{workflow_id}/actions/deactivate"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/actions/{action}"),
    (Role.ADMIN, "POST", "/workflows/{workflow_id}/properties"),
    (Role.ADMIN, "POST", "/workflows/{workflow_id}/properties/tag"),
    (Role.ADMIN, "DELETE", "/workflows/{workflow_id}/properties/tag/{name}"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/properties-snapshot/latest"),
    (Role.VIEWER, "GET", "/workflows/instances/action-map"),
    (Role.VIEWER, "GET", "/workflows/steps/instances/action-map"),
    (Role.VIEWER, "GET", "/workflows/instances"),
    (Role.VIEWER, "GET", "/workflows/instances/counts"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/matrix"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/runs"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/timeline"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id}/children"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/events"),
    (Role.VIEWER, "GET", "/events"),
    (Role.OPERATOR, "POST", "/workflows/{workflow_id}/versions/{version}/actions/start"),
    (Role.OPERATOR, "POST", "/workflows/{workflow_id}/instances/{instance_id}/actions/restart"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/instances/{instance_id}/actions/{action}"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}/actions/{action}"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/steps"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}/steps"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id}"),
    (
        Role.VIEWER,
        "GET",
        "/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}/steps/{step_id}/attempts/{attempt}",
    ),
    (Role.OPERATOR, "POST", "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id}/actions/restart"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id}/actions/{action}"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id}/actions/resume"),
    (Role.OPERATOR, "POST", "/workflows/steps/breakpoints"),
    (Role.VIEWER, "GET", "/workflows/steps/breakpoints"),
    (Role.OPERATOR, "DELETE", "/workflows/steps/breakpoints"),
    (Role.VIEWER, "GET", "/workflows/steps/breakpoints/paused-step-attempts"),
    (
        Role.OPERATOR,
        "PUT",
        f"/workflows/steps/breakpoints/{ATTEMPT}/actions/resume",
    ),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/schedules"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/schedules/{trigger_id}"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/schedules/actions/pause"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/schedules/actions/resume"),
    (Role.VIEWER, "GET", "/schedules/preview"),
    (Role.OPERATOR, "POST", "/workflows/{workflow_id}/backfills"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/backfills"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/backfills/{backfill_id}"),
    (Role.OPERATOR, "PUT", "/workflows/{workflow_id}/backfills/{backfill_id}/actions/{action}"),
    (Role.ADMIN, "POST", "/tag-permits"),
    (Role.VIEWER, "GET", "/tag-permits"),
    (Role.VIEWER, "GET", "/tag-permits/{tag:name}"),
    (Role.ADMIN, "DELETE", "/tag-permits/{tag:name}"),
    (Role.VIEWER, "GET", "/permits"),
    (Role.VIEWER, "GET", "/permits/{kind}/{name:name}"),
    (Role.VIEWER, "GET", "/permits/{kind}/{name:name}/holders"),
    (Role.VIEWER, "GET", "/permits/{kind}/{name:name}/waiting"),
    (Role.OPERATOR, "POST", "/signals"),
    (Role.VIEWER, "GET", "/signals"),
    (Role.VIEWER, "GET", "/signals/{name:name}/instances"),
    (Role.VIEWER, "GET", "/signals/{name:name}/refused"),
    (Role.VIEWER, "GET", "/signals/{name:name}/instances/{sequence}"),
    (Role.VIEWER, "GET", "/signals/{name:name}/instances/{sequence}/explain"),
    (Role.VIEWER, "GET", "/signals/{name:name}/instances/{sequence}/lineage"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/instances/{instance_id}/lineage"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/triggers"),
    (Role.VIEWER, "GET", "/workflows/{workflow_id}/triggers/explain"),
    (Role.VIEWER, "GET", "/metrics"),
    (Role.VIEWER, "GET", "/dead-letters"),
    (Role.VIEWER, "GET", "/dead-letters/{offset}"),
    (Role.OPERATOR, "POST", "/dead-letters/{offset}/actions/redrive"),
    (Role.OPERATOR, "PUT", "/output-data"),
    (Role.OPERATOR, "POST", "/tasks/poll"),
    (Role.OPERATOR, "POST", "/tasks/reports"),
]
# These know their callers by signatures: their own tests hold them to it.
SIGNED = {("POST", "/hooks/{name}"), ("POST", "/sns/{name}")}
VALUES = {
    "workflow_id": "no-such",
    "version": "1",
    "instance_id": "1",
    "run_id": "1",
    "step_id": "a",
    "attempt": "1",
    "name": "gold",
    "tag": "gold",
    "kind": "tag",
    "action": "stop",
    "sequence": "1",
    "offset": "0",
    "trigger_id": "t",
    "backfill_id": "b",
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    settings = ApiSettings(tokens=Tokens(list(TOKENS.items())))
    with embedded_place(tmp_path_factory.mktemp("guarded"), settings) as place:
        yield place


def called(place: Place, method: str, path: str, token: str | None, **more: Any) -> httpx.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if path == "/events":  # it would never end
        more["params"] = {"wait_ms": 0}
    return place.http.request(method, path.replace(":name}", "}").format(**VALUES), headers=headers, **more)


def test_every_route_is_in_the_table_of_roles() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    found = {(method, route.path) for route in routes for method in route.methods or ()}

    assert found - SIGNED == {(method, path) for _, method, path in ROUTES}


@pytest.mark.parametrize(("least", "method", "path"), ROUTES)
def test_a_role_is_refused_what_it_may_not_do(guarded: Place, least: Role, method: str, path: str) -> None:
    answers = {role: called(guarded, method, path, token).status_code for role, token in TOKENS.items()}

    assert {role for role, status in answers.items() if status == 403} == {role for role in Role if role < least}
    assert 401 not in answers.values()


@pytest.mark.parametrize(("least", "method", "path"), ROUTES)
def test_nobody_gets_in_without_a_token_that_is_known(guarded: Place, least: Role, method: str, path: str) -> None:
    for token in (None, "another-token", "admin-token-"):
        response = called(guarded, method, path, token)

        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert response.headers["Content-Type"] == "application/problem+json"


def test_nothing_is_read_of_a_request_before_its_token_is_known(guarded: Place) -> None:
    wrong = called(guarded, "POST", "/tasks/poll", None, content=b"{")
    large = called(guarded, "POST", "/workflows", None, content=b"x" * 2_000_000)

    assert (wrong.status_code, large.status_code) == (401, 401)


def test_a_role_may_do_what_it_may(guarded: Place) -> None:
    pushed = called(guarded, "POST", "/workflows", "admin-token", json=definition("etl"))
    started = called(guarded, "POST", "/workflows/etl/versions/active/actions/start", "operator-token", json={})
    seen = called(guarded, "GET", "/workflows/etl/instances/1", "viewer-token")

    assert [one.status_code for one in (pushed, started, seen)] == [200, 200, 200]


def test_health_and_the_document_need_no_token(guarded: Place) -> None:
    assert httpx.get(f"{guarded.url}/health").status_code == 200
    assert httpx.get(f"{guarded.url}/openapi.json").status_code == 200


@pytest.mark.parametrize("scheme", ["bearer", "Bearer", "BEARER"])
def test_the_scheme_is_known_in_any_case_and_no_other_is(guarded: Place, scheme: str) -> None:
    known = guarded.http.get("/workflows", headers={"Authorization": f"{scheme} viewer-token"})
    basic = guarded.http.get("/workflows", headers={"Authorization": "Basic viewer-token"})

    assert (known.status_code, basic.status_code) == (200, 401)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.1", "example.org"])  # noqa: S104 - that is the point
def test_an_address_that_others_reach_is_refused_without_tokens(api: Place, host: str) -> None:
    with pytest.raises(ExposedWithoutTokens, match="--tokens"):
        check_exposure(host, None)
    check_exposure(host, Tokens([(Role.VIEWER, "viewer-token")]))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_a_loopback_address_needs_no_tokens(host: str) -> None:
    check_exposure(host, None)


def test_a_server_on_an_exposed_address_is_refused_before_it_listens(tmp_path: Path) -> None:
    from kapelle.api import create_app
    from kapelle.topology.embedded import EmbeddedRuntime
    from kapelle.topology.journal import EmbeddedJournal
    from kapelle.topology.page import topology
    from kapelle.views import Views

    with EmbeddedRuntime(topology(partitions=1), tmp_path) as runtime:
        journal = EmbeddedJournal(runtime)
        views = Views(journal)
        with pytest.raises(ExposedWithoutTokens):
            ApiServer(create_app(journal, views), "0.0.0.0", 0)  # noqa: S104 - that is the point
        views.close()


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        ("127.0.0.1:8080", None, True),
        ("localhost", "http://localhost:3000", True),
        ("[::1]:8080", None, True),
        ("evil.example", None, False),  # a name that was made to point at this machine
        ("127.0.0.1:8080", "https://evil.example", False),  # a page from elsewhere
        ("127.0.0.1:8080", "null", False),
        ("127.0.0.1:[", None, False),
        ("evil.com\\@127.0.0.1", None, False),
        ("evil.com@127.0.0.1", None, False),
        ("127.0.0.1/evil.com", None, False),
        ("127.0.0.1#evil.com", None, False),
        ("127.0.0.1 evil.com", None, False),
        ("127.0.0.1:8080:80", None, False),
        ("127.0.0.1:99999", None, False),
        ("127.0.0.1:8080", "http://evil.com\\@127.0.0.1", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/path", False),
        ("127.0.0.1:8080", "ftp://127.0.0.1", False),
        (None, None, True),
    ],
)
def test_without_tokens_only_this_machine_may_ask(host: str | None, origin: str | None, expected: bool) -> None:
    assert is_local(host, origin) is expected


def test_a_page_from_elsewhere_is_refused_where_there_are_no_tokens(api: Place) -> None:
    response = api.http.get("/workflows", headers={"Origin": "https://evil.example"})

    assert response.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_page_of_another_local_port_starts_nothing(api: Place, headers: dict[str, str]) -> None:
    """A page can send a POST without a body to any port, and the browser does not ask before."""
    api.http.post("/workflows", json=definition("etl"))

    response = api.http.post("/workflows/etl/versions/active/actions/start", headers=headers)

    assert response.status_code == 403
    assert api.http.get("/workflows/etl/instances").json()["elements"] == []


def test_a_page_that_this_server_has_served_may_write(api: Place) -> None:
    headers = {"Origin": str(httpx.URL(api.url).copy_with(path="")).rstrip("/"), "Sec-Fetch-Site": "same-origin"}

    assert api.http.post("/workflows", json=definition("etl"), headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/health", "/redoc", "/api/v3/workflows"])
def test_a_name_that_was_made_to_point_at_this_machine_is_refused_everywhere(api: Place, path: str) -> None:
    response = httpx.get(str(httpx.URL(api.url).copy_with(path=path)), headers={"Host": "evil.example"})

    assert response.status_code == 403


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://localhost:8080", "localhost:8080", True),
        ("HTTP://LocalHost:8080", "localhost:8080", True),
        ("http://localhost", "localhost:80", True),
        ("https://localhost", "localhost", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://localhost:8081", "localhost:8080", False),
        ("http://127.0.0.1:8080", "localhost:8080", False),
        ("http://localhost", "localhost:8080", False),
        ("ftp://localhost", "localhost", False),
        ("null", "localhost", False),
    ],
)
def test_an_origin_is_ours_if_scheme_host_and_port_are(origin: str, host: str, expected: bool) -> None:
    assert is_same_origin(origin, host) is expected


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# who may what\n\nviewer reading-only\nADMIN all-of-it\n")

    tokens = Tokens.from_file(path)

    assert [tokens.role_of(token) for token in ("reading-only", "all-of-it", "neither")] == [
        Role.VIEWER,
        Role.ADMIN,
        None,
    ]
    assert "all-of-it" not in repr(tokens)


def test_tokens_are_read_from_the_environment() -> None:
    tokens = Tokens.from_environment({"KAPELLE_TOKENS": "viewer:reading-only, operator:with:colons"})

    assert tokens is not None
    assert tokens.role_of("with:colons") is Role.OPERATOR
    assert Tokens.from_environment({}) is None


@pytest.mark.parametrize(
    "text", ["", "# nothing", "viewer", "king secret-token", "viewer short", "viewer tokén-token", "viewer a b"]
)
def test_tokens_that_cannot_be_used_are_refused_and_never_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)

    with pytest.raises(BadTokens) as refused:
        Tokens.from_file(path)

    assert "secret-token" not in str(refused.value)


def test_a_file_of_tokens_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTokens, match="cannot be read"):
        Tokens.from_file(tmp_path / "none")


@pytest.mark.parametrize("host", ["evil.com\\@127.0.0.1", "127.0.0.1:x", "127.0.0.1,evil.com:1:2", "[::1", "a b"])
def test_a_host_that_is_none_is_refused(api: Place, host: str) -> None:
    response = api.http.get("/workflows", headers={"Host": host})

    assert response.status_code == 400
    assert "Host" in response.json()["detail"]


def test_two_hosts_are_refused(api: Place) -> None:
    url = httpx.URL(api.url)
    with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
        connection.sendall(b"GET /api/v3/workflows HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.com\r\n\r\n")

        assert connection.recv(1_000).startswith(b"HTTP/1.1 400 ")
