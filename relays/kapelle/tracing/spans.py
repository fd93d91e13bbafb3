"""Spans, independent of the packages of OpenTelemetry."""

from enum import StrEnum

import msgspec

from kapelle.topology.journal import Entry

Attributes = dict[str, str | int]


class Kind(StrEnum):
    """What part in a trace a span plays."""

    CONSUMER = "consumer"
    INTERNAL = "internal"


class Verdict(StrEnum):
    """How something ended, as OpenTelemetry tells it."""

    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


class Moment(msgspec.Struct, frozen=True):
    """Something that happened within a span."""

    name: str
    at_ms: int
    attributes: Attributes = {}


class Link(msgspec.Struct, frozen=True):
    """A span of another trace that had a part in this one."""

    trace_id: int
    span_id: int
    attributes: Attributes = {}


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work with its beginning and its end."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start_ms: int
    end_ms: int
    attributes: Attributes
    kind: Kind = Kind.INTERNAL
    is_parent_remote: bool = False
    moments: tuple[Moment, ...] = ()
    links: tuple[Link, ...] = ()
    verdict: Verdict = Verdict.UNSET
    reason: str = ""


class Past(msgspec.Struct, frozen=True, gc=False):
    """A record of the history, with the topic that it stands on and the trace that came with it."""

    entry: Entry
    topic: str
    trace: str | None = None

    @property
    def coordinates(self) -> Attributes:
        """Where the record stands, in the words of OpenTelemetry."""
        return {
            "messaging.system": "kafka",
            "messaging.destination.name": self.topic,
            "messaging.destination.partition.id": str(self.entry.partition),
            "messaging.kafka.offset": self.entry.offset,
        }
