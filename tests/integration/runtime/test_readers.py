"""Readers outside the processors: what was deleted before they read it is told, with how much it was."""

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from kapelle.relay.group import GroupReader
from kapelle.topology.errors import CycleAborted
from kapelle.topology.journal.journal import Entry
from kapelle.topology.journal.kafka import KafkaFollower
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.offsets import Offsets
from kapelle.topology.log import Place
from tests.integration.runtime.members import ENOUGH_S, Deployment, own, until
from tests.proof.processors import counting
from tests.proof.workload import ticks
from tests.support.broker import Broker

LOG = logging.getLogger("tests.readers")


def delete_below(broker: Broker, topic: str, offset: int) -> None:
    admin = broker.admin()
    (done,) = admin.delete_records([TopicPartition(topic, 0, offset)]).values()
    done.result(ENOUGH_S)


class UnansweredOnce(Offsets):
    """Offsets whose first question gets no answer."""

    questions = 0

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        UnansweredOnce.questions += 1
        if UnansweredOnce.questions == 1:
            raise CycleAborted("no broker answered")
        return super().beginnings(places)


def _errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the journal reported as lost. A busy broker may cause warnings too."""
    return [
        one.getMessage() for one in caplog.records if one.name == "kapelle.journal" and one.levelno == logging.ERROR
    ]


def _taken(take: Callable[[], Iterable[Any]], found: list[Any]) -> bool:
    """Whether the last three records have been taken."""
    found += take()
    return len(found) == 3


def test_a_view_says_how_many_events_were_deleted_before_it_read_them(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Deployment(broker, tmp_path, own([counting], partitions=1))
    place.publish(ticks(8, 1))
    stream = counting.inputs[0]
    delete_below(broker, place.topology.topic(stream), 5)
    found: list[Entry] = []

    for start in (2, 0):  # who has read a part of it, and who begins
        follower = KafkaFollower(place.topology, place.settings, [stream], {(stream.name, 0): start})
        taken: list[Entry] = []
        until(partial(_taken, partial(follower.take, 10, 0.2), taken), "what is left of the records")
        follower.close()
        found += taken

    assert [entry.offset for entry in found] == [5, 6, 7, 5, 6, 7]
    topic = place.topology.topic(stream)
    assert _errors(caplog) == [f"{topic}-0: up to 3 records were deleted before they were read, from offset 2"]


def test_a_view_asks_again_where_a_partition_begins_when_no_broker_answers(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Deployment(broker, tmp_path, own([counting], partitions=1))
    place.publish(ticks(8, 1))
    stream = counting.inputs[0]
    delete_below(broker, place.topology.topic(stream), 5)
    monkeypatch.setattr("kapelle.topology.journal.kafka.Offsets", UnansweredOnce)
    UnansweredOnce.questions = 0

    follower = KafkaFollower(place.topology, place.settings, [stream], {(stream.name, 0): 2})
    taken: list[Entry] = []
    until(partial(_taken, partial(follower.take, 10, 0.2), taken), "what is left of the records")
    follower.close()

    assert [entry.offset for entry in taken] == [5, 6, 7]
    assert UnansweredOnce.questions >= 2
    assert len(_errors(caplog)) == 1


def test_a_relay_says_how_many_records_were_deleted_before_it_read_them(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = broker.create_topic(f"relayed-{uuid.uuid4().hex[:8]}")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for n in range(8):
        producer.produce(topic, str(n).encode(), partition=0)
    assert producer.flush(ENOUGH_S) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    delete_below(broker, topic, 5)
    reader = GroupReader(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), topic, LOG)
    reader.use([topic])
    found: list[Message] = []

    until(partial(_taken, reader.take, found), "what is left of the records")
    reader.close()

    (told,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert told.getMessage() == "records were lost before they were read"
    assert told.fields["records_max"] == 3  # type: ignore[attr-defined] # by `extra`
