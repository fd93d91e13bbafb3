"""Record headers: CloudEvents in binary mode, and W3C trace context.

    form = HeaderForm(source="/kapelle/workflows", type="kapelle.RunStarted")
    form.make("orders/12", rfc3339(now_ms), trace)

Reading is tolerant where the standards are, and strict where they are:

- a record without `ce_specversion` is no CloudEvent: `read` tells what else there is;
- a CloudEvent that breaks its standard is refused with `BadHeader`, for it cannot be told apart from others;
- a malformed `traceparent` is ignored, as W3C asks for: a lost trace must not lose a record;
- headers with other names are ignored, and of several with one name the last counts.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from kapelle.schemas.errors import BadHeader

Headers = list[tuple[str, bytes]]

AVRO: Final = "application/vnd.apache.avro+binary"

_SPEC: Final = ("ce_specversion", b"1.0")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_IDS: Final = rb"-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
# Later versions may say more after what version 00 says; ff is no version.
_TRACE: Final = re.compile(rb"00" + _IDS + rb"|(?!00|ff)[0-9a-f]{2}" + _IDS + rb"(-[!-~]*)?")


class Event(msgspec.Struct, frozen=True, gc=False):
    """The attributes of a CloudEvent. `source` and `id` together name it: a second one with both is a repetition."""

    id: str
    source: str
    type: str
    time_ms: int | None = None
    subject: str | None = None


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What the headers of a record tell."""

    event: Event | None = None
    content_type: str | None = None
    trace: str | None = None


class HeaderForm:
    """The headers of one type of record from one source. What is always the same is made once."""

    __slots__ = ("_content_type", "_source", "_type")

    def __init__(self, source: str, type: str, content_type: str | None = AVRO) -> None:  # noqa: A002 - CloudEvents' own word
        for name, value in (("ce_source", source), ("ce_type", type)):
            if not value:
                raise BadHeader(name, expected="a text that is not empty", found=value)
        self._source = ("ce_source", source.encode())
        self._type = ("ce_type", type.encode())
        self._content_type = None if content_type is None else ("content-type", content_type.encode())

    def make(self, id: str, time: bytes, trace: str | None = None) -> Headers:  # noqa: A002 - CloudEvents' own word
        """The headers of one record. `time` comes from `rfc3339`, once per cycle."""
        made = [_SPEC, ("ce_id", id.encode()), self._source, self._type, ("ce_time", time)]
        if self._content_type is not None:
            made.append(self._content_type)
        if trace is not None:
            made.append(("traceparent", trace.encode()))
        return made


def rfc3339(at_ms: int) -> bytes:
    """A time in milliseconds since 1970, as text."""
    try:
        moment = _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise BadHeader("ce_time", expected="a time in the years 1 to 9999", found=str(at_ms)) from None
    return moment.isoformat(timespec="milliseconds")[:-6].encode() + b"Z"


def read(headers: Iterable[tuple[str, bytes | None]] | None) -> Envelope:
    """What the headers of a record tell."""
    values = {name: value for name, value in headers or () if value is not None}
    content_type = _text("content-type", values["content-type"]) if "content-type" in values else None
    return Envelope(_event(values) if "ce_specversion" in values else None, content_type, _trace(values))


def trace_of(headers: Iterable[tuple[str, bytes | None]] | None) -> str | None:
    """Only the trace context, which never fails."""
    return _trace({name: value for name, value in headers or () if value is not None})


def _event(values: dict[str, bytes]) -> Event:
    if not values["ce_specversion"].startswith(b"1."):
        raise BadHeader("ce_specversion", expected="1.0", found=values["ce_specversion"])
    time = values.get("ce_time")
    subject = values.get("ce_subject")
    return Event(
        id=_required(values, "ce_id"),
        source=_required(values, "ce_source"),
        type=_required(values, "ce_type"),
        time_ms=None if time is None else _time_ms(_text("ce_time", time)),
        subject=None if subject is None else _text("ce_subject", subject),
    )


def _required(values: dict[str, bytes], name: str) -> str:
    value = values.get(name, b"")
    if not value:
        raise BadHeader(name, expected="a text that is not empty", found=value)
    return _text(name, value)


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadHeader(name, expected="UTF-8", found=value) from None


def _time_ms(text: str) -> int:
    try:
        if _RFC3339.fullmatch(text):
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass  # the right shape of a moment that there is not, such as the 30th of February
    raise BadHeader("ce_time", expected="a time as RFC 3339 writes it", found=text)


def _trace(values: dict[str, bytes]) -> str | None:
    value = values.get("traceparent")
    return value.decode() if value is not None and _TRACE.fullmatch(value) else None
