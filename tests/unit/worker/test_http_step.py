"""The built-in HTTP step: what it asks, what it makes of the answer, and where it does not go."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from kapelle.schemas.contracts import Report
from kapelle.worker import Context, HttpStep, TaskReport
from kapelle.worker.answers import RESPONSE_BYTES_MAX
from kapelle.worker.execution import run_here
from kapelle.worker.steps import Step
from tests.unit.worker.samples import task

Handler = Callable[[httpx.Request], httpx.Response]


def called(
    handler: Handler,
    http: Mapping[str, Any],
    *,
    allow: tuple[str, ...] = ("api.example.com",),
    at: str = "93.184.216.34",
    **more: Any,
) -> TaskReport:
    """What comes of a step with this `http`, where names are resolved to one address."""
    extra = {name: more.pop(name) for name in ("state_expr",) if name in more}
    step = HttpStep(allow, transport=httpx.MockTransport(handler), resolve=lambda _host, _port: [at], **more)
    given = task(params={"http": dict(http), **extra})
    word = run_here(Step("Http", step), given, Context(given))
    assert word is not None
    return word


def answering(status: int = 200, text: str = "ok", **headers: str) -> Handler:
    return lambda _: httpx.Response(status, text=text, headers=headers)


def refuses(_request: httpx.Request) -> httpx.Response:
    raise AssertionError("it went there")


def test_a_request_goes_to_the_address_that_was_checked_under_the_name_that_was_asked_for() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, text="made")

    http = {
        "url": "https://api.example.com:8443/rows?a=1",
        "method": "post",
        "headers": {"X-One": "1", "Host": "evil.example.com"},
        "body": '{"a":1}',
    }
    word = called(handler, http)

    (request,) = seen
    assert word.report is Report.SUCCEEDED
    assert json.loads(word.outputs or "") == {
        "status_code": {"type": "LONG", "value": 201},
        "response_body": {"type": "STRING", "value": "made"},
    }
    assert (request.method, str(request.url)) == ("POST", "https://93.184.216.34:8443/rows?a=1")
    assert (request.headers["host"], request.headers["x-one"]) == ("api.example.com:8443", "1")
    assert request.extensions["sni_hostname"] == "api.example.com"
    assert request.content == b'{"a":1}'


@pytest.mark.parametrize(
    ("status", "report"),
    [
        (200, Report.SUCCEEDED),
        (299, Report.SUCCEEDED),
        (400, Report.FATAL_ERROR),
        (404, Report.FATAL_ERROR),
        (500, Report.USER_ERROR),
        (503, Report.USER_ERROR),
    ],
)
def test_the_status_tells_the_state(status: int, report: Report) -> None:
    assert called(answering(status), {"url": "http://api.example.com"}).report is report


def test_what_comes_to_no_answer_is_a_failure_of_the_platform() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    assert called(handler, {"url": "http://api.example.com"}).report is Report.PLATFORM_ERROR


@pytest.mark.parametrize(
    ("state", "report"),
    [
        ("DONE", Report.SUCCEEDED),
        ("USER_ERROR", Report.USER_ERROR),
        ("PLATFORM_ERROR", Report.PLATFORM_ERROR),
        ("FATAL_ERROR", Report.FATAL_ERROR),
        ("WRONG", Report.FATAL_ERROR),
    ],
)
def test_an_expression_can_tell_the_state(state: str, report: Report) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def evaluate(expression: str, params: Mapping[str, Any]) -> object:
        asked.append((expression, params))
        return state

    http = {"url": "http://api.example.com"}
    word = called(answering(404, "gone"), http, evaluate=evaluate, state_expr="return 'x';")

    assert word.report is report
    assert asked == [("return 'x';", {"status_code": 404, "response_body": "gone"})]


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://api.example.com", ()),
        ("http://other.example.com", ("api.example.com",)),
        ("http://example.com", ("*.example.com",)),
        ("http://api.example.com.evil.com", ("*.example.com",)),
        ("http://api.example.com@evil.com/", ("api.example.com",)),
        ("file:///etc/passwd", ("*.example.com",)),
        ("http://", ("api.example.com",)),
        ("http://[::1", ("api.example.com",)),
    ],
)
def test_hosts_that_are_not_allowed_are_never_reached(url: str, allow: tuple[str, ...]) -> None:
    assert called(refuses, {"url": url}, allow=allow).report is Report.FATAL_ERROR


@pytest.mark.parametrize("url", ["http://api.example.com", "http://API.example.com/x", "http://a.b.example.com"])
def test_a_star_allows_all_below_a_name(url: str) -> None:
    assert called(answering(), {"url": url}, allow=("*.example.com",)).report is Report.SUCCEEDED


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "100.100.100.200", "fd00:ec2::254", "224.0.0.1"],
)
def test_addresses_where_credentials_are_given_out_are_never_reached(address: str) -> None:
    word = called(refuses, {"url": "http://api.example.com"}, at=address)

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith("Expected an address that this worker may reach")


def test_a_redirect_within_the_host_is_followed() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/old":
            return httpx.Response(303, headers={"Location": "/new"})
        return httpx.Response(200, text=f"{request.method} {request.url.path}")

    word = called(handler, {"url": "http://api.example.com/old", "method": "POST", "body": "x"})

    assert '"GET /new"' in (word.outputs or "")


@pytest.mark.parametrize(
    "location",
    ["http://evil.com/", "http://b.example.com/", "https://a.example.com/", "http://a.example.com:81/", "//evil.com"],
)
def test_a_redirect_elsewhere_fails_for_good(location: str) -> None:
    http = {"url": "http://a.example.com/"}

    assert called(answering(302, Location=location), http, allow=("*.example.com",)).report is Report.FATAL_ERROR


def test_redirects_without_an_end_fail_for_good() -> None:
    word = called(answering(302, Location="/"), {"url": "http://api.example.com/"})

    assert word.message == "Expected at most 5 redirects of http://api.example.com/, but found more"


def test_a_response_that_is_too_large_is_not_read_to_its_end() -> None:
    word = called(answering(200, "x" * (RESPONSE_BYTES_MAX + 1)), {"url": "http://api.example.com"})

    assert word.report is Report.FATAL_ERROR
    assert "at most 1,000,000 bytes" in word.message


@pytest.mark.parametrize(
    "http", [{}, {"url": "http://api.example.com", "method": "TRACE"}, {"url": "x", "verb": "GET"}]
)
def test_parameters_that_make_no_request_fail_for_good(http: dict[str, Any]) -> None:
    assert called(refuses, http).report is Report.FATAL_ERROR


def test_a_real_server_is_reached_by_its_address() -> None:
    async def scene() -> bytes:
        heard: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            given = task(params={})
            step = HttpStep(["localhost"], resolve=lambda _host, _port: ["127.0.0.1"])
            arguments = Step("Http", step).arguments(
                json.dumps({"http": {"url": f"http://localhost:{port}/x"}}), Context(given)
            )
            assert await step(**arguments) == {"status_code": 200, "response_body": "ok"}
            assert f"Host: localhost:{port}".encode() in heard[0]
        return heard[0]

    assert asyncio.run(scene()).startswith(b"GET /x HTTP/1.1")
