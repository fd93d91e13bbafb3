"""Metrics and health, served over HTTP or written to a file."""

import errno
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from typing import Final

from kapelle.cli.errors import AddressTaken
from kapelle.topology.exposition import CONTENT_TYPE, now, total

HOST: Final = "127.0.0.1"
HOST_VARIABLE: Final = "KAPELLE_METRICS_HOST"
CONNECTION_S: Final = 1.0  # a client that says nothing may not keep others waiting longer, nor a stop

# What a worker counts.
WORKER: Final = {
    "taken": total("worker_tasks_taken", "Tasks that the worker has taken."),
    "done": total("worker_results", "Task results that the engine has received."),
    "refused": total("worker_reports_refused", "Reports of the worker that the engine refused."),
    "lost": total(
        "worker_leases_lost", "Tasks dropped because the engine could not be reached before their lease ended."
    ),
    "waits": total("worker_waits", "Requests for tasks that did not reach the engine."),
    "in_hand": now("worker_tasks_in_hand", "Tasks that the worker runs at the moment."),
}

Text = Callable[[], str]
Reason = Callable[[], str]  # why all is not well; empty when it is

_log = logging.getLogger("kapelle.metrics")


class _Server(TCPServer):
    """Without the look-up of the host's name that `HTTPServer` makes, and without its tracebacks."""

    allow_reuse_address = True

    def handle_error(self, *_: object) -> None:
        _log.debug("a client of metrics went away", exc_info=True)


class MetricsServer:
    """Answers `GET /metrics`, `/health` and `/ready`, one client at a time, in a thread of its own.

    `/health` is for whoever would restart the process, `/ready` for whoever waits until it does its part: 200 or 503.
    """

    def __init__(self, port: int) -> None:
        host = os.environ.get(HOST_VARIABLE) or HOST
        self.text: Text = str  # nothing, until there is something to tell
        self.failed: Reason = str
        self.unready: Reason = lambda: "starting"
        try:
            self._server = _Server((host, port), _handler(self))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
                raise
            raise AddressTaken(f"Expected to serve metrics on {host}:{port}, but {error.strerror}") from error
        self.url = f"http://{host}:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="kapelle-metrics", daemon=True)
        self._thread.start()

    def answer(self, path: str) -> tuple[int, str, str]:
        """The status, the type and the text of an answer."""
        match path:
            case "/metrics":
                return 200, CONTENT_TYPE, self.text()
            case "/health":
                return _answer(self.failed(), well="ok", ill="failed")
            case "/ready":
                return _answer(self.failed() or self.unready(), well="ready", ill="not ready")
            case _:
                return 404, CONTENT_TYPE, "Expected /metrics, /health or /ready\n"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serving(port: int | None) -> Iterator[MetricsServer | None]:
    """Serve within this block, if a port was given."""
    server = MetricsServer(port) if port is not None else None
    try:
        yield server
    finally:
        if server is not None:
            server.close()


def write(path: Path, text: str) -> None:
    """Put the metrics into a file, all at once: a reader never sees half of them."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _answer(reason: str, *, well: str, ill: str) -> tuple[int, str, str]:
    body = {"status": ill, "detail": reason} if reason else {"status": well}
    return 503 if reason else 200, "application/json", json.dumps(body) + "\n"


def _handler(owner: MetricsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CONNECTION_S

        def do_GET(self) -> None:
            status, kind, text = owner.answer(self.path.partition("?")[0])
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: stderr is for what the member does."""

    return Handler
