"""Headers are CloudEvents in binary mode with W3C trace context, and reading is as tolerant as those standards are."""

import pytest

from kapelle.schemas import BadHeader
from kapelle.schemas.headers import Envelope, Event, HeaderForm, read, rfc3339, trace_of

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FORM = HeaderForm(source="/kapelle/runs", type="kapelle.RunStarted")


def test_headers_are_those_of_cloudevents_and_trace_context() -> None:
    assert FORM.make("orders/12", rfc3339(1_700_000_000_123), TRACE) == [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"orders/12"),
        ("ce_source", b"/kapelle/runs"),
        ("ce_type", b"kapelle.RunStarted"),
        ("ce_time", b"2023-11-14T22:13:20.123Z"),
        ("content-type", b"application/vnd.apache.avro+binary"),
        ("traceparent", TRACE.encode()),
    ]


def test_a_record_without_a_trace_has_no_header_for_it() -> None:
    assert "traceparent" not in dict(FORM.make("1", rfc3339(0)))


def test_headers_come_back_as_they_were() -> None:
    event = Event(id="für/12", source="/kapelle/runs", type="kapelle.RunStarted", time_ms=1_700_000_000_123)

    assert read(list(FORM.make("für/12", rfc3339(1_700_000_000_123), TRACE))) == Envelope(
        event, "application/vnd.apache.avro+binary", TRACE
    )


@pytest.mark.parametrize("headers", [None, [], [("other", b"\xff"), ("ce_id", b"1")], [("ce_specversion", None)]])
def test_a_record_of_others_has_no_event(headers: list[tuple[str, bytes | None]] | None) -> None:
    assert read(headers) == Envelope()


def event(**changed: bytes | None) -> list[tuple[str, bytes | None]]:
    plain: dict[str, bytes | None] = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"s", "ce_type": b"t"}
    return list((plain | changed).items())


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"ce_specversion": b"2.0"}, "ce_specversion"),
        ({"ce_id": b""}, "ce_id"),
        ({"ce_id": None}, "ce_id"),
        ({"ce_source": b"\xff"}, "ce_source"),
        ({"ce_type": None}, "ce_type"),
        ({"ce_time": b"yesterday"}, "ce_time"),
        ({"ce_time": b"2023-02-30T00:00:00Z"}, "ce_time"),
        ({"ce_time": b"20231114T221320Z"}, "ce_time"),
        ({"ce_subject": b"\xff"}, "ce_subject"),
        ({"content-type": b"\xff"}, "content-type"),
    ],
)
def test_an_event_that_breaks_the_standard_is_refused(changed: dict[str, bytes | None], name: str) -> None:
    with pytest.raises(BadHeader) as refused:
        read(event(**changed))

    assert refused.value.name == name


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        (b"1970-01-01T00:00:00Z", 0),
        (b"1970-01-01t00:00:00.5z", 500),
        (b"1970-01-01 01:00:00+01:00", 0),
        (b"1970-01-01T00:00:00.123456789Z", 123),
        (b"1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_times_are_read_in_every_form_of_rfc_3339(text: bytes, at_ms: int) -> None:
    found = read(event(ce_time=text)).event

    assert found is not None
    assert found.time_ms == at_ms


@pytest.mark.parametrize("at_ms", [0, -1, 1_700_000_000_123, -62_135_596_800_000, 253_402_300_799_999])
def test_times_come_back_as_they_were(at_ms: int) -> None:
    found = read(event(ce_time=rfc3339(at_ms))).event

    assert found is not None
    assert found.time_ms == at_ms


def test_a_time_that_the_calendar_lacks_is_refused() -> None:
    with pytest.raises(BadHeader, match="years 1 to 9999"):
        rfc3339(2**62)


@pytest.mark.parametrize(
    "trace",
    [
        "",
        "nonsense",
        TRACE.upper(),
        TRACE[:-1],
        TRACE + "-00",
        "ff" + TRACE[2:],
        "00-" + "0" * 32 + TRACE[35:],
        TRACE[:36] + "0" * 16 + "-01",
        "01" + TRACE[2:] + "-\xff",
    ],
)
def test_a_malformed_trace_is_ignored(trace: str) -> None:
    assert trace_of([("traceparent", trace.encode("latin-1"))]) is None


@pytest.mark.parametrize("trace", [TRACE, "01" + TRACE[2:], "cc" + TRACE[2:] + "-more"])
def test_a_trace_of_this_or_a_later_version_is_kept(trace: str) -> None:
    assert trace_of([("traceparent", trace.encode())]) == trace


def test_of_several_headers_of_one_name_the_last_counts() -> None:
    assert trace_of([("traceparent", b"nonsense"), ("traceparent", TRACE.encode())]) == TRACE


def test_a_form_without_source_or_type_is_refused() -> None:
    for source, kind in (("", "t"), ("s", "")):
        with pytest.raises(BadHeader, match="not empty"):
            HeaderForm(source, kind)
