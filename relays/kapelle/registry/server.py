"""A registry for development over HTTP: the part of Confluent's API that serializers and tools use.

    with RegistryServer() as registry:
        print(registry.url)

It keeps everything in memory, and it is for one machine: who needs more runs a registry.
"""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple, Self
from urllib.parse import unquote, urlsplit

import msgspec

from kapelle.registry.subjects import Refused, Subjects

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
BODY_BYTES_MAX: Final = 2_000_000
PROBLEM_WORDS: Final = ("verbose=true", "verbose=True")


class Request(NamedTuple):
    """A request: the names in its path, its body, and its query."""

    names: tuple[str, ...]
    body: dict[str, object]
    query: str


Answer = Callable[[Subjects, Request], object]


def _schema(request: Request) -> str:
    if request.body.get("schemaType", "AVRO") != "AVRO":
        raise Refused(42201, f"Invalid schema: expected Avro, but found {request.body['schemaType']}")
    if request.body.get("references"):
        raise Refused(42201, "Invalid schema: expected no references, which this registry does not have")
    if not isinstance(request.body.get("schema"), str):
        raise Refused(42201, "Invalid schema: expected a text under 'schema'")
    return str(request.body["schema"])


def _found(subjects: Subjects, request: Request) -> object:
    return msgspec.to_builtins(subjects.lookup(request.names[0], _schema(request)))


def _compatibility(subjects: Subjects, request: Request) -> dict[str, object]:
    subject, version = request.names[0], request.names[1] if len(request.names) > 1 else None
    problems = subjects.problems(subject, _schema(request), version)
    messages = {"messages": problems} if request.query in PROBLEM_WORDS else {}
    return {"is_compatible": not problems, **messages}


def _set_level(subjects: Subjects, request: Request) -> dict[str, str]:
    level = str(request.body.get("compatibility", ""))
    return {"compatibility": subjects.set_level(level, request.names[0] if request.names else None)}


def _id(request: Request) -> int:
    if not request.names[0].isdecimal():
        raise Refused(404, "HTTP 404 Not Found")
    return int(request.names[0])


# A star stands for a name.
ROUTES: Final[dict[tuple[str, str], Answer]] = {
    ("GET", "/"): lambda _, __: {},
    ("GET", "/subjects"): lambda s, _: s.subjects(),
    ("POST", "/subjects/*"): _found,
    ("DELETE", "/subjects/*"): lambda s, a: s.delete(a.names[0]),
    ("GET", "/subjects/*/versions"): lambda s, a: s.versions(a.names[0]),
    ("POST", "/subjects/*/versions"): lambda s, a: {"id": s.register(a.names[0], _schema(a))},
    ("GET", "/subjects/*/versions/*"): lambda s, a: msgspec.to_builtins(s.version(*a.names)),
    ("GET", "/subjects/*/versions/*/schema"): lambda s, a: msgspec.Raw(s.version(*a.names).schema.encode()),
    ("GET", "/schemas/ids/*"): lambda s, a: {"schema": s.by_id(_id(a))},
    ("GET", "/schemas/types"): lambda _, __: ["AVRO"],
    ("POST", "/compatibility/subjects/*/versions"): _compatibility,
    ("POST", "/compatibility/subjects/*/versions/*"): _compatibility,
    ("GET", "/config"): lambda s, _: {"compatibilityLevel": s.level()},
    ("PUT", "/config"): _set_level,
    ("GET", "/config/*"): lambda s, a: {"compatibilityLevel": s.level(a.names[0])},
    ("PUT", "/config/*"): _set_level,
}


def answer(subjects: Subjects, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """The status and the body that a request is answered with."""
    parts = urlsplit(path)
    segments = [unquote(segment) for segment in parts.path.strip("/").split("/")]
    try:
        route = _route(method, segments)
        content = msgspec.json.decode(body, type=dict[str, object]) if body else {}
        reply = route[0](subjects, Request(route[1], content, parts.query))
    except Refused as refused:
        status = refused.code if refused.code < 1000 else refused.code // 100
        return status, msgspec.json.encode({"error_code": refused.code, "message": refused.message})
    except msgspec.MsgspecError as error:
        return 400, msgspec.json.encode({"error_code": 400, "message": f"Expected JSON, but {error}"})
    return 200, msgspec.json.encode(reply)


def _route(method: str, segments: list[str]) -> tuple[Answer, tuple[str, ...]]:
    for (verb, pattern), route in ROUTES.items():
        parts = pattern.strip("/").split("/")
        if verb == method and len(parts) == len(segments):
            pairs = list(zip(parts, segments, strict=True))
            if all(want in ("*", segment) for want, segment in pairs):
                return route, tuple(segment for want, segment in pairs if want == "*")
    raise Refused(404, "HTTP 404 Not Found")


class RegistryServer:
    """A registry that listens on this machine alone, from when it is entered until it is left."""

    def __init__(self, port: int = 0) -> None:
        self.subjects = Subjects()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self.subjects))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, name="kapelle-registry", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(subjects: Subjects) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if size > BODY_BYTES_MAX:
                self.close_connection = True
                status, body = 413, b'{"error_code":413,"message":"Expected a smaller body"}'
            else:
                status, body = answer(subjects, self.command, self.path, self.rfile.read(size))
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the names that the base class looks for

        def log_message(self, *_: object) -> None:
            """Say nothing: the developer looks at other things."""

    return Handler
