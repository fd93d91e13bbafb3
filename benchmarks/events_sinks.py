"""The part of `benchmarks.events` about sinks: the speed of the engine beside one that hangs, fails or is slow.

The engine works at full speed while `kapelle sinks run` delivers everything to a receiver that misbehaves. Then the
receiver works again. If it has not received every event at the end, no figures are reported.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.harness import DEADLINE_S, Place, Refused
from benchmarks.programs import Program
from benchmarks.workload import PARTITIONS
from kapelle.processors.publisher.streams import INSTANCE_CHANGES

WAYS: Final = ("hangs", "fails", "is slow")
SLOW_S: Final = 0.2
SECRET: Final = "the-secret-of-the-receiver"  # noqa: S105 - of a benchmark


class Receiver:
    """Receives webhooks, and misbehaves in a given way until it is told to work."""

    def __init__(self, way: str) -> None:
        self.ids: set[str] = set()
        self.asked = 0
        self._good = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.answer(way, self.headers["Idempotency-Key"])
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A sender that gave up is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, way: str, id_: str) -> int:
        """Misbehave, unless told to work."""
        self.asked += 1
        if not self._good.is_set():
            if way == "fails":
                return 500
            self._good.wait(None if way == "hangs" else SLOW_S)
        self.ids.add(id_)
        return 204

    def be_good(self) -> None:
        self._good.set()

    def close(self) -> None:
        self._good.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def sink(place: Place, directory: Path, way: str) -> Iterator[Receiver]:
    """A sink of all instances that end, which leads to a receiver that misbehaves."""
    receiver = Receiver(way)
    rule = {
        "topics": [INSTANCE_CHANGES.name],
        "filter": {"/status": "SUCCEEDED"},
        "webhook": {"url": receiver.url, "secrets": [SECRET]},
        "retry": {"attempts": 1000, "longest_ms": 1000},
    }
    file = directory / "sinks.json"
    file.write_bytes(msgspec.json.encode({"sinks": {"receiver": rule}}))
    run = [sys.executable, "-c", "from kapelle.cli.main import main; main()", "sinks", "run", "--file", str(file)]
    where = ["--bootstrap-servers", place.bootstrap_servers, "--prefix", place.prefix, "--partitions", str(PARTITIONS)]
    try:
        with Program("sinks", [*run, *where, "--log-level", "error"]):
            yield receiver
    finally:
        receiver.close()


def await_asked(receiver: Receiver) -> None:
    """Wait until the sink has something to deliver, so that it misbehaves while the engine works."""
    _until(lambda: receiver.asked > 0, "the sink to deliver something")


def await_all(receiver: Receiver, count: int) -> float:
    """Wait until the receiver, which works now, has received everything; returns how long that took."""
    began = time.perf_counter()
    receiver.be_good()
    _until(lambda: len(receiver.ids) >= count, f"{count} events to be delivered")
    return time.perf_counter() - began


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Refused(f"Expected {what} in {DEADLINE_S} s")
        time.sleep(0.05)
