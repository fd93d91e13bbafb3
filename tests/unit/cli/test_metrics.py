"""Metrics and health are served on this machine alone, and metrics written to a file all at once."""

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.cli.errors import AddressTaken
from kapelle.cli.metrics import MetricsServer, serving, write

ANSWER_S = 5.0


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with serving(0) as opened:
        assert opened is not None
        opened.text = lambda: "kapelle_records_total 7\n"
        yield opened


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310 - our own server
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers["Content-Type"], refused.read().decode()


def test_metrics_are_served_as_prometheus_expects_them(server: MetricsServer) -> None:
    assert get(server.url) == (200, "text/plain; version=0.0.4; charset=utf-8", "kapelle_records_total 7\n")


def test_a_query_does_not_matter(server: MetricsServer) -> None:
    assert get(f"{server.url}?name=x")[0] == 200


def test_any_other_path_is_not_found_and_says_where_to_look(server: MetricsServer) -> None:
    status, _, text = get(server.url.replace("/metrics", "/"))

    assert (status, text) == (404, "Expected /metrics, /health or /ready\n")


def test_a_process_that_starts_is_well_and_not_ready(server: MetricsServer) -> None:
    assert get(server.url.replace("/metrics", "/health"))[::2] == (200, '{"status": "ok"}\n')
    assert get(server.url.replace("/metrics", "/ready"))[::2] == (
        503,
        '{"status": "not ready", "detail": "starting"}\n',
    )


def test_a_process_that_does_its_part_is_ready(server: MetricsServer) -> None:
    server.unready = str

    assert get(server.url.replace("/metrics", "/ready")) == (200, "application/json", '{"status": "ready"}\n')


def test_a_process_that_has_failed_is_neither_well_nor_ready(server: MetricsServer) -> None:
    server.failed, server.unready = lambda: "it hangs", str

    assert get(server.url.replace("/metrics", "/health"))[::2] == (503, '{"status": "failed", "detail": "it hangs"}\n')
    assert get(server.url.replace("/metrics", "/ready"))[0] == 503


def test_nobody_else_on_the_network_can_read_them(server: MetricsServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")


def test_an_operator_may_have_them_served_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAPELLE_METRICS_HOST", "127.0.0.2")
    with serving(0) as opened:
        assert opened is not None
        assert opened.url.startswith("http://127.0.0.2:")
        assert get(opened.url)[0] == 200


def test_an_address_that_is_not_ours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAPELLE_METRICS_HOST", "192.0.2.1")

    with pytest.raises(AddressTaken, match=r"Expected to serve metrics on 192\.0\.2\.1:0, but "):
        MetricsServer(0)


def test_a_client_that_says_nothing_does_not_keep_others_from_an_answer(server: MetricsServer) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)):
        assert get(server.url)[0] == 200


def test_a_client_that_goes_away_leaves_no_traceback(server: MetricsServer, capsys: pytest.CaptureFixture[str]) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /metr")

    assert get(server.url)[0] == 200
    assert capsys.readouterr().err == ""


def test_a_port_that_is_taken_is_refused(server: MetricsServer) -> None:
    port = int(server.url.split(":")[2].split("/")[0])

    with pytest.raises(
        AddressTaken, match=f"Expected to serve metrics on 127.0.0.1:{port}, but Address already in use"
    ):
        MetricsServer(port)


def test_before_there_is_something_to_tell_the_answer_is_empty(server: MetricsServer) -> None:
    server.text = str

    assert get(server.url)[::2] == (200, "")


def test_without_a_port_nothing_is_served() -> None:
    with serving(None) as opened:
        assert opened is None


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "kapelle.prom"
    path.write_text("old, and much longer than what comes after it")

    write(path, "new\n")

    assert path.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [path]
