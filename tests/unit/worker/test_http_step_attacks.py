"""What a workflow's author, a server or the owner of a host may try with an Http step, and what comes of it."""

import asyncio
import gzip
import json
import logging
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kapelle.schemas.contracts import Report
from kapelle.worker import Context, HttpStep, TaskReport
from kapelle.worker.addresses import is_forbidden
from kapelle.worker.answers import RESPONSE_BYTES_MAX, read_bounded, text_of
from kapelle.worker.execution import run_here
from kapelle.worker.steps import Step
from kapelle.worker.urls import shown
from tests.unit.worker.samples import task

URL = "http://api.example.com/x"
FORBIDDEN = [
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "0.1.2.3",
    "169.254.169.254",
    "169.254.170.2",
    "192.0.0.192",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::23",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "::169.254.169.254",
    "::ffff:169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::192.0.0.192",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1:0:a9:fea9:fe00:0",
    "2002:a9fe:a9fe::1",
    "2002:6464:64c8::",
    "2001:0:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
    "2001:db8::5efe:a9fe:a9fe",
    "2001:db8::200:5efe:169.254.169.254",
    "not an address",
]
ALLOWED = [
    "93.184.216.34",
    "127.0.0.1",
    "10.0.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "2606:2800:220:1::1",
    "fd12:3456:789a::1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::10.0.0.1",
    "::ffff:10.0.0.1",
    "2002:5db8:d822::1",
]


def called(
    respond: Callable[[httpx.Request], httpx.Response], url: str = URL, *, at: str = "93.184.216.34"
) -> TaskReport:
    step = HttpStep(["api.example.com"], transport=httpx.MockTransport(respond), resolve=lambda _host, _port: [at])
    given = task(params={"http": {"url": url}})
    word = run_here(Step("Http", step), given, Context(given))
    assert word is not None
    return word


def unreached(_request: httpx.Request) -> httpx.Response:
    raise AssertionError("it went there")


def sent(body: bytes, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    """An answer of these bytes as they are: httpx decodes those that it is given as content."""
    written = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(200, headers=written, stream=httpx.ByteStream(body))


@pytest.mark.parametrize("address", FORBIDDEN)
def test_no_form_of_an_address_that_is_forbidden_is_reached(address: str) -> None:
    word = called(unreached, at=address)

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith("Expected an address that this worker may reach")


@pytest.mark.parametrize("address", ALLOWED)
def test_other_addresses_stay_allowed(address: str) -> None:
    assert not is_forbidden(address)


# Bodies ---------------------------------------------------------------------------------------------------------------


def zeros(size: int, bits: int) -> bytes:
    """Zeros, packed without having been in memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join(packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", zeros(50_000_000, 31)),
        ("deflate", zeros(50_000_000, 15)),
        ("gzip, gzip", gzip.compress(zeros(50_000_000, 31))),
        ("gzip,gzip,gzip", gzip.compress(gzip.compress(zeros(50_000_000, 31)))),
        ("br", b"x"),
        ("zstd", b"x"),
        ("gzip, identity, deflate", b"x"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_small_answer_that_decodes_to_much_takes_no_memory(encoding: str, body: bytes) -> None:
    tracemalloc.start()
    try:
        word = called(sent(body, content_encoding=encoding))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 10_000_000
    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith(("Expected a response of at most", "Expected one Content-Encoding"))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("x-gzip", gzip.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")[2:-4]),
        ("identity", b"hello"),
        ("", b"hello"),
    ],
    ids=["gzip", "x-gzip", "deflate", "deflate without its header", "identity", "none"],
)
def test_an_answer_is_decoded_as_it_was_asked_for(encoding: str, body: bytes) -> None:
    word = called(sent(body, content_encoding=encoding))

    assert json.loads(word.outputs or "")["response_body"]["value"] == "hello"


def test_an_answer_that_is_not_in_its_encoding_is_a_failure_of_the_platform() -> None:
    assert called(sent(b"hello", content_encoding="gzip")).report is Report.PLATFORM_ERROR


def test_a_packed_answer_of_exactly_the_limit_is_taken() -> None:
    packed = httpx.ByteStream(gzip.compress(b"x" * RESPONSE_BYTES_MAX))

    assert len(asyncio.run(read_bounded(packed, "gzip"))) == RESPONSE_BYTES_MAX


NO_TEXT = ["idna", "zlib", "undefined", "rot13", "hex", "base64", "bz2", "unicode_escape", "raw_unicode_escape"]


@pytest.mark.parametrize("charset", [*NO_TEXT, "punycode", "mbcs", "no-such", "x" * 500, "", '"', "..", "utf-8\x01"])
def test_a_charset_that_is_none_of_text_is_read_as_utf_8(charset: str) -> None:
    assert text_of("caf\\u00e9 é".encode(), f"text/plain; charset={charset}") == "caf\\u00e9 é"


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", "iso-8859-1", '"windows-1252"', "latin1", "utf-16", "cp850"])
def test_a_charset_of_text_is_followed(charset: str) -> None:
    assert text_of("é".encode(charset.strip('"')), f"text/plain; charset={charset}") == "é"


# URLs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.com\\@api.example.com/",
        "http://api.example.com\\@evil.com/",
        "http:\\\\api.example.com/",
        "http://api.example.com/\\x",
        "http://api.example.com /",
        " http://api.example.com/",
        "http://api.example.com/\n",
        "http://api.ex\tample.com/",
        "http://api.example.com/\x00",
        "http://api.example.com/\u2028",
        "http://evil.com#@api.example.com/",
        "http://evil.com?@api.example.com/",
        "http://evil.com/@api.example.com/",
        "http://api.example.com:80:81/",
        "http://api.example.com:x/",
        "http://api.example.com%2eevil.com/",
        "http://api.example.com./",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://0251.0376.0251.0376/",
        "//api.example.com/",
        "http:api.example.com",
    ],
)
def test_a_url_that_can_be_read_in_two_ways_is_refused(url: str) -> None:
    assert called(unreached, url).report is Report.FATAL_ERROR


@pytest.mark.parametrize("number", ["0xa9fea9fe", "2852039166", "0251.0376.0251.0376"])
def test_other_spellings_of_an_address_are_checked_as_they_are_resolved(number: str) -> None:
    given = task(params={"http": {"url": f"http://{number}/"}})
    word = run_here(Step("Http", HttpStep([number])), given, Context(given))

    assert word is not None
    assert "may reach" in word.message or "Expected a URL" in word.message


@pytest.mark.parametrize("location", ["\\\\evil.com\\", "http://api.example.com\\@evil.com/", "/\x00", "http://[::1"])
def test_a_redirect_that_can_be_read_in_two_ways_is_refused(location: str) -> None:
    word = called(lambda _: httpx.Response(302, headers=[(b"Location", location.encode())]))

    assert word.report is Report.FATAL_ERROR


@pytest.mark.parametrize("status", [200, 404, 500])
def test_credentials_and_queries_are_in_no_message_and_no_log_line(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, text="ok")

    word = called(respond, "http://ann:s3cret@api.example.com/x?key=s3cret#s3cret")

    told = f"{word.message} {word.log} {caplog.text}"
    assert "s3cret" not in told
    assert "http://api.example.com/x?…" in told
    assert seen[0].headers["authorization"] == "Basic YW5uOnMzY3JldA=="
    assert seen[0].url.query == b"key=s3cret"


@pytest.mark.parametrize(
    "url",
    [
        "http://s3cret@evil.com\\@api.example.com/",
        "http://evil.com\\s3cret@api.example.com/",
        "ftp://ann:s3cret@api.example.com/",
        "http://ann:s3cret@api.example.com:x/",
        "http://ann:s3cret@other.example.com/?s3cret",
    ],
)
def test_a_url_that_is_refused_is_told_without_its_credentials(url: str) -> None:
    word = called(unreached, url)

    assert "s3cret" not in word.message
    assert "s3cret" not in shown(url)


def test_proxies_of_the_environment_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> Any:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            step = HttpStep(["localhost"], resolve=lambda _host, _port: ["127.0.0.1"])
            given = task(params={})
            params = json.dumps({"http": {"url": f"http://localhost:{port}/x"}})
            return await step(**Step("Http", step).arguments(params, Context(given)))

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert asyncio.run(scene())["status_code"] == 200
