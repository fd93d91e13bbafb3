"""A schema registry in a thread: the two routes that a reader asks, over schemas that a test hands it."""

import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from types import TracebackType
from typing import Any, Self

import fastavro

Json = dict[str, Any]


class FakeRegistry:
    """Answers by path; `status` other than 200 is given to everyone. `asked` is what was asked for."""

    def __init__(self, answers: dict[str, Json]) -> None:
        self.answers = answers
        self.status = 200
        self.asked: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake.asked.append(self.path)
                known = fake.answers.get(self.path)
                status = fake.status if known is not None or fake.status != 200 else 404
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(known or {"error_code": 40403}).encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own word
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def schema_answer(schema: Any, **more: Any) -> Json:
    return {"schema": json.dumps(schema), **more}


def framed(number: int, schema: Any, record: Any) -> bytes:
    """A record in Confluent's wire format."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return struct.pack(">bI", 0, number) + out.getvalue()
