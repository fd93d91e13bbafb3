"""Traces on a real broker: from a published signal to the finished step, through kills, in what a collector is sent."""

import gzip
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, TopicPartition
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.topology.journal import KafkaJournal
from tests.integration.api.places import Place, definition, kafka_place, step, until
from tests.integration.sources.world import Command
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(280)

OUTSIDE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SESSION_MS = 2_000  # so long after a kill nobody has the partitions
NAMES = ("signal", "trigger", "queue", "run", "step")


class Collector:
    """Takes spans over HTTP and keeps them, or refuses them for a while."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.refused = 0
        self.is_away = False
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                self.send_response(collector.take(self.path, body))
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def take(self, path: str, body: bytes) -> int:
        if self.is_away or path != "/v1/traces":
            self.refused += 1
            return 503
        request = ExportTraceServiceRequest.FromString(body)
        self.spans += [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
        return 200

    def has_more_than(self, count: int) -> bool:
        return len(self.spans) > count

    def of(self, workflow_id: str) -> list[Span]:
        """The spans of the workflow, and of the signal that bears its name."""
        return [
            span
            for span in list(self.spans)
            if workflow_id in (value(span, "kapelle.workflow"), value(span, "kapelle.signal"))
        ]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)


def value(span: Span, name: str) -> str | int:
    for one in span.attributes:
        if one.key == name:
            return str(one.value.string_value) or int(one.value.int_value)
    return ""


def kind(span: Span) -> str:
    return span.name.split()[0]


@pytest.fixture(scope="module")
def place(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with kafka_place(broker, tmp_path_factory.mktemp("traces")) as opened:
        yield opened


def prefix_of(place: Place) -> str:
    assert isinstance(place.journal, KafkaJournal)
    return place.journal._topology.prefix


def relay(broker: Broker, place: Place, collector: Collector, log: Path, *more: str) -> Command:
    where = ["--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix_of(place), "--partitions", "2"]
    where += ["--session-timeout-ms", str(SESSION_MS)]
    return Command(["traces", "run", "--endpoint", collector.endpoint, *where, *more], log)


def triggered(place: Place, name: str, kind_of_step: str = "NoOp") -> None:
    """A workflow that a signal of its own name starts."""
    body = definition(name, step("load", kind_of_step), run_strategy="PARALLEL")
    body["workflow"]["signal_triggers"] = [{"definitions": {name: {}}}]
    place.call("POST", "/workflows", json=body)


def announce(place: Place, name: str, number: int, **headers: str) -> None:
    answer = place.http.post("/signals", json={"name": name, "params": {"n": number}}, headers=headers)
    assert answer.status_code < 300, answer.text


def traces(spans: list[Span]) -> dict[bytes, dict[str, Span]]:
    """By trace: of each kind the span, the last one where it was sent again."""
    found: dict[bytes, dict[str, Span]] = defaultdict(dict)
    for span in spans:
        found[span.trace_id][kind(span)] = span
    return found


def is_whole(trace: dict[str, Span]) -> bool:
    return set(trace) == set(NAMES)


def test_one_trace_runs_from_a_published_signal_to_the_finished_step(
    broker: Broker, place: Place, tmp_path: Path
) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    triggered(place, name)
    announce(place, name, 1)

    with Collector() as collector, relay(broker, place, collector, tmp_path / "relay.log") as running:
        until(lambda: len(collector.of(name)) >= 5, f"five spans; {running.said()}", within_s=120)
        assert running.terminate() == 0, running.said()
        spans = collector.of(name)

    (trace,) = traces(spans).values()
    assert is_whole(trace)
    signal, trigger, queue, run, load = (trace[one] for one in NAMES)
    assert signal.parent_span_id == b""
    assert trigger.parent_span_id == signal.span_id
    assert queue.parent_span_id == run.parent_span_id == trigger.span_id
    assert load.parent_span_id == run.span_id
    assert signal.end_time_unix_nano <= trigger.end_time_unix_nano <= run.start_time_unix_nano
    assert run.start_time_unix_nano <= load.start_time_unix_nano <= load.end_time_unix_nano <= run.end_time_unix_nano
    assert load.status.code == run.status.code == 1
    assert value(load, "messaging.destination.name") == f"{prefix_of(place)}.runs.events"


def test_a_trace_from_outside_is_carried_by_http_to_the_last_step(broker: Broker, place: Place, tmp_path: Path) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    triggered(place, name)
    announce(place, name, 1, traceparent=OUTSIDE)

    with Collector() as collector, relay(broker, place, collector, tmp_path / "relay.log", "--from", "earliest"):
        until(lambda: len(collector.of(name)) >= 5, "five spans", within_s=120)
        (trace,) = traces(collector.of(name)).values()

    assert {span.trace_id.hex() for span in trace.values()} == {OUTSIDE.split("-")[1]}
    assert trace["signal"].parent_span_id.hex() == OUTSIDE.split("-")[2]


def test_a_kill_loses_nothing_and_changes_no_id(broker: Broker, place: Place, tmp_path: Path) -> None:
    name, files = f"wf-{uuid.uuid4().hex[:8]}", (tmp_path / "one.prom", tmp_path / "two.prom")
    triggered(place, name, name)
    with Collector() as collector:
        for part in range(3):
            for number in range(4):
                announce(place, name, part * 4 + number)
            seen = len(collector.spans)
            with relay(broker, place, collector, tmp_path / "killed.log") as running:
                until(partial(collector.has_more_than, seen), f"a span; {running.said()}", within_s=90)
                running.kill()
        with relay(broker, place, collector, tmp_path / "stopped.log") as running:
            until(lambda: "exporting" in running.said(), f"it to be up; {running.said()}", within_s=90)
            until(lambda: remembers(broker, place), f"open runs to be noted; {running.said()}", within_s=120)
            assert running.terminate() == 0, running.said()
        finish(place, name, 12)
        with (
            relay(broker, place, collector, tmp_path / "one.log", "--metrics", str(files[0])) as one,
            relay(broker, place, collector, tmp_path / "two.log", "--metrics", str(files[1])) as two,
        ):
            until(
                lambda: sum(map(is_whole, traces(collector.of(name)).values())) == 12,
                f"12 whole traces; {one.said()} {two.said()}",
                within_s=150,
            )
            # One of them may have told everything before the other was up.
            until(lambda: all(file.exists() for file in files), f"both at work; {one.said()} {two.said()}", within_s=90)
            assert (one.terminate(), two.terminate()) == (0, 0), f"{one.said()} {two.said()}"
        spans = collector.of(name)

    by_id: dict[bytes, set[bytes]] = defaultdict(set)
    for span in spans:
        by_id[span.span_id].add(span.SerializeToString(deterministic=True))
    assert len(traces(spans)) == 12
    assert len(by_id) == 60
    assert {len(forms) for forms in by_id.values()} == {1}
    assert sum(metric(file, "kapelle_traces_remembered_total") for file in files) > 0
    assert sum(metric(file, "kapelle_traces_exported_total") for file in files) > 0


def finish(place: Place, kind_of_step: str, count: int) -> None:
    """Do all tasks that there are, as a worker does."""
    done = 0
    while done < count:
        for task in place.take(kind_of_step, most=count - done):
            place.report(task, "SUCCEEDED")
            done += 1


def remembers(broker: Broker, place: Place) -> bool:
    """Whether the group has noted that what is committed is not all that the next one has to read."""
    group, topic = f"{prefix_of(place)}.traces", f"{prefix_of(place)}.runs.events"
    observer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        found = observer.committed([TopicPartition(topic, number) for number in range(2)], 30)
        return any(one.metadata and int(one.metadata) < one.offset for one in found)
    finally:
        observer.close()


def metric(file: Path, name: str) -> int:
    (line,) = [line for line in file.read_text().splitlines() if line.startswith(name)]
    return int(line.split()[-1])


def test_spans_that_the_collector_does_not_take_are_sent_again(broker: Broker, place: Place, tmp_path: Path) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    triggered(place, name)
    announce(place, name, 1)

    with Collector() as collector:
        collector.is_away = True
        with relay(broker, place, collector, tmp_path / "relay.log") as running:
            until(lambda: collector.refused > 1, f"two refusals; {running.said()}", within_s=120)
            assert collector.spans == []
            collector.is_away = False
            until(lambda: len(collector.of(name)) >= 5, f"five spans; {running.said()}", within_s=120)

    assert len(traces(collector.of(name))) == 1


def test_an_address_that_is_none_is_refused_with_one_that_is(broker: Broker, place: Place) -> None:
    words = ["traces", "run", "--endpoint", "collector:4318", "--bootstrap-servers", broker.bootstrap_servers]

    done = CliRunner().invoke(cli, [*words, "--prefix", prefix_of(place), "--partitions", "2"], prog_name="kapelle")

    assert done.exit_code == 2
    assert "such as http://127.0.0.1:4318" in " ".join(done.stderr.split())
