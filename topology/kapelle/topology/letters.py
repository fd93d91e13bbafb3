"""Dead letters: each as something that JSON can hold, and the record that it was about, to be published again."""

import base64
from typing import Final, NotRequired, Required, TypedDict

import msgspec

from kapelle.schemas import Codec, SchemaError
from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.schemas.headers import rfc3339
from kapelle.topology.deadletters import NOWHERE
from kapelle.topology.errors import TopologyError

COUNT_HEADER: Final = "kapelle-redriven"
SINKS: Final = "sinks."  # what relays to sinks are called, each followed by the name of the sink
SINK_HINT: Final = "publishing its record again would show it to all readers of its topic"
LEFT_OUT: Final = "left at its coordinates"


class Content(TypedDict, total=False):
    """Bytes as JSON has them: the fields of a contract, text, or base 64."""

    contract: str
    fields: object
    text: str
    base64: str


class ShownRecord(TypedDict):
    """The coordinates of the record of a letter. A letter about a loss has the end of the lost offsets, too."""

    topic: str
    partition: int
    offset: int | None
    end_offset: NotRequired[int]


class ShownHeader(TypedDict):
    """A header of a record."""

    name: str
    value: Content | None


class Shown(TypedDict, total=False):
    """A letter as JSON has it. One that cannot be read has the reason in place of the other fields."""

    offset: Required[int]
    unreadable: str
    bytes: Content | None
    at: str
    processor: str
    stage: str
    error: str
    reason: str
    record: ShownRecord
    key: Content | None
    value: Content | None
    headers: list[ShownHeader]


class NotRedrivable(TopologyError):
    """A letter whose record cannot be published again. The message says why."""


class Redrive(msgspec.Struct, frozen=True):
    """A record to be published again. `count` is how often it will have been."""

    letter: int
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    count: int


def redrive_of(codec: Codec, offset: int, data: bytes) -> Redrive:
    """The record of a letter. One that the letter does not hold cannot be published again: `NotRedrivable`."""
    try:
        letter = codec.decode(data)
    except SchemaError as error:
        raise NotRedrivable(f"Expected letter {offset} to be a DeadLetter, but it cannot be read: {error}") from error
    if not isinstance(letter, DeadLetter):
        raise NotRedrivable(f"Expected letter {offset} to be a DeadLetter, but found {type(letter).__name__}")
    if letter.stage is Stage.READ:
        raise NotRedrivable(f"Expected letter {offset} to hold a record, but it reports lost records: {letter.reason}")
    if LEFT_OUT in letter.reason:
        where = f"{letter.topic} partition {letter.partition} offset {letter.offset}"
        raise NotRedrivable(f"Expected letter {offset} to hold its record, but that was too large: it is at {where}")
    if letter.processor.startswith(SINKS):
        # Its topic is a public one: all others who read it would be told twice.
        raise NotRedrivable(
            f"Expected letter {offset} to be of a processor, but it is of {letter.processor}: {SINK_HINT}"
        )
    if letter.key is None and letter.value is None:
        raise NotRedrivable(f"Expected letter {offset} to hold a record, but it holds none: {letter.reason}")
    before = [header.value for header in letter.headers if header.name == COUNT_HEADER]
    count = 1 + max((_number(text) for text in before), default=0)
    headers = [(header.name, header.value) for header in letter.headers if header.name != COUNT_HEADER]
    headers.append((COUNT_HEADER, str(count).encode()))
    return Redrive(offset, letter.topic, letter.partition, letter.key, letter.value, tuple(headers), count)


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 10 else 0


def shown(codec: Codec, offset: int, data: bytes) -> Shown:
    """A letter for JSON. One that cannot be read is shown too: nothing may hide here."""
    try:
        letter = codec.decode(data)
    except SchemaError as error:
        return {"offset": offset, "unreadable": str(error), "bytes": _bytes(data)}
    if not isinstance(letter, DeadLetter):
        return {"offset": offset, "unreadable": f"Expected a DeadLetter, but found {type(letter).__name__}"}
    record: ShownRecord = {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": None if letter.offset == NOWHERE else letter.offset,
    }
    if letter.end_offset is not None:
        record["end_offset"] = letter.end_offset
    return {
        "offset": offset,
        "at": rfc3339(letter.at_ms).decode(),
        "processor": letter.processor,
        "stage": letter.stage.value,
        "error": letter.error,
        "reason": letter.reason,
        "record": record,
        "key": _bytes(letter.key),
        "value": _value(codec, letter.value),
        "headers": [{"name": header.name, "value": _bytes(header.value)} for header in letter.headers],
    }


def _value(codec: Codec, data: bytes | None) -> Content | None:
    """The record as its contract, if it can be read as one; that is so when a handler failed on a good record."""
    if data is None:
        return None
    try:
        value = codec.decode(data)
    except SchemaError:
        return _bytes(data)
    return {"contract": type(value).__name__, "fields": msgspec.to_builtins(value)}


def _bytes(data: bytes | None) -> Content | None:
    """Bytes as text where they are text, else in base 64."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    return {"text": text} if text.isprintable() else {"base64": base64.b64encode(data).decode()}
