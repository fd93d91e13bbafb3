"""Dead letters of relays: about a record of any topic, as it came from Kafka."""

import time

from confluent_kafka import Message

from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.sources.mapping import Coordinates
from kapelle.topology.deadletters import LETTER_BYTES_MAX, dead_letter
from kapelle.topology.deadletters import Coordinates as Letter
from kapelle.topology.log import Place


def letter_about(
    message: Message, relay: str, failure: tuple[Stage, Exception], *, record_bytes_max: int
) -> DeadLetter:
    """The letter for a record that a relay could do nothing with. It is a record too, so it has a limit."""
    at = place_of(message)
    return dead_letter(
        relay,
        Letter(
            Place(at.topic, at.partition),
            at.offset,
            at.id,
            bytes_of(message.key()),
            message.value(),
            headers_of(message),
        ),
        failure,
        now_ms=time.time_ns() // 1_000_000,
        record_bytes_max=record_bytes_max - LETTER_BYTES_MAX,
    )


def place_of(message: Message) -> Coordinates:
    return Coordinates(message.topic() or "", message.partition() or 0, message.offset() or 0)


def headers_of(message: Message) -> list[tuple[str, bytes]]:
    return [(str(header[0]), bytes_of(header[1]) or b"") for header in message.headers() or []]


def bytes_of(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
