"""How a worker reads topics: a group that shares partitions out, a group that shares records out, and a tail."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from confluent_kafka import AcknowledgeType, Consumer, KafkaException, Message, TopicPartition

from kapelle.broker import (
    has_no_leader,
    is_end,
    is_repaired_by_client,
    is_silent,
    lacks_share_groups,
    leave,
    no_leader,
)
from kapelle.worker.errors import ShareGroupsMissing, TransportUnavailable
from kapelle.worker.kafka_clients import CALL_S, KafkaClients, meaning, translated

LEAVE_S: Final = 3.0
TAIL_MAX: Final = 1_000
AGAIN_S: Final = 0.1

Records = list[Message]


class Taker(Protocol):
    """Reads the topic of tasks on behalf of one step type."""

    settles_first: bool  # whether records must be settled before more are read

    def poll(self, room: int, wait_s: float) -> Records:
        """Records, when there are any; the first is waited for."""
        ...

    def settle(self, records: Records, beyond: Records) -> None:
        """These are dealt with, and need not come again, except those beyond what there was room for."""
        ...

    def put_back(self, records: Records) -> None:
        """These are to come again."""
        ...

    def rest(self) -> None:
        """There is no room: take nothing, and keep the place in the group."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class GroupTaker:
    """A member of a consumer group."""

    settles_first = False

    def __init__(self, clients: KafkaClients, topic: str, group: str) -> None:
        self._consumer = clients.consumer(group)
        self._group = group
        self._rests = False
        self._early: Records = []  # came while at rest, from partitions that were assigned just then
        self._owned: set[int] = set()
        self._next: dict[int, TopicPartition] = {}
        with translated(f"subscribe to {topic}"):
            self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def poll(self, room: int, wait_s: float) -> Records:
        if self._rests:
            with translated(f"resume {self._group}"):
                self._consumer.resume(self._consumer.assignment())
            self._rests = False
        records, self._early = self._early[:room], self._early[room:]
        if len(records) < room:
            records += self._polled(room - len(records), 0.0 if records else wait_s)
        return records

    def _polled(self, room: int, wait_s: float) -> Records:
        with translated(f"read for {self._group}"):
            first = self._consumer.poll(wait_s)
            if first is None:
                return []
            rest = self._consumer.consume(room - 1, 0) if room > 1 else []
        return _sound([first, *rest], self._group)

    def settle(self, records: Records, beyond: Records) -> None:
        if beyond:
            raise AssertionError("a group gives no more than it is asked for")
        for record in records:
            place = _place(record)
            if place.partition in self._owned:  # else its next owner may be further already
                self._next[place.partition] = TopicPartition(place.topic, place.partition, place.offset + 1)
        if self._next:
            with translated(f"commit for {self._group}"):
                self._consumer.commit(offsets=list(self._next.values()), asynchronous=True)

    def put_back(self, records: Records) -> None:
        firsts: dict[int, TopicPartition] = {}
        for record in reversed(records):
            place = _place(record)
            firsts[place.partition] = place
        for place in firsts.values():
            with suppress(KafkaException):  # no longer ours: its next owner begins at what was committed
                self._consumer.seek(place)

    def rest(self) -> None:
        with translated(f"stay in {self._group}"):
            assigned = self._consumer.assignment()
            if assigned:
                self._consumer.pause(assigned)
            self._rests = True
            message = self._consumer.poll(0)
        if message is not None:
            self._early += _sound([message], self._group)

    def close(self) -> None:
        self._commit(list(self._next.values()))
        leave(self._consumer.close, self._group).join(LEAVE_S)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned |= {partition.partition for partition in partitions}

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit([self._next[p.partition] for p in partitions if p.partition in self._next])
        self._lost(_consumer, partitions)

    def _lost(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {partition.partition for partition in partitions}
        self._owned -= gone
        self._next = {number: place for number, place in self._next.items() if number not in gone}
        self._early = [record for record in self._early if record.partition() not in gone]

    def _commit(self, offsets: Sequence[TopicPartition]) -> None:
        if offsets:
            with suppress(KafkaException):  # not committed means delivered again: the engine takes one answer
                self._consumer.commit(offsets=list(offsets), asynchronous=False)


class ShareTaker:
    """A member of a share group (KIP-932): short tasks do not wait behind long ones of the same partition."""

    settles_first = True

    def __init__(self, clients: KafkaClients, topic: str, group: str) -> None:
        # A group is of one kind for ever, so that of shares has a name of its own.
        self._group = f"{group}.share"
        self._consumer = clients.share_consumer(self._group)
        with translated(f"subscribe to {topic}"):
            self._consumer.subscribe([topic])

    def poll(self, room: int, wait_s: float) -> Records:  # noqa: ARG002 - a share consumer takes no number
        try:
            records = list(self._consumer.poll(wait_s))
        except KafkaException as error:
            if lacks_share_groups(error.args[0]):
                raise ShareGroupsMissing(f"it answers {error.args[0].str()}") from error
            raise meaning(error.args[0], f"read for {self._group}") from error
        return _sound(records, self._group)

    def settle(self, records: Records, beyond: Records) -> None:
        others = {(record.partition(), record.offset()) for record in beyond}
        for record in records:
            is_other = (record.partition(), record.offset()) in others
            self._consumer.acknowledge(record, AcknowledgeType.RELEASE if is_other else AcknowledgeType.ACCEPT)
        with translated(f"acknowledge for {self._group}"):
            self._consumer.commit_async()

    def put_back(self, records: Records) -> None:
        for record in records:
            self._consumer.acknowledge(record, AcknowledgeType.RELEASE)
        with suppress(KafkaException):  # what is not released comes again when its lock ends
            self._consumer.commit_async()

    def rest(self) -> None:
        """Nothing: a member that does not poll acquires nothing."""

    def close(self) -> None:
        leave(self._consumer.close, self._group).join(LEAVE_S)


def _low_and_high(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Where a partition begins and ends. One that was just made has no leader for a moment, which is waited for."""
    until_s = time.monotonic() + CALL_S
    while True:
        try:
            offsets = consumer.get_watermark_offsets(place, CALL_S)
            if offsets is not None and min(offsets) >= 0:
                return offsets
            # None, or an error value of librdkafka where an offset is expected: nobody has answered.
            raise no_leader()
        except KafkaException as error:
            if not has_no_leader(error.args[0]) or time.monotonic() > until_s:
                raise
            time.sleep(AGAIN_S)


class TopicTail:
    """All partitions of a topic, from a little before the end on, outside any group."""

    def __init__(self, consumer: Consumer, topic: str, past_max: int) -> None:
        self._consumer = consumer
        self._ends: dict[int, int] = {}
        with translated(f"read {topic}"):
            places = []
            for number in consumer.list_topics(topic, timeout=CALL_S).topics[topic].partitions:
                low, high = _low_and_high(consumer, TopicPartition(topic, number))
                places.append(TopicPartition(topic, number, max(low, high - past_max)))
                self._ends[number] = high
            consumer.assign(places)

    def past(self) -> Records:
        """What stood there already."""
        records: Records = []
        open_, until_s = set(self._ends), time.monotonic() + CALL_S
        while open_:
            if time.monotonic() > until_s:
                raise TransportUnavailable("Expected to read the cancellations in time, but could not")
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                records.append(message)
            elif is_end(error):
                open_.discard(_place(message).partition)
            elif not is_silent(error):
                raise meaning(error, "read the cancellations")
        return records

    def new(self) -> Records:
        """What has come since."""
        with translated("read the cancellations"):
            return _sound(self._consumer.consume(TAIL_MAX, 0), "cancellations")

    def close(self) -> None:
        self._consumer.close()


def _sound(messages: Sequence[Message], what: str) -> Records:
    """The records among messages. Of errors, librdkafka mends most by itself; the others end the reading."""
    sound: Records = []
    for message in messages:
        error = message.error()
        if error is None:
            sound.append(message)
        elif not is_repaired_by_client(error):
            raise meaning(error, f"read for {what}")
    return sound


def _place(record: Message) -> TopicPartition:
    topic, partition, offset = record.topic(), record.partition(), record.offset()
    if topic is None or partition is None or offset is None:
        raise AssertionError("a record that was read has a place")
    return TopicPartition(topic, partition, offset)
