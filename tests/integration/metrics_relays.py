"""Relays at work in this process, on a real broker, with all that can become of what they relay: for their metrics."""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer
from openlineage.client.event_v2 import RunEvent
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.lineage.errors import NotEmitted
from kapelle.lineage.events import LineageEvents
from kapelle.lineage.relay import LineageRelay
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import Codec
from kapelle.schemas.contract import Contract
from kapelle.sinks import Log, Sinks, read_sinks
from kapelle.sources import TopicRelay, WatchedFile
from kapelle.sources.outbox import OutboxRelay
from kapelle.topology.journal import Position
from kapelle.topology.journal.errors import JournalUnavailable
from kapelle.topology.log import Place
from kapelle.topology.page import topology
from kapelle.tracing.errors import NotExported
from kapelle.tracing.ids import Ids
from kapelle.tracing.relay import TraceRelay
from kapelle.tracing.spans import Span
from tests.integration.runtime.members import Deployment
from tests.integration.sinks.world import Answer, Got, Receiver, World, webhook
from tests.integration.sources.postgres import Postgres
from tests.support.broker import Broker
from tests.unit.worker.samples import started, step

ENOUGH_S = 120.0


class Publisher:
    """Takes records, but not the first: that fails as it is told to."""

    def __init__(self, failure: Exception) -> None:
        self._failures = [failure]

    def publish(self, stream: Stream, key: str, value: Contract) -> "Future[Position]":  # noqa: ARG002 - all alike
        if self._failures:
            raise self._failures.pop()
        answer: Future[Position] = Future()
        answer.set_result(Position(Place(stream.name, 0), 0))
        return answer


def away() -> Publisher:
    return Publisher(JournalUnavailable("take a record", "it is away"))


def written(broker: Broker, topic: str, *records: tuple[str, bytes]) -> None:
    """Records, by their keys."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for key, value in records:
        producer.produce(topic, value, key, 0)
    assert producer.flush(ENOUGH_S) == 0


def running(relay: Any, moved: Callable[[], bool]) -> None:
    """Run a relay until its metrics have moved."""
    until_s: list[bool] = []

    def stopped() -> bool:
        if moved():
            until_s.append(True)
        return bool(until_s)

    thread = threading.Thread(target=relay.run, args=(stopped,), daemon=True)
    thread.start()
    thread.join(ENOUGH_S)
    assert until_s, relay.metrics()


def sources(broker: Broker, folder: Path, moved: Callable[[str], bool]) -> None:
    """A signal, a record that is kept out, one that is no signal, a log that is away, and a file that changes."""
    place = Deployment(broker, folder, topology(prefix=f"m-{folder.name}", partitions=1))
    orders = broker.create_topic(f"m-{folder.name}-orders")
    file = folder / "sources.yaml"
    rule: dict[str, Any] = {"topic": orders, "name": "order", "params": {"id": "/id"}, "filter": {"/day": "1"}}
    file.write_text(json.dumps({"sources": [rule]}))
    watched = WatchedFile(file)
    relay = TopicRelay(away(), watched, place.settings, prefix=place.topology.prefix)
    moved(relay.metrics())
    values = (b'{"id": "1", "day": "1"}', b'{"id": "2", "day": "2"}', b"no json")
    written(broker, orders, *(("key", value) for value in values))
    file.write_text(json.dumps({"sources": [rule | {"name": "orders"}]}))
    watched.ask()
    running(relay, lambda: moved(relay.metrics()))


def outbox(moved: Callable[[str], bool]) -> None:
    """A row that is published once the log is back, and one that makes no signal."""
    with Postgres() as server, psycopg.connect(server.dsn, autocommit=True) as database:
        database.execute(CliRunner().invoke(cli, ["outbox", "sql"]).stdout.encode())
        database.execute("INSERT INTO kapelle_outbox (id, name) VALUES ('a', 'order'), ('b', %s)", ("x" * 257,))
        relay = OutboxRelay(away(), server.dsn, poll_s=0.05)
        moved(relay.metrics())
        running(relay, lambda: moved(relay.metrics()))


def sinks(broker: Broker, folder: Path, moved: Callable[[str], bool]) -> None:
    """A receiver that takes, fails and refuses; events that are kept out; and a lane that dies of its letter."""
    world = World(broker, folder)

    def answers(got: Got) -> Answer:
        return {1: 200, 2: 500}.get(got.document["data"]["sequence"], 400), {}

    with Receiver(answers) as receiver:
        rule = {**webhook(receiver), "filter": {"/workflow_id": ["wf0"]}}
        world.sinks(ops=rule)
        found = read_sinks(world.file.read_bytes())
        made = Sinks(found, Log(world.place.topology, world.place.settings, Publisher(RuntimeError("as told"))))
        moved(made.metrics())
        world.write(8, workflows=2)
        done = threading.Event()

        def stopped() -> bool:
            if moved(made.metrics()):
                done.set()
            return done.is_set()

        thread = threading.Thread(target=made.run, args=(stopped, done.wait), daemon=True)
        thread.start()
        thread.join(ENOUGH_S)
        assert done.is_set(), made.metrics()


class Emitter:
    """Takes events, but not at first."""

    def __init__(self) -> None:
        self._is_away = True

    def emit_all(self, events: Sequence[RunEvent]) -> None:  # noqa: ARG002 - all alike
        if self._is_away:
            self._is_away = False
            raise NotEmitted("Expected to write events, but Kafka is away")


def openlineage(broker: Broker, folder: Path, moved: Callable[[str], bool]) -> None:
    """The history of a run, and a record in it that nobody can read."""
    place = Deployment(broker, folder, topology(prefix=f"m-{folder.name}", partitions=1))
    codec = Codec(place.topology.catalog())
    relay = LineageRelay(place.topology, place.settings, Emitter(), LineageEvents("test"))  # type: ignore[arg-type] # at its seam
    moved(relay.metrics())
    engine, _ = started(step())
    for stream in (WORKFLOW_EVENTS, RUN_EVENTS):
        history = [(key, codec.encode(value)) for key, value in engine.history(stream, 0)]
        written(broker, place.topology.topic(stream), *history, ("etl", b"?"))
    running(relay, lambda: moved(relay.metrics()))


class Exporter:
    """Takes spans, but not at first."""

    def __init__(self) -> None:
        self._is_away = True

    def export(self, spans: Sequence[Span]) -> None:  # noqa: ARG002 - all alike
        if self._is_away:
            self._is_away = False
            raise NotExported("Expected the collector to take spans, but it is away")


def traces(broker: Broker, folder: Path, moved: Callable[[str], bool]) -> None:
    """A run of which one step has ended; the rest of it is told by a successor, who must remember its beginning."""
    place = Deployment(broker, folder, topology(prefix=f"m-{folder.name}", partitions=1))
    codec, topic = Codec(place.topology.catalog()), place.topology.topic(RUN_EVENTS)
    engine, (run,) = started(step("a"), step("b"))

    def ended(step_id: str) -> list[tuple[str, bytes]]:
        engine.task(run, step_id).begin()
        engine.task(run, step_id).succeed()
        return [(key, codec.encode(value)) for key, value in engine.history(RUN_EVENTS, 0)]

    first = TraceRelay(place.topology, place.settings, Exporter(), Ids("test"))
    before = ended("a")
    written(broker, topic, *before, ("etl/1", b"?"))

    def is_told() -> bool:
        moved(first.metrics())
        counts = first.counts
        return counts.exported > 0 and counts.unreadable > 0 and counts.waits > 0

    running(first, is_told)
    written(broker, topic, *ended("b")[len(before) :])
    successor = TraceRelay(place.topology, place.settings, Exporter(), Ids("test"))
    running(successor, lambda: moved(successor.metrics()))
