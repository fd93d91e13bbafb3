"""What comes instead of an answer is an error that says who must act; who was not there is asked again."""

import httpx
import pytest

from kapelle.client import (
    ApiError,
    BadAddress,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PreconditionFailed,
    ServerFailed,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unprocessable,
    exchange,
)
from tests.unit.client.fake_server import FakeServer, ok, problem

URL = "http://kapelle.test:8080"
DONE = ok(request_id="r-1", workflow_id="etl", status="DONE")


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between attempts."""
    monkeypatch.setattr(exchange, "RETRY_S", (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (412, PreconditionFailed),
        (413, TooLarge),
        (422, Unprocessable),
        (429, Unavailable),
        (500, ServerFailed),
        (503, Unavailable),
        (504, TimedOut),
    ],
)
def test_a_problem_of_the_server_is_an_error_of_its_kind(status: int, kind: type[ApiError]) -> None:
    server = FakeServer(problem(status, "Expected this, but found that", "a: wrong", "b: wrong"))
    with Client(URL, transport=server.transport) as client, pytest.raises(kind) as raised:
        client.workflows.delete("etl")

    assert str(raised.value) == "Expected this, but found that\n  a: wrong\n  b: wrong"
    assert raised.value.problem.detail == "Expected this, but found that"
    assert raised.value.errors == ["a: wrong", "b: wrong"]
    assert raised.value.problem.status == status
    assert raised.value.request_id == "r-1"


def test_an_effect_that_is_not_visible_in_time_is_timed_out_with_the_id_to_ask_again() -> None:
    server = FakeServer(httpx.Response(202, json={"request_id": "mine", "status": "ACCEPTED"}))
    with Client(URL, transport=server.transport) as client, pytest.raises(TimedOut) as raised:
        client.workflows.delete("etl", request_id="mine")

    assert raised.value.request_id == "mine"


def test_a_call_that_found_nobody_is_made_again_with_the_same_key() -> None:
    server = FakeServer(httpx.ConnectError("refused"), httpx.ReadError("reset"), DONE)
    with Client(URL, transport=server.transport) as client:
        done = client.workflows.delete("etl")

    assert done.status == "DONE"
    assert len({request.headers["idempotency-key"] for request in server.asked}) == 1
    assert len(server.asked) == 3


def test_a_server_that_stays_away_is_unavailable_after_a_few_attempts() -> None:
    server = FakeServer(httpx.ConnectError("[Errno 111] Connection refused"))
    with Client(URL, transport=server.transport) as client, pytest.raises(Unavailable) as raised:
        client.health()

    assert str(raised.value) == f"Expected Kapelle at {URL}, but there is no answer: [Errno 111] Connection refused"
    assert len(server.asked) == 4


def test_a_server_that_is_slow_is_not_asked_again() -> None:
    server = FakeServer(httpx.ReadTimeout("slow"))
    with Client(URL, transport=server.transport) as client, pytest.raises(TimedOut):
        client.health()

    assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x", "http://", "127.0.0.1:8080", "http://a:b"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadAddress, match="Expected a URL such as"):
        Client(url)


@pytest.mark.parametrize("token", ["", "two\nlines", "über"])
def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(BadAddress) as raised:
        Client(URL, token=token)

    assert token == "" or token not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>hello</html>"),
        httpx.Response(200, json=["something else"]),
        httpx.Response(418, text="I am a teapot"),
    ],
)
def test_what_is_not_kapelle_is_told_as_such(answer: httpx.Response) -> None:
    server = FakeServer(answer)
    with Client(URL, transport=server.transport) as client, pytest.raises(BadAddress):
        client.health()
