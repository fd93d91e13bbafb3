"""Junk on the schema topic of a real broker stops nobody: readers pass over it, and learn what stands around it."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kapelle.processors.streams import Stream
from kapelle.processors.wiring import TASKS
from kapelle.relay.history import HistoryReader
from kapelle.schemas import Catalog, Contract, wire
from kapelle.schemas.contracts import Criticality, Task
from kapelle.schemas.schema_topic import to_records
from kapelle.sinks import Log
from kapelle.topology.build import Topology
from kapelle.topology.journal.kafka import KafkaFollower, KafkaJournal
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.page import topology
from kapelle.topology.replay.exports import about
from kapelle.topology.replay.kafka import KafkaHistory
from kapelle.worker import KafkaTransport
from tests.integration.runtime.members import ENOUGH_S, Deployment, own, until
from tests.proof.processors import counting
from tests.support.broker import Broker
from tests.unit.topology.world import tick

TASK = Task("token", "etl", 1, 1, "load", 1, 1, "work", "{}", "key", Criticality.MEDIUM, 1_000, 4_000_000_000_000, 1)
TICKS = counting.inputs[0]

Records = list[tuple[bytes, bytes | None]]


def newer(value: Contract) -> tuple[bytes, Records]:
    """A value as a newer process writes it, with one more field, and the schema that it publishes first."""
    schema = json.loads(type(value).SCHEMA)
    schema["fields"].append({"name": f"more_{uuid.uuid4().hex[:8]}", "type": "string", "default": ""})
    catalog = Catalog()
    fingerprint = catalog.learn(json.dumps(schema))
    data = value.to_avro(b"\xc3\x01" + fingerprint.to_bytes(8, "little")) + wire.string("more")
    return data, [*to_records(catalog)]


def junk(of: Topology) -> Records:
    """What anyone who may write to the topic can write there. Two of our own schemas are hidden by it."""
    ours = to_records(of.catalog())
    return [
        (b"\xff", b"\xff"),
        (b"", b"["),
        (b"key", b"{}"),
        (b"key", None),
        (b"0" * 16, ours[0][1]),
        (b"1" * 16, b'{"type": "record", "name": "a", "fields": [{"name": "b", "type": "a"}]}'),
        (ours[0][0], b"\xfe"),
        (ours[1][0], None),
    ]


def produce(place: Deployment, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": place.broker.bootstrap_servers, "enable.idempotence": True})
    failed: list[object] = []
    for key, value in records:
        producer.produce(topic, value, key, 0, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(ENOUGH_S) == 0
    assert failed == []


@contextmanager
def with_junk(place: Deployment, stream: Stream, key: bytes, value: Contract) -> Iterator[None]:
    """A topic of schemas full of junk, and behind it a record of a newer process and its schema."""
    data, schemas = newer(value)
    produce(place, place.topology.schemas, [*junk(place.topology), *schemas, *junk(place.topology)])
    produce(place, place.topology.topic(stream), [(key, data)])
    yield


def passed_over(caplog: pytest.LogCaptureFixture) -> set[str]:
    return {record.getMessage() for record in caplog.records if record.name == "kapelle.schemas"}


def _taken(take: Callable[[], Iterable[Any]], found: list[Any]) -> bool:
    found += take()
    return bool(found)


def ticking(broker: Broker, directory: Path) -> Deployment:
    return Deployment(broker, directory, own([counting], partitions=1))


def test_a_member_folds_what_a_newer_process_writes(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = ticking(broker, tmp_path)
    with with_junk(place, TICKS, b"a", tick("newer")), place.member() as running:
        until(lambda: running.counters.events > 0, "the tick to be counted")

    assert running.counters.dead_letters == 0
    assert any(line.startswith(f"passed over {place.topology.schemas}-0 at 0: ") for line in passed_over(caplog))


def test_a_journal_reads_what_a_newer_process_writes(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = ticking(broker, tmp_path)
    with with_junk(place, TICKS, b"a", tick("newer")):
        found = list[Any]()
        with closing(KafkaFollower(place.topology, place.settings, [TICKS], {})) as follower:
            until(partial(_taken, partial(follower.take, 10, 0.2), found), "the tick")

    assert [entry.value.id for entry in found] == ["newer"]
    assert any(line.startswith(f"passed over {place.topology.schemas}-0 at 0: ") for line in passed_over(caplog))


def test_a_relay_reads_what_a_newer_process_writes(broker: Broker, tmp_path: Path) -> None:
    place = ticking(broker, tmp_path)
    with with_junk(place, TICKS, b"a", tick("newer")):
        found = list[Any]()
        history = HistoryReader(place.topology, place.settings, "relay", streams=[TICKS])
        history.group.use(history.topics)
        with closing(history.group):
            until(partial(_taken, history.take, found), "the tick")

    assert [record.entry.value.id for record in found] == ["newer"]


def test_a_sink_reads_what_a_newer_process_writes(broker: Broker, tmp_path: Path) -> None:
    place = ticking(broker, tmp_path)
    data, schemas = newer(tick("newer"))
    produce(place, place.topology.schemas, [*junk(place.topology), *schemas])
    with closing(KafkaJournal(place.topology, place.settings)) as journal:
        decoder = Log(place.topology, place.settings, journal).decoder()

        assert decoder.decode(data) == tick("newer")


def test_a_worker_takes_a_task_that_a_newer_engine_gives(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Deployment(broker, tmp_path, topology(prefix=f"schemas-{uuid.uuid4().hex[:8]}", partitions=1))
    transport = KafkaTransport(broker.bootstrap_servers, place.topology.prefix)
    with closing(transport), with_junk(place, TASKS, b"etl/1", TASK):
        transport.open("worker", ["work"])
        found = list[Task]()
        until(partial(_taken, partial(transport.take, 1, 0.2), found), "the task")

    assert found == [TASK]
    assert any(line.startswith(f"passed over {place.topology.schemas}-0 at 0: ") for line in passed_over(caplog))


def test_a_history_is_exported_with_the_schemas_that_stand_between_the_junk(broker: Broker, tmp_path: Path) -> None:
    place = ticking(broker, tmp_path)
    _, schemas = newer(tick("newer"))
    produce(place, place.topology.schemas, [*junk(place.topology), *schemas, *junk(place.topology)])
    with closing(KafkaHistory(place.topology, place.settings)) as history:
        facts = about(history, [], "1")

    known = {key.decode() for key, _ in [*schemas, *to_records(place.topology.catalog())]}
    assert facts.schemas.keys() == known


def test_our_own_schemas_are_published_again_where_junk_has_their_keys(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = ticking(broker, tmp_path)
    topic = SchemaTopic(place.topology.schemas, place.settings)
    caplog.set_level(logging.ERROR)
    topic.publish(place.topology.catalog())
    produce(place, place.topology.schemas, junk(place.topology))

    assert topic.publish(place.topology.catalog()) == 2

    latest = {record[0]: record[1] for record in topic.read()}
    assert {key: latest[key] for key, _ in to_records(place.topology.catalog())} == dict(
        to_records(place.topology.catalog())
    )
    assert topic.publish(place.topology.catalog()) == 0
