"""Dead letters: records that could not be folded, with their coordinates, the stage and the reason of the failure."""

import msgspec

from kapelle.processors import messages
from kapelle.schemas.contracts import DeadLetter, Header, Stage
from kapelle.topology.log import Headers, Loss, Place, Record

NOWHERE = -1  # the offset of a command that was never written to its topic
REASON_CHARS_MAX = 4_000
HEADER_BYTES_MAX = 32 * 1024
LETTER_BYTES_MAX = 64 * 1024  # what a letter says besides the record's key and value


class Original(msgspec.Struct, frozen=True):
    """The position of a record, and everything that is needed to publish it again."""

    place: Place
    offset: int
    id: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @classmethod
    def of(cls, place: Place, record: Record) -> "Original":
        message_id = messages.Coordinates(*place, record.offset).id
        return cls(place, record.offset, message_id, record.key, record.value, record.headers or ())


def origin_of(message_id: str) -> str | None:
    """The record that a message came from, as operators name it (`kapelle.runs.commands-3@1234`); None for a timer."""
    coordinates = messages.coordinates_of(message_id)
    return None if coordinates is None else f"{coordinates.topic}-{coordinates.partition}@{coordinates.offset}"


def letter_bytes_max(record_bytes_max: int) -> int:
    """How large a letter about a record of the largest size can be."""
    return record_bytes_max + LETTER_BYTES_MAX


def loss_letter(processor: str, loss: Loss, now_ms: int) -> DeadLetter:
    """The letter about input that vanished before it was read. It holds no record: there is none any more."""
    return DeadLetter(
        processor=processor,
        stage=Stage.READ,
        reason=str(loss),
        error=loss.cause.name,
        topic=loss.place.topic,
        partition=loss.place.partition,
        offset=NOWHERE if loss.first is None else loss.first,
        end_offset=loss.end,
        at_ms=now_ms,
    )


def dead_letter(
    processor: str, at: Original, failure: tuple[Stage, BaseException], *, now_ms: int, record_bytes_max: int
) -> DeadLetter:
    """The letter for a record that failed at a stage."""
    stage, error = failure
    reason = str(error)[:REASON_CHARS_MAX].encode(errors="replace").decode()
    size = len(at.value or b"") + len(at.key or b"")
    if size > record_bytes_max:
        reason += f" (the record of {size} bytes is left at its coordinates)"
        at = msgspec.structs.replace(at, key=None, value=None)
    headers = tuple(Header(name=name, value=content or b"") for name, content in at.headers)
    if sum(len(h.to_avro()) for h in headers) > HEADER_BYTES_MAX:
        reason += " (the headers are left at its coordinates)"
        headers = ()
    return DeadLetter(
        processor=processor,
        stage=stage,
        reason=reason,
        error=type(error).__name__,
        topic=at.place.topic,
        partition=at.place.partition,
        offset=at.offset,
        key=at.key,
        value=at.value,
        headers=headers,
        at_ms=now_ms,
    )
