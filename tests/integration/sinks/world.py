"""Public topics on the broker, receivers of webhooks on this machine, and sinks as processes beside them."""

import json
import re
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec
from confluent_kafka import Producer

from kapelle.processors.publisher.streams import INSTANCE_CHANGES
from kapelle.schemas import Codec
from kapelle.schemas.contracts import InitiatorType, InstanceStatus, InstanceStatusChange
from kapelle.schemas.headers import HeaderForm, rfc3339
from kapelle.sources.hooks import Delivery, Hook
from kapelle.sources.models import HookRule
from kapelle.topology.build import partition_of
from kapelle.topology.page import topology
from tests.integration.runtime.members import Deployment, until
from tests.integration.sources.world import Command
from tests.support.broker import Broker

ENOUGH_S = 120.0
PARTITIONS = 2
SESSION_MS = 2_000
SECRET = "the-secret-of-the-receiver"  # noqa: S105 - of a test
TOPIC = INSTANCE_CHANGES.name
Answer = tuple[int, dict[str, str]]


class Got(msgspec.Struct):
    """One request that came."""

    headers: dict[str, str]
    body: bytes
    at_s: float

    @property
    def id(self) -> str:
        return self.headers["idempotency-key"]

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """Takes webhooks. `answers` says what to answer to a request; `gate` holds all answers back while it is clear."""

    def __init__(self, answers: Callable[[Got], Answer] = lambda _: (204, {})) -> None:
        self.got: list[Got] = []
        self.taken: list[Got] = []  # those that were answered with 2xx
        self.answers = answers
        self.gate = threading.Event()
        self.gate.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = self.rfile.read(size)
                if len(body) < size:  # whoever sent it was killed meanwhile
                    self.close_connection = True
                    return
                got = Got({name.lower(): value for name, value in self.headers.items()}, body, time.monotonic())
                receiver.got.append(got)
                receiver.gate.wait()
                status, headers = receiver.answers(got)
                if 200 <= status < 300:
                    receiver.taken.append(got)
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A sender that was killed is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"

    def ids(self) -> list[str]:
        return [got.id for got in self.taken]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class World:
    """Topics of a deployment of its own. Records are written as the publisher of instances writes them."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.prefix = f"sinks-{uuid.uuid4().hex[:8]}"
        self.place = Deployment(broker, directory, topology(prefix=self.prefix, partitions=PARTITIONS))
        self.topic = self.place.topology.topic(INSTANCE_CHANGES)
        self.directory = directory
        self.file = directory / "sinks.yaml"
        self.ids: list[str] = []
        self._codec = Codec(self.place.topology.catalog())
        self._form = HeaderForm(f"/{self.prefix}/publisher.instances", "InstanceStatusChange")
        self._sequences: dict[str, int] = defaultdict(int)
        config = {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
        self._producer = Producer(config)

    def write(self, count: int, *, workflows: int = 5, status: InstanceStatus = InstanceStatus.CREATED) -> list[str]:
        """So many changes, in turn of so many workflows. Tells their ids."""
        made = []
        for number in range(count):
            key = f"wf{number % workflows}"
            self._sequences[key] += 1
            change = _change(key, self._sequences[key], status)
            id_ = f"publisher.instances/{self.prefix}.workflows.events-0-{len(self.ids)}#1"
            self.raw(key, self._codec.encode(change), [*self._form.make(id_, rfc3339(change.at_ms))])
            self.ids.append(id_)
            made.append(id_)
        assert self._producer.flush(ENOUGH_S) == 0
        return made

    def raw(self, key: str, value: bytes, headers: list[tuple[str, str | bytes | None]]) -> None:
        self._producer.produce(self.topic, value, key, partition_of(key, PARTITIONS), headers=headers)
        self._producer.flush(ENOUGH_S)

    def sinks(self, **sinks: Mapping[str, Any]) -> None:
        """The file. A sink reads the changes of instances, and is quick to try again, unless it says otherwise."""
        quick = {"topics": [TOPIC], "retry": {"first_ms": 20, "longest_ms": 200, "attempts": 3}}
        self.file.write_text(json.dumps({"sinks": {name: quick | dict(sink) for name, sink in sinks.items()}}))

    def run(self, *more: str, name: str = "one") -> Command:
        """The sinks of the file, as a process. Its groups forget those who were killed soon."""
        where = ["--bootstrap-servers", self.place.broker.bootstrap_servers, "--prefix", self.prefix]
        where += ["--partitions", str(PARTITIONS), "--timeout", "60", "--session-timeout-ms", str(SESSION_MS)]
        return Command(["sinks", "run", "--file", str(self.file), *where, *more], self.directory / f"{name}.log")

    def until(self, condition: Callable[[], Any], what: str) -> None:
        until(lambda: bool(condition()), what, ENOUGH_S)


def webhook(receiver: Receiver, **more: Any) -> dict[str, Any]:
    return {"webhook": {"url": receiver.url, "secrets": [SECRET], **more}}


def is_signed(got: Got, secret: str = SECRET) -> bool:
    """What our own webhook source thinks of a request."""
    rule = HookRule.model_validate({"name": "events", "payload": ""})
    sent = Delivery(got.body, got.headers["kapelle-signature"], got.headers["kapelle-delivery"])
    return Hook("events", [secret], rule).accepts(sent, time.time())


def served(running: Command) -> dict[str, int]:
    """The metrics that a process serves, by name and sink: `delivered/ops`."""
    found = re.search(r"url=(http://\S+/metrics)", running.log.read_text())
    text = httpx.get(found[1], timeout=60).text if found else ""
    samples = re.findall(r'^kapelle_sinks_(\w+)_total\{sink="([^"]+)"\} (\d+)$', text, re.MULTILINE)
    return {f"{name}/{sink}": int(count) for name, sink, count in samples}


def _change(workflow_id: str, sequence: int, status: InstanceStatus) -> InstanceStatusChange:
    return InstanceStatusChange(
        workflow_id=workflow_id,
        instance_id=sequence,
        run_id=1,
        sequence=sequence,
        status=status,
        previous_status=None,
        version=1,
        initiator=InitiatorType.MANUAL,
        author="a test",
        request_id=f"{workflow_id}-{sequence}",
        correlation_id="",
        reason="",
        created_at_ms=1_794_823_200_000,
        started_at_ms=None,
        ended_at_ms=None,
        at_ms=1_794_823_200_000,
        source_topic="workflows.events",
        source_partition=0,
        source_offset=sequence,
    )
