"""Whether a node is well, and whether requests should come to it, are two questions."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from kapelle.api import ApiServer, create_app
from kapelle.processors.streams import Stream
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.journal.errors import JournalUnavailable
from kapelle.topology.page import topology
from kapelle.views import Views
from tests.integration.api.places import until


class Moody(EmbeddedJournal):
    """A log that is away, or far ahead, when a test says so."""

    is_away = False
    ahead = 0

    def ends(self, stream: Stream) -> dict[int, int]:
        if self.is_away:
            raise JournalUnavailable("tell where it ends", "the broker is away")
        return {number: end + self.ahead for number, end in super().ends(stream).items()}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[str, Moody]]:
    with ExitStack() as opened:
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=1), tmp_path / "log"))
        runtime.start()
        journal = Moody(runtime)
        views = opened.enter_context(Views(journal))
        server = opened.enter_context(ApiServer(create_app(journal, views), "127.0.0.1", 0))
        yield server.url, journal


def status(url: str, path: str) -> tuple[int, str, str]:
    answer = httpx.get(f"{url}{path}", timeout=30)
    found = answer.json()
    return answer.status_code, found["status"], found.get("detail", "")


def test_a_node_with_a_view_that_is_up_to_date_is_well_and_ready(node: tuple[str, Moody]) -> None:
    url, _ = node

    assert until(lambda: status(url, "/ready") == (200, "ready", ""), "the node to be ready")
    assert status(url, "/health") == (200, "ok", "")
    assert status(url, "/api/v3/ready") == (200, "ready", "")


def test_a_node_whose_log_is_away_is_well_and_not_ready(node: tuple[str, Moody]) -> None:
    url, journal = node
    journal.is_away = True

    def told() -> bool:
        """What was asked a moment ago is remembered for a second."""
        return status(url, "/ready") == (503, "not ready", "Expected the log to answer, but it does not")

    assert until(told, "the node to notice")
    assert status(url, "/health") == (200, "ok", "")


def test_a_node_whose_view_is_far_behind_is_well_and_not_ready(node: tuple[str, Moody]) -> None:
    url, journal = node
    journal.ahead = 20_000

    assert until(lambda: status(url, "/ready")[0] == 503, "the node to notice")
    assert "Expected the view to be within 10,000 records of the log" in status(url, "/ready")[2]
    assert status(url, "/health") == (200, "ok", "")


def test_a_view_that_has_failed_is_neither(node: tuple[str, Moody], tmp_path: Path) -> None:
    url, journal = node
    journal._runtime.failure = RuntimeError("a bug")
    try:
        answers = [status(url, path) for path in ("/health", "/ready")]
    finally:
        journal._runtime.failure = None

    assert answers == [(503, "failed", "RuntimeError: a bug"), (503, "not ready", "RuntimeError: a bug")]


def test_requests_are_counted_by_route_and_not_by_path(node: tuple[str, Moody]) -> None:
    url, _ = node
    for name in ("a", "b"):
        httpx.get(f"{url}/api/v3/workflows/{name}/overview", timeout=30)
    httpx.get(f"{url}/nowhere", timeout=30)

    text = httpx.get(f"{url}/api/v3/metrics", timeout=30).text

    route = "/workflows/{workflow_id}/overview"
    assert f'kapelle_api_requests_total{{method="GET",route="{route}",status="404"}} 2' in text
    assert f'kapelle_api_request_seconds_count{{route="{route}"}} 2' in text
    assert 'kapelle_api_requests_total{method="GET",route="other",status="404"} 1' in text
    assert text.count("# TYPE kapelle_api_request_seconds histogram") == 1
