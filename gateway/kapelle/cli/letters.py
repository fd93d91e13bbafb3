"""Reading dead letters: the last records of their topic, and each as something that JSON can hold."""

import base64
import time
from collections import deque
from typing import Any, Final

import msgspec
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kapelle.cli.errors import NoDeadLetters, Unreachable
from kapelle.schemas import Codec, SchemaError
from kapelle.schemas.contracts import DeadLetter
from kapelle.schemas.headers import rfc3339
from kapelle.topology.deadletters import NOWHERE
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.reader import MISSING
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
            if known.error is not None and known.error.code() in MISSING:
                raise NoDeadLetters(topic)
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), settings.request_timeout_s)
        # Transactions leave marks that take offsets too, so a look back may find too few and must go further.
        back = 2 * count
        while True:
            start = max(low, high - back)
            found = _from(consumer, TopicPartition(topic, 0, start), count, settings.request_timeout_s)
            if len(found) == count or start == low:
                return list(found)
            back *= WIDEN
    finally:
        consumer.close()


def _from(consumer: Consumer, start: TopicPartition, count: int, timeout_s: float) -> deque[Found]:
    """The last of what stands from here to the end."""
    found = deque[Found](maxlen=count)
    consumer.assign([start])
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        for message in consumer.consume(BATCH, SLICE_S):
            if _is_end(message, start.topic):
                return found
            found.append((message.offset() or 0, message.value() or b""))
            until = time.monotonic() + timeout_s
    raise Unreachable(f"Expected to read {start.topic} to its end, but nothing came for {timeout_s:g} s")


def _is_end(message: Message, topic: str) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    raise meaning(error, f"read {topic}")


def shown(codec: Codec, offset: int, data: bytes) -> dict[str, Any]:
    """A letter for JSON. One that cannot be read is shown too: nothing may hide here."""
    try:
        letter = codec.decode(data)
    except SchemaError as error:
        return {"offset": offset, "unreadable": str(error), "bytes": _bytes(data)}
    if not isinstance(letter, DeadLetter):
        return {"offset": offset, "unreadable": f"Expected a DeadLetter, but found {type(letter).__name__}"}
    return {
        "offset": offset,
        "at": rfc3339(letter.at_ms).decode(),
        "processor": letter.processor,
        "stage": letter.stage.value,
        "error": letter.error,
        "reason": letter.reason,
        "record": {
            "topic": letter.topic,
            "partition": letter.partition,
            "offset": None if letter.offset == NOWHERE else letter.offset,
        },
        "key": _bytes(letter.key),
        "value": _value(codec, letter.value),
        "headers": [{"name": header.name, "value": _bytes(header.value)} for header in letter.headers],
    }


def _value(codec: Codec, data: bytes | None) -> dict[str, Any] | None:
    """The record as its contract, if it can be read as one; that is so when a handler failed on a good record."""
    if data is None:
        return None
    try:
        value = codec.decode(data)
    except SchemaError:
        return _bytes(data)
    return {"contract": type(value).__name__, "fields": msgspec.to_builtins(value)}


def _bytes(data: bytes | None) -> dict[str, Any] | None:
    """Bytes as text where they are text, else in base 64."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    return {"text": text} if text.isprintable() else {"base64": base64.b64encode(data).decode()}
