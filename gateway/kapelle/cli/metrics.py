"""Metrics for whoever watches: served on this machine, or written to a file that an agent reads."""

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from typing import Any, Final

from kapelle.cli.errors import AddressTaken
from kapelle.topology.exposition import CONTENT_TYPE

HOST: Final = "127.0.0.1"
CONNECTION_S: Final = 1.0  # a client that says nothing may not keep others waiting longer, nor a stop

Text = Callable[[], str]

_log = logging.getLogger("kapelle.metrics")


class _Server(TCPServer):
    """Without the look-up of the host's name that `HTTPServer` makes, and without its tracebacks."""

    allow_reuse_address = True

    def handle_error(self, *_: Any) -> None:
        _log.debug("a client of metrics went away", exc_info=True)


class MetricsServer:
    """Answers `GET /metrics` with `text()`, one client at a time, in a thread of its own."""

    def __init__(self, port: int) -> None:
        self.text: Text = str  # nothing, until there is something to tell
        try:
            self._server = _Server((HOST, port), _handler(self))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise AddressTaken(f"Expected to serve metrics on {HOST}:{port}, but {error.strerror}") from error
        self.url = f"http://{HOST}:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="kapelle-metrics", daemon=True)
        self._thread.start()

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


def _handler(owner: MetricsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CONNECTION_S

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            body = (owner.text() if found else "Expected /metrics\n").encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: stderr is for what the member does."""

    return Handler
