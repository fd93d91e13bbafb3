"""Dead letters of relays: about a record of any topic, as it came from Kafka."""

import time

from confluent_kafka import Message

from kapelle.relay.records import headers_of, key_of, place_of
from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.topology.deadletters import LETTER_BYTES_MAX, Original, dead_letter
from kapelle.topology.log import Place


def letter_about(
    message: Message, relay: str, failure: tuple[Stage, Exception], *, record_bytes_max: int
) -> DeadLetter:
    """The letter for a record that a relay could do nothing with. It is a record too, so it has a limit."""
    at = place_of(message)
    place = Place(at.topic, at.partition)
    return dead_letter(
        relay,
        Original(place, at.offset, at.id, key_of(message), message.value(), headers_of(message)),
        failure,
        now_ms=time.time_ns() // 1_000_000,
        record_bytes_max=record_bytes_max - LETTER_BYTES_MAX,
    )
