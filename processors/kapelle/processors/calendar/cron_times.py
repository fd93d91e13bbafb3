"""The instants of a cron text in a zone: the times of its clock, laid on the spans of the zone.

A time that the clock skips fires where the gap ends, once, however many times the gap holds. A time that the clock
shows twice fires when it is first shown. So a daily schedule fires once each day. A cron text with a time in every
hour follows real time instead: what is skipped is skipped, and what is shown twice fires twice.

For each span that gives the ticks:

    on the clock of the span    times after `beyond_ms`, before the end of the span
    at the start of the span    one, if the gap before it holds a time
"""

from __future__ import annotations

from typing import Final

from kapelle.processors.calendar.clock import Clock
from kapelle.processors.calendar.cron import Cron
from kapelle.processors.calendar.limits import DAY_MS, FIRST_MS, LAST_MS
from kapelle.processors.calendar.spans import Span, span_at

# No clock is put forward or back by more than a day, and none is more than a day from UTC.
JUMP_MS_MAX: Final = 2 * DAY_MS


class CronTimes:
    """The times of a cron text in a zone."""

    def __init__(self, cron: Cron, timezone: str) -> None:
        self._clock, self._zone, self._is_hourly = Clock(cron), timezone, cron.is_hourly

    def next_after(self, at_ms: int) -> int | None:
        """The first tick after that instant, or None if there is none."""
        at_ms = max(at_ms, FIRST_MS)
        if at_ms >= LAST_MS:
            return None
        span, is_first = span_at(self._zone, at_ms), True
        while True:
            if span.start_ms > at_ms and self._fires_at_start(span):
                return span.start_ms
            time = self._clock.after(max(self._beyond(span), at_ms + span.offset_ms))
            if time is not None and time < span.end_ms + span.offset_ms:
                return time - span.offset_ms
            # What the clock showed of the first span before `at_ms` may be shown again by the next.
            if time is None and not is_first:
                return None
            skipped_to = span.end_ms if is_first or time is None else time - JUMP_MS_MAX
            span, is_first = span_at(self._zone, max(span.end_ms, skipped_to)), False

    def last_upto(self, at_ms: int) -> int | None:
        """The last tick that is not after that instant, or None if there is none."""
        at_ms = min(at_ms, LAST_MS)
        if at_ms < FIRST_MS:
            return None
        span, is_first = span_at(self._zone, at_ms), True
        while True:
            time = self._clock.upto(min(at_ms, span.end_ms - 1) + span.offset_ms)
            if time is not None and time > self._beyond(span):
                return time - span.offset_ms
            if self._fires_at_start(span):
                return span.start_ms
            # Of the first span, what the clock will show after `at_ms` may have been shown before by the one before it.
            if time is None and not is_first:
                return None
            skipped_to = span.start_ms if is_first or time is None else time + JUMP_MS_MAX
            span, is_first = span_at(self._zone, min(span.start_ms - 1, skipped_to)), False

    def count(self, after_ms: int, upto_ms: int) -> int:
        """How many ticks are after the first instant and not after the second."""
        after_ms, upto_ms = max(after_ms, FIRST_MS), min(upto_ms, LAST_MS)
        count, at_ms = 0, after_ms
        while at_ms <= upto_ms:
            span = span_at(self._zone, at_ms)
            offset_ms = span.offset_ms
            first_ms, last_ms = max(self._beyond(span), after_ms + offset_ms), min(upto_ms, span.end_ms - 1) + offset_ms
            count += self._clock.count(first_ms, last_ms)
            count += after_ms < span.start_ms <= upto_ms and self._fires_at_start(span)
            at_ms = span.end_ms
        return count

    def _beyond(self, span: Span) -> int:
        """The clock time after which the times of a span are its ticks."""
        if self._is_hourly:
            return span.clock_start_ms - 1
        return max(span.clock_start_ms, span.shown_ms - 1)

    def _fires_at_start(self, span: Span) -> bool:
        """Whether a tick that is not hourly is at the start of a span: of the gap before it, or of that very time."""
        if self._is_hourly or span.shown_ms > span.clock_start_ms:
            return False
        time = self._clock.after(span.shown_ms - 1)
        return time is not None and time <= span.clock_start_ms
