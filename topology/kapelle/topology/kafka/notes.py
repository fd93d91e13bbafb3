"""Notes beside committed offsets: the member that committed them, its changelog, and the topic that they belong to.

The sender's name lets its successor end a transaction that it left open (see fencing.py). The id of the changelog tells
whether the topic of that name is still the one that it was: offsets without the tables that stand for them would be the
silent loss of all state, so nobody goes on with another changelog until somebody has said so (`adopt`).

The ids of the processor's inputs tell the same of the topics that the offsets are of (see inputs.py). Each note has
those of all inputs: when a topic is deleted, the brokers delete its offsets too, with the notes beside them.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from kapelle.topology.build import Topology
from kapelle.topology.errors import ChangelogReplaced
from kapelle.topology.kafka.answers import committed_positions, is_committed
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place

NOTHING = "-"  # stands for an id that is not noted, where another follows
PARTS = 3
NAME_CHARS = 6
ID_CHARS = 12


class Note(NamedTuple):
    """No part holds a space: names are checked, and ids are the broker's base64, of 22 characters."""

    owner: str
    changelog_id: str = ""  # empty where somebody has taken the changelog for what it is
    inputs: str = ""  # the topics and their ids, both cut short, with commas between them

    def __str__(self) -> str:
        middle = self.changelog_id or (NOTHING if self.inputs else "")
        return f"{self.owner} {middle} {self.inputs}".rstrip()

    @classmethod
    def of(cls, position: TopicPartition) -> Self:
        parts = ["" if part == NOTHING else part for part in (position.metadata or "").split(" ")]
        return cls(*parts[:PARTS])

    def with_inputs(self, ids: Mapping[str, str]) -> Self:
        """The same note with the ids of these topics."""
        return self._replace(inputs=",".join(f"{_short(topic)}{ids[topic][:ID_CHARS]}" for topic in sorted(ids)))

    def input_id(self, topic: str) -> str:
        """The beginning of the id that the topic had; empty where none was noted."""
        name = _short(topic)
        return next((entry[NAME_CHARS:] for entry in self.inputs.split(",") if entry.startswith(name)), "")


def _short(topic: str) -> str:
    return urlsafe_b64encode(sha256(topic.encode()).digest()).decode()[:NAME_CHARS]


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
            positions = committed_positions(consumer, places, settings.request_timeout_s)
            noted = [
                TopicPartition(tp.topic, tp.partition, tp.offset, str(Note.of(tp)._replace(changelog_id="")))
                for tp in positions
                if is_committed(tp) and Note.of(tp).changelog_id
            ]
            if noted:
                consumer.commit(offsets=noted, asynchronous=False)
    finally:
        consumer.close()
    return len(noted)
