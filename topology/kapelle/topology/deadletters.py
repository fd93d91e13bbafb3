"""Records put aside: what they were, where they stood, at which stage they failed and why."""

import re

import msgspec

from kapelle.schemas.contracts import DeadLetter, Header, Stage
from kapelle.topology.log import Headers, Loss, Place, Record

TIMER = "-timer-"  # in the ids of timers, and of all that comes of them
NOWHERE = -1  # the offset of a command that was never written to its topic
REASON_CHARS_MAX = 4_000
HEADER_BYTES_MAX = 32 * 1024
LETTER_BYTES_MAX = 64 * 1024  # what a letter says besides the record's key and value

# The id of a record, or of what came of it in its cascade.
_ID = re.compile(r"(?:[^/]+/)?(?P<topic>[^/]+)-(?P<partition>[0-9]+)-(?P<offset>[0-9]+)(?:#[0-9]+)*")


class Coordinates(msgspec.Struct, frozen=True):
    """Where a record stood, and all that is needed to publish it again."""

    place: Place
    offset: int
    id: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @classmethod
    def of(cls, place: Place, record: Record) -> "Coordinates":
        return cls(place, record.offset, f"{place}-{record.offset}", record.key, record.value, record.headers or ())


def origin_of(message_id: str) -> str | None:
    """The record that a message came from, as operators name it (`kapelle.runs.commands-3@1234`); None for a timer."""
    found = None if TIMER in message_id else _ID.fullmatch(message_id)
    return None if found is None else f"{found['topic']}-{found['partition']}@{found['offset']}"


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
    processor: str, at: Coordinates, failure: tuple[Stage, BaseException], *, now_ms: int, record_bytes_max: int
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
