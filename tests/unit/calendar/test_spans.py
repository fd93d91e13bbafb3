"""The spans of a zone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kapelle.processors.calendar import Schedule, ScheduleType, spans, times_of
from kapelle.processors.calendar.spans import Span, span_at

HOUR_MS = 3_600_000
GAP_MS = 1_774_746_000_000  # 2026-03-29T01:00Z, in Berlin
FOLD_MS = 1_792_890_000_000  # 2026-10-25T01:00Z


@pytest.fixture
def short_periods(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Periods of 20 minutes, so that some begin within a fold."""
    monkeypatch.setattr(spans, "PERIOD_MS", HOUR_MS // 3)
    spans._spans.cache_clear()
    yield
    spans._spans.cache_clear()


def test_a_span_begins_where_the_clock_is_put_forward() -> None:
    assert span_at("Europe/Berlin", GAP_MS - 1).end_ms == GAP_MS
    assert span_at("Europe/Berlin", GAP_MS) == Span(GAP_MS, FOLD_MS, 2 * HOUR_MS, GAP_MS + HOUR_MS)


def test_a_span_after_a_fold_knows_what_the_clock_has_shown() -> None:
    span = span_at("Europe/Berlin", FOLD_MS)

    assert (span.start_ms, span.offset_ms, span.shown_ms) == (FOLD_MS, HOUR_MS, FOLD_MS + 2 * HOUR_MS)


def test_a_zone_with_a_fixed_offset_has_no_jumps() -> None:
    span = span_at("+05:45", GAP_MS)

    assert (span.offset_ms, span.shown_ms) == (20_700_000, span.clock_start_ms)


@pytest.mark.usefixtures("short_periods")
def test_it_makes_no_difference_where_periods_end() -> None:
    times = times_of(Schedule(ScheduleType.CRON, "*/10 2 * * *", "Europe/Berlin"))

    assert times.next_after(FOLD_MS - 1) == FOLD_MS + 24 * HOUR_MS
    assert times.last_upto(FOLD_MS + HOUR_MS) == FOLD_MS - HOUR_MS // 6
    assert times.count(FOLD_MS - HOUR_MS - 1, FOLD_MS + 2 * HOUR_MS) == 6
    assert times.count(GAP_MS - HOUR_MS, GAP_MS + HOUR_MS) == 1
