"""Spans as OpenTelemetry's packages write them, and the addresses that they are sent to."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from kapelle.tracing.errors import BadEndpoint
from kapelle.tracing.exporter import Exporter, url_of
from kapelle.tracing.spans import Kind, Link, Moment, Span, Verdict

SPAN = Span(
    name="step load",
    kind=Kind.CONSUMER,
    trace_id=0x4BF92F3577B34DA6A3CE929D0E0E4736,
    span_id=0x00F067AA0BA902B7,
    parent_id=0xB7AD6B7169203331,
    is_parent_remote=True,
    start_ms=1_794_823_200_000,
    end_ms=1_794_823_205_250,
    attributes={"kapelle.step": "load", "kapelle.attempt": 2},
    moments=(Moment("RUNNING", 1_794_823_201_000),),
    links=(Link(7, 8, {"kapelle.signal": "orders"}),),
    verdict=Verdict.ERROR,
    reason="no such table",
)


def test_a_span_is_written_as_it_is() -> None:
    exporter = Exporter("http://127.0.0.1:4318", "shop")

    request = encode_spans([exporter.readable(SPAN)])

    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    (span,) = scope.spans
    assert {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"] == "shop"
    assert scope.scope.name == "kapelle"
    assert span.trace_id.hex() == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (span.span_id.hex(), span.parent_span_id.hex()) == ("00f067aa0ba902b7", "b7ad6b7169203331")
    assert (span.name, span.SpanKind.Name(span.kind)) == ("step load", "SPAN_KIND_CONSUMER")
    assert span.start_time_unix_nano == 1_794_823_200_000_000_000
    assert span.end_time_unix_nano == 1_794_823_205_250_000_000
    assert {one.key: one.value.string_value or one.value.int_value for one in span.attributes} == {
        "kapelle.step": "load",
        "kapelle.attempt": 2,
        "kapelle.reason": "no such table",
    }
    assert [(one.name, one.time_unix_nano) for one in span.events] == [("RUNNING", 1_794_823_201_000_000_000)]
    assert [(int.from_bytes(one.trace_id), int.from_bytes(one.span_id)) for one in span.links] == [(7, 8)]
    assert (span.status.code, span.status.message) == (2, "no such table")


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://collector.example/otlp", "https://collector.example/otlp/v1/traces"),
        ("https://collector.example/otlp/v1/traces", "https://collector.example/otlp/v1/traces"),
    ],
)
def test_the_path_for_traces_is_added_unless_it_is_there(endpoint: str, url: str) -> None:
    assert url_of(endpoint) == url


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://[::1"])
def test_what_is_no_address_is_refused_with_one_that_is(endpoint: str) -> None:
    with pytest.raises(BadEndpoint, match=r"such as http://127\.0\.0\.1:4318, but found"):
        url_of(endpoint)
