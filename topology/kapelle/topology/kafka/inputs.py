"""Input topics: whether they are still those that were read, and whether all that was not read is still there."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException, TopicCollection, TopicPartition

from kapelle.topology.build import Topology
from kapelle.topology.errors import CycleAborted, Unanswered
from kapelle.topology.inputs import Known, judged
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.answers import Described, is_committed, topic_id
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.notes import Note
from kapelle.topology.kafka.offsets import Offsets, asked_until, committed
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.log import Loss, Place

LOOK_EVERY_S: Final = 3.0


def losses_of(
    positions: Sequence[TopicPartition],
    ids: Mapping[str, str],
    offsets: Offsets,
    remembered: Mapping[Place, str] | None = None,
) -> list[Loss]:
    """What vanished between what was committed for a processor and what is there now.

    `remembered` are the ids of what we have read ourselves: they count where the notes were deleted with a topic.
    """
    noted = {**(remembered or {}), **{place: known for place, known in _noted(positions).items() if known}}
    places = {Place(tp.topic, tp.partition): tp.offset if is_committed(tp) else None for tp in positions}
    checked = [place for place, offset in places.items() if offset is not None or noted.get(place)]
    firsts, ends = offsets.beginnings(checked), offsets.ends(checked)
    losses = [
        judged(place, places[place], noted.get(place, ""), Known(firsts[place], ends[place], ids[place.topic]))
        for place in checked
    ]
    return [loss for loss in losses if loss is not None]


def forgotten(positions: Sequence[TopicPartition]) -> list[Place]:
    """Inputs without an offset, although one was committed for them: the notes beside other offsets name them."""
    noted = _noted(positions)
    return [place for tp in positions if not is_committed(tp) and noted.get(place := Place(tp.topic, tp.partition))]


def _noted(positions: Sequence[TopicPartition]) -> dict[Place, str]:
    """The ids that were noted for these inputs, beside their own offsets or beside those of their shard's others."""
    notes: dict[int, list[Note]] = {}
    for tp in positions:
        notes.setdefault(tp.partition, []).append(Note.of(tp))
    return {
        Place(tp.topic, tp.partition): next(
            (input_id for note in [Note.of(tp), *notes[tp.partition]] if (input_id := note.input_id(tp.topic))), ""
        )
        for tp in positions
    }


def vanished(topology: Topology, settings: KafkaSettings, processor: str, timeout_s: float) -> list[Loss]:
    """What a processor will find lost when it starts. It must have its topics. Asks until there is an answer."""
    streams = topology.processors[processor].inputs
    places = [Place(topology.topic(s), n) for s in streams for n in range(topology.partitions(s))]
    names = sorted({place.topic for place in places})
    topics, offsets = Topics(topology, settings), Offsets(settings)

    def ask() -> list[Loss]:
        positions = committed(settings, topology.group(processor), places, timeout_s)
        return losses_of(positions, topics.identities(names), offsets)

    try:
        return asked_until(timeout_s, ask)
    finally:
        topics.close()
        offsets.close()


class InputWatch:
    """Asks from time to time whether the topics that are read are still the same. It waits for no answer.

    librdkafka does not tell: when a topic is deleted and created again, it goes on at the same offset of the new one.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.ids: dict[tuple[str, Place], str] = {}  # the topic's id, by processor and what it reads
        self._read: dict[tuple[str, Place], str] = {}  # the same, of all that was ever read here
        self._timeout_s = settings.call_timeout_s
        self._admin = Admin(settings)
        self._asked: dict[str, Future[Described]] = {}
        self._next_s = 0.0

    def look(self) -> None:
        """Give the cycle up if a topic is another one than before. It is told once: the way of a start finds out."""
        now_s = time.monotonic()
        if self._asked and all(answer.done() for answer in self._asked.values()):
            answers, self._asked = self._asked, {}
            for name, answer in answers.items():
                self._compare(name, answer)
        elif not self._asked and self.ids and now_s >= self._next_s:
            self._next_s = now_s + LOOK_EVERY_S
            names = sorted({place.topic for _, place in self.ids})
            self._asked = self._admin.client.describe_topics(TopicCollection(names), request_timeout=self._timeout_s)

    def read_by(self, processor: str) -> dict[Place, str]:
        """The ids of what a processor has read in this process, as they were when it last began."""
        return {place: known for (reader, place), known in self._read.items() if reader == processor}

    def begin(self, ids: Mapping[tuple[str, Place], str]) -> None:
        """These are read from now on."""
        self.ids |= ids
        self._read |= ids

    def _compare(self, name: str, answer: "Future[Described]") -> None:
        try:
            current = topic_id(name, answer.result())
        except (KafkaException, Unanswered):
            self._admin.close()  # asked again, by a client that looks for its brokers anew
            return
        other = {known for (_, place), known in self.ids.items() if place.topic == name} - {current}
        if other:
            self.ids.clear()
            was = ", ".join(sorted(other))
            raise CycleAborted(f"{name} was deleted and created again while it was read (id {was}, now {current})")

    def close(self) -> None:
        self._admin.close()
