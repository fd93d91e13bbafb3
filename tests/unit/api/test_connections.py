"""Connections that ask for nothing: they are closed in time, and keep nobody else from being answered."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from kapelle.api import ApiServer, ApiSettings, create_app
from kapelle.api.connections import CONNECTIONS_MAX, LimitedProtocol, OncePerInterval, connections_of
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.page import topology
from kapelle.topology.tables.descriptors import open_files_max
from kapelle.views import Views
from tests.integration.api.places import until

ENOUGH_S = 60.0
SOON = ApiSettings(idle_ms=200, head_ms=300, body_ms=300, unread_ms=300)
PATIENT_MS = 600_000
HEAD = (
    b"POST /api/v3/signals HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


@contextmanager
def served(directory: Path, settings: ApiSettings) -> Iterator[ApiServer]:
    with ExitStack() as opened:
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=1), directory / "log"))
        runtime.start()
        journal = EmbeddedJournal(runtime)
        views = opened.enter_context(Views(journal, directory / "views"))
        yield opened.enter_context(ApiServer(create_app(journal, views, settings), "127.0.0.1", 0))


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server whose patience is short."""
    with served(tmp_path_factory.mktemp("hasty"), SOON) as server:
        yield server


def connected(server: ApiServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=ENOUGH_S)


def open_at(server: ApiServer) -> int:
    return len(server._server.server_state.connections)


def is_closed(connection: socket.socket) -> bool:
    """Waits until the other side has closed it. Whatever it says before that is read."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:", HEAD, HEAD + b'{"name":'],
    ids=["nothing", "half a line", "half a head", "no body", "half a body"],
)
def test_a_connection_that_sends_half_a_request_is_closed(hasty: ApiServer, sent: bytes) -> None:
    with connected(hasty) as connection:
        connection.sendall(sent)

        assert is_closed(connection)


@pytest.mark.parametrize("begun", [b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", HEAD], ids=["head", "body"])
def test_a_byte_now_and_then_keeps_no_connection_open(hasty: ApiServer, begun: bytes) -> None:
    with connected(hasty) as connection:
        connection.sendall(begun)
        connection.settimeout(0.05)
        sent = 0
        while sent < 90:  # a body of so many is not complete
            try:
                if not connection.recv(1_000):
                    break
            except TimeoutError:
                sent += 1
                connection.sendall(b"x")
            except ConnectionError:
                break

    assert sent < 90


def test_a_connection_that_has_been_answered_is_closed_when_it_asks_no_more(hasty: ApiServer) -> None:
    with connected(hasty) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")
        assert is_closed(connection)


def test_an_answer_that_nobody_reads_is_given_up(hasty: ApiServer) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(ENOUGH_S)
        connection.connect(("127.0.0.1", hasty.port))
        until(lambda: open_at(hasty) > 0, "the connection to be there")
        with_requests = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
        connection.sendall(with_requests)

        until(lambda: open_at(hasty) == 0, "the server to give up")


def test_a_request_may_take_longer_than_its_head_and_body(hasty: ApiServer) -> None:
    body = {"worker": "w", "types": ["nobody"], "wait_ms": 1_500}

    response = httpx.post(f"{hasty.url}/api/v3/tasks/poll", json=body, timeout=ENOUGH_S)

    assert response.status_code == 200


def test_more_idle_connections_than_there_may_be_keep_nobody_out(tmp_path: Path) -> None:
    patient = ApiSettings(connections_max=8, idle_ms=PATIENT_MS, head_ms=PATIENT_MS)
    with served(tmp_path, patient) as server, ExitStack() as held:
        for number in range(40):
            held.enter_context(connected(server)).sendall(b"GET / HT" if number % 2 else b"")

        answers = [httpx.get(f"{server.url}/health", timeout=ENOUGH_S).status_code for _ in range(5)]

        assert answers == [200] * 5
        assert open_at(server) <= 8


def test_a_connection_too_many_is_told_so_when_all_have_requests(tmp_path: Path) -> None:
    body = {"worker": "w", "types": ["nobody"], "wait_ms": 30_000}

    def ask(url: str) -> None:
        httpx.post(f"{url}/api/v3/tasks/poll", json=body, timeout=ENOUGH_S)

    with served(tmp_path, ApiSettings(connections_max=2)) as server:
        asking = [threading.Thread(target=ask, args=(server.url,)) for _ in range(2)]
        for one in asking:
            one.start()
        protocol = server._server.config.http
        assert isinstance(protocol, type)
        assert issubclass(protocol, LimitedProtocol)
        until(lambda: open_at(server) == 2 and not protocol.waiting, "both to wait")
        with connected(server) as third:
            told = third.recv(1_000)
        server.stop()
        for one in asking:
            one.join(ENOUGH_S)

    assert told.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: 1\r\n" in told


@pytest.mark.parametrize("descriptors", [256, 1_024, 4_096, 65_536, 1_048_576])
def test_connections_leave_descriptors_for_the_store(descriptors: int) -> None:
    connections = connections_of(descriptors)

    assert connections >= 64
    assert connections <= CONNECTIONS_MAX
    assert descriptors - connections - open_files_max(descriptors) >= descriptors // 4 or descriptors > 2_048


def test_a_warning_that_is_repeated_is_written_once_in_a_while() -> None:
    now_s = 0.0
    seldom = OncePerInterval(10.0, lambda: now_s)

    def told(level: int, text: str) -> bool:
        return seldom.filter(logging.LogRecord("x", level, "", 0, text, None, None))

    first = [told(logging.WARNING, "a"), told(logging.WARNING, "a"), told(logging.WARNING, "b")]
    errors = [told(logging.ERROR, "c"), told(logging.ERROR, "c")]
    now_s = 10.0

    assert first == [True, False, True]
    assert errors == [True, True]
    assert told(logging.WARNING, "a")
