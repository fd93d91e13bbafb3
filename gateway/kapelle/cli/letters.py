"""Reading the topic of dead letters: its last records, and single ones."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, Message, TopicPartition

from kapelle.broker import is_end
from kapelle.cli.errors import NoDeadLetters, NotThere, Unreachable
from kapelle.topology.kafka.answers import is_there, watermarks
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import meaning, translated

BATCH: Final = 500
SLICE_S: Final = 0.2
WIDEN: Final = 4

Found = tuple[int, bytes]  # offset, value


def last_records(settings: KafkaSettings, topic: str, count: int) -> list[Found]:
    """The last so many committed records of a topic of one partition, oldest first."""
    consumer = Consumer(settings.reader(f"{topic}.reader"))
    try:
        with translated(f"read {topic}"):
            known = consumer.list_topics(topic, settings.request_timeout_s).topics[topic]
            if not is_there(known):
                raise NoDeadLetters(topic)
            low, high = watermarks(consumer, (topic, 0), settings.request_timeout_s)
        # Transactions leave marks that take offsets too, so a look back may find too few and must go further.
        back = 2 * count
        while True:
            start = max(low, high - back)
            records = _from(consumer, TopicPartition(topic, 0, start), count, settings.request_timeout_s)
            if len(records) == count or start == low:
                return list(records)
            back *= WIDEN
    finally:
        consumer.close()


def records_at(settings: KafkaSettings, topic: str, offsets: Sequence[int]) -> list[Found]:
    """The records at these offsets of a topic of one partition."""
    consumer = Consumer(settings.reader(f"{topic}.reader"))
    try:
        with translated(f"read {topic}"):
            known = consumer.list_topics(topic, settings.request_timeout_s).topics[topic]
            if not is_there(known):
                raise NoDeadLetters(topic)
            low, high = watermarks(consumer, (topic, 0), settings.request_timeout_s)
        wanted = dict.fromkeys(offsets)
        records = [_at(consumer, TopicPartition(topic, 0, offset), (low, high), settings) for offset in wanted]
    finally:
        consumer.close()
    return records


def _at(consumer: Consumer, at: TopicPartition, bounds: tuple[int, int], settings: KafkaSettings) -> Found:
    """The record at an offset. A transaction's mark has one too, but is no record."""
    if bounds[0] <= at.offset < bounds[1]:
        consumer.assign([at])
        until = time.monotonic() + settings.request_timeout_s
        while time.monotonic() < until:
            message = consumer.poll(SLICE_S)
            if message is None:
                continue
            if _is_end(message, at.topic) or message.offset() != at.offset:
                break
            return at.offset, message.value() or b""
        else:
            raise Unreachable(
                f"Expected to read {at.topic}, but no record arrived for {settings.request_timeout_s:g} s"
            )
    raise NotThere(f"Expected a dead letter at offset {at.offset} of {at.topic}, but there is none")


def _from(consumer: Consumer, start: TopicPartition, count: int, timeout_s: float) -> deque[Found]:
    """The last of what stands from here to the end."""
    records = deque[Found](maxlen=count)
    consumer.assign([start])
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        for message in consumer.consume(BATCH, SLICE_S):
            if _is_end(message, start.topic):
                return records
            records.append((message.offset() or 0, message.value() or b""))
            until = time.monotonic() + timeout_s
    raise Unreachable(f"Expected to read {start.topic} to its end, but no record arrived for {timeout_s:g} s")


def _is_end(message: Message, topic: str) -> bool:
    error = message.error()
    if error is None:
        return False
    if is_end(error):
        return True
    raise meaning(error, f"read {topic}")
