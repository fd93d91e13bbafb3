"""Sends spans to a collector as OpenTelemetry's own packages do: OTLP, in protobuf, over HTTP."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from kapelle.tracing.errors import BadEndpoint, NotExported
from kapelle.tracing.spans import Kind, Span, Verdict

PATH: Final = "/v1/traces"
SPANS_MAX: Final = 512  # in one request, as many as the packages themselves send
TIMEOUT_S: Final = 5.0
NS_PER_MS: Final = 1_000_000
REASON_CHARS_MAX: Final = 4_000

SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
KINDS: Final[Mapping[Kind, SpanKind]] = {Kind.CONSUMER: SpanKind.CONSUMER, Kind.INTERNAL: SpanKind.INTERNAL}
CODES: Final[Mapping[Verdict, StatusCode]] = {
    Verdict.UNSET: StatusCode.UNSET,
    Verdict.OK: StatusCode.OK,
    Verdict.ERROR: StatusCode.ERROR,
}


class Exporter:
    """The package's exporter, with its settings of the environment (`OTEL_EXPORTER_OTLP_HEADERS` and the like)."""

    def __init__(self, endpoint: str, service: str) -> None:
        """Raises `BadEndpoint`."""
        self.url = url_of(endpoint)
        self._exporter = OTLPSpanExporter(endpoint=self.url, timeout=TIMEOUT_S)
        self._resource = Resource({"service.name": service, "service.version": version("kapelle")})
        self._scope = InstrumentationScope("kapelle", version("kapelle"))

    def export(self, spans: Sequence[Span]) -> None:
        """Send spans, and wait until all are taken. Raises `NotExported`."""
        for part in _parts(spans):
            result = self._exporter.export([self.readable(span) for span in part])
            if result is not SpanExportResult.SUCCESS:
                raise NotExported(f"Expected {self.url} to take {len(part)} spans, but it did not")

    def readable(self, span: Span) -> ReadableSpan:
        """A span as the packages know it."""
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id, span.is_parent_remote)
        # Only of an error the packages take a reason.
        reason = span.reason[:REASON_CHARS_MAX] if span.verdict is Verdict.ERROR else None
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes | ({"kapelle.reason": span.reason[:REASON_CHARS_MAX]} if span.reason else {}),
            events=[Event(moment.name, moment.attributes, moment.at_ms * NS_PER_MS) for moment in span.moments],
            links=[Link(_context(link.trace_id, link.span_id), link.attributes) for link in span.links],
            kind=KINDS[span.kind],
            status=Status(CODES[span.verdict], reason),
            start_time=span.start_ms * NS_PER_MS,
            end_time=span.end_ms * NS_PER_MS,
            instrumentation_scope=self._scope,
        )

    def close(self) -> None:
        """Let go of connections."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # of the package


def url_of(endpoint: str) -> str:
    """Where spans go at a collector. Raises `BadEndpoint`."""
    parts = None
    with contextlib.suppress(ValueError):
        parts = urlsplit(endpoint)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadEndpoint(endpoint)
    return endpoint if parts.path.endswith(PATH) else endpoint.rstrip("/") + PATH


def _context(trace_id: int, span_id: int, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, SAMPLED)


def _parts(spans: Sequence[Span]) -> Iterator[Sequence[Span]]:
    return (spans[at : at + SPANS_MAX] for at in range(0, len(spans), SPANS_MAX))
