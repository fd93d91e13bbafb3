"""A processor's consumer: one group, one lead topic that the group shares out, the other inputs following it.

The group's members agree only on the partitions of the first input (the lead). Whoever holds partition 3 of the lead
reads partition 3 of every input. So inputs are co-partitioned whatever the assignor does, and the sticky assignors,
which keep partitions where their tables are, can be used although they do not promise co-partitioning.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kapelle.broker import is_end, is_final, is_missing, is_not_yet_fetched, is_out_of_range, leave
from kapelle.topology.collector import at_rest
from kapelle.topology.errors import BrokerRefused, CycleAborted
from kapelle.topology.kafka.answers import committed_positions
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Listener, Place, Record, Run, Taken

SEEK_TRIES_MAX = 100
SEEK_WAIT_S = 0.02


class ProcessorReader:
    """Reads all inputs of one processor."""

    def __init__(
        self, processor: str, topics: Sequence[str], *, group: str, settings: KafkaSettings, listener: Listener
    ) -> None:
        self.processor = processor
        self.member = ""  # our member id when partitions were last assigned
        self._topics = tuple(topics)
        self._listener = listener
        self.statistics_text = ""
        self._leaving = False
        self._started = set[Place]()  # sought, and not out of range
        # A position that is not there must be told, not corrected: what stood there was lost.
        ours = {"auto.offset.reset": "error", "stats_cb": self._on_statistics}
        self.consumer = made(Consumer, {**settings.consumer(group), **ours})

    def subscribe(self) -> None:
        with translated(f"subscribe to {self._topics[0]}"):
            self.consumer.subscribe(
                [self._topics[0]], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )

    def wait(self, taken: Taken, wait_s: float) -> bool:
        """Wait for one record or event."""
        message = self.consumer.poll(wait_s)
        if message is None:
            return False
        self._add(taken, [message])
        return True

    def drain(self, taken: Taken, records_max: int) -> int:
        """Take what is there without waiting. Returns how much it was."""
        with at_rest():
            messages = self.consumer.consume(records_max, 0)
            self._add(taken, messages)
            return len(messages)

    def start(self, offsets: Mapping[Place, int]) -> None:
        """Read on from these offsets."""
        for place, offset in offsets.items():
            self._seek(TopicPartition(place.topic, place.partition, offset))
            self._started.add(place)
        self.consumer.resume([TopicPartition(p.topic, p.partition) for p in offsets])

    def committed(self, places: Sequence[Place], timeout_s: float) -> list[TopicPartition]:
        """The committed offsets, negative where nothing was committed. Waits until no transaction can change them."""
        with translated(f"read the offsets of {self.processor}"):
            return committed_positions(self.consumer, places, timeout_s)

    def close(self) -> threading.Thread:
        """Leave the group, in a thread that the caller joins.

        The member is told nothing more: it is leaving too, and gives its shards up by itself.
        """
        self._leaving = True
        return leave(self.consumer.close, self.processor)

    def _add(self, taken: Taken, messages: Iterable[Any]) -> None:
        """Add messages as runs: they come partition by partition, mostly."""
        topic, partition, records = "", -1, list[Record]()
        several = len(self._topics) > 1
        for message in messages:
            error = message.error()
            if error is not None:
                self._add_event(taken, message, error)
                continue
            if message.partition() != partition or (several and message.topic() != topic):
                topic, partition, records = message.topic(), message.partition(), []
                taken.runs.append(Run(self.processor, Place(topic, partition), records))
            records.append(Record(message.offset(), message.key(), message.value(), message.headers()))

    def _add_event(self, taken: Taken, message: Message, error: KafkaError) -> None:
        if is_end(error):
            place = Place(message.topic(), message.partition())  # type: ignore[arg-type] # an end has a place
            taken.ends.append((self.processor, place, message.offset()))  # type: ignore[arg-type]
        elif is_final(error):
            raise BrokerRefused(f"{self.processor} can't read {message.topic()}: {error.str()}")
        elif is_out_of_range(error):
            self._out_of_range(Place(message.topic(), message.partition()), error)  # type: ignore[arg-type] # as above
        elif is_missing(error):
            raise CycleAborted(f"{message.topic()} does not exist: {error.str()}")
        # Everything else librdkafka mends by itself: lost connections, moved leaders, expired sessions.

    def _out_of_range(self, place: Place, error: KafkaError) -> None:
        """What we wanted to read is not there any more, or never was. The way of a start finds out which.

        librdkafka takes such a partition out of its fetching, and does not let it be sought: so it is assigned again.
        """
        was_read = place in self._started
        again = TopicPartition(place.topic, place.partition, 0)
        if again in self.consumer.assignment():
            self.consumer.incremental_unassign([again])
            self._assign_paused([again])
        if was_read:  # before that, any offset would do
            raise CycleAborted(f"{place}: reading cannot continue: {error.str()}")

    def _on_statistics(self, text: str) -> None:
        self.statistics_text = text

    def _assigned(self, consumer: Consumer, leads: list[TopicPartition]) -> None:
        if self._leaving:
            return
        places = self._places(leads)
        # `start` says where to read from. Until then any offset will do but "the committed one": librdkafka would ask
        # for it, wait as long as an open transaction holds it, and not let go of the partition meanwhile.
        for place in places:
            place.offset = 0
        self._assign_paused(places)
        self.member = consumer.memberid() or ""
        self._listener.assigned(self.processor, [lead.partition for lead in leads])

    def _revoked(self, consumer: Consumer, leads: list[TopicPartition]) -> None:
        if not self._leaving:
            self._listener.revoked(self.processor, [lead.partition for lead in leads])
        try:
            held = {(tp.topic, tp.partition) for tp in consumer.assignment()}
            gone = [tp for tp in self._places(leads) if (tp.topic, tp.partition) in held]
            if gone:
                consumer.incremental_unassign(gone)
        except KafkaException:
            if not self._leaving:  # a consumer that is being closed may be too far gone to say what it holds
                raise

    def _assign_paused(self, places: list[TopicPartition]) -> None:
        self.consumer.incremental_assign(places)
        self.consumer.pause(places)
        self._started -= {Place(place.topic, place.partition) for place in places}

    def _places(self, leads: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(topic, lead.partition) for lead in leads for topic in self._topics]

    def _seek(self, position: TopicPartition) -> None:
        """Seek; a partition that was assigned a moment ago can't be sought yet, so wait for it a little."""
        for _ in range(SEEK_TRIES_MAX):
            try:
                self.consumer.seek(position)
            except KafkaException as error:
                if not is_not_yet_fetched(error.args[0]):
                    raise CycleAborted(f"seek {position}: {error}") from error
                time.sleep(SEEK_WAIT_S)
            else:
                return
        raise CycleAborted(f"{position} can't be sought: it is not being fetched")
