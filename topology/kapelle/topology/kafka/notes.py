"""What stands beside committed offsets: who sent them, and which changelog holds the tables that go with them.

The sender's name lets its successor end a transaction that it left open (see fencing.py). The id of the changelog tells
whether the topic of that name is still the one that it was: offsets without the tables that stand for them would be the
silent loss of all state, so nobody goes on with another changelog until somebody has said so (`adopt`).
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from kapelle.topology.build import Topology
from kapelle.topology.errors import ChangelogReplaced
from kapelle.topology.kafka.answers import committed_positions, is_committed
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place


class Note(NamedTuple):
    """Neither part holds a space: names are checked, and ids are the broker's base64."""

    owner: str
    changelog_id: str = ""  # empty where somebody has taken the changelog for what it is

    def __str__(self) -> str:
        return f"{self.owner} {self.changelog_id}".rstrip()

    @classmethod
    def of(cls, position: TopicPartition) -> Self:
        owner, _, changelog_id = (position.metadata or "").partition(" ")
        return cls(owner, changelog_id)


def refuse_another(topic: str, changelog_id: str, positions: Iterable[TopicPartition]) -> None:
    """Refuse offsets that were committed with another changelog of this name."""
    for note in map(Note.of, positions):
        if note.changelog_id not in ("", changelog_id):
            raise ChangelogReplaced(topic, expected=note.changelog_id, found=changelog_id)


def adopt(topology: Topology, settings: KafkaSettings, processor: str) -> int:
    """Take the changelog of a processor for what it is now. Its members must have stopped.

    Offsets stay as they are, and so do their owners' names. Returns how many of them named a changelog.
    """
    streams = topology.processors[processor].inputs
    places = [Place(topology.topic(s), p) for s in streams for p in range(topology.partitions(s))]
    consumer = made(Consumer, settings.reader(topology.group(processor)))
    try:
        with translated(f"adopt the changelog of {processor}"):
            found = committed_positions(consumer, places, settings.request_timeout_s)
            noted = [
                TopicPartition(tp.topic, tp.partition, tp.offset, str(Note(Note.of(tp).owner)))
                for tp in found
                if is_committed(tp) and Note.of(tp).changelog_id
            ]
            if noted:
                consumer.commit(offsets=noted, asynchronous=False)
    finally:
        consumer.close()
    return len(noted)
