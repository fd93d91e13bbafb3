"""Parts of a record as it came from Kafka."""

import msgspec
from confluent_kafka import Message


class Coordinates(msgspec.Struct, frozen=True):
    """Where a record stands. No other record of its topic ever has the same."""

    topic: str
    partition: int
    offset: int

    @property
    def id(self) -> str:
        return f"{self.topic}-{self.partition}-{self.offset}"


def place_of(message: Message) -> Coordinates:
    """Where the record stands."""
    return Coordinates(message.topic() or "", message.partition() or 0, message.offset() or 0)


def key_of(message: Message) -> bytes | None:
    """The key of the record."""
    key = message.key()
    return key.encode() if isinstance(key, str) else key


def headers_of(message: Message) -> list[tuple[str, bytes]]:
    """The headers of the record, in their order."""
    return [(str(header[0]), _bytes(header[1])) for header in message.headers() or []]


def _bytes(content: str | bytes | None) -> bytes:
    return content.encode() if isinstance(content, str) else content or b""
