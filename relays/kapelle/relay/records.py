"""Parts of a record as it came from Kafka."""

from confluent_kafka import Message

from kapelle.processors.messages import Coordinates


def place_of(message: Message) -> Coordinates:
    """The coordinates of the record."""
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
