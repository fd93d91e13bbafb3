"""A zone as spans: stretches of time in which the clock keeps one distance from UTC.

    span     start …… end        in UTC
    clock    start + offset …… end + offset
    gap      start + offset is after `shown_ms`: the clock was put forward at `start`
    fold     start + offset is before `shown_ms`: the clock was put back at `start`, and shows some times again

Spans also end where a period ends, which is no jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from kapelle.processors.calendar.limits import DAY_MS
from kapelle.processors.sel.joda.zone import Zone, zone_of

PERIOD_MS: Final = 366 * DAY_MS
# How often a zone is looked at for jumps: the nearest two since 1970 are 6.9 days apart. A jump is at a whole second.
STEP_MS: Final = 3 * DAY_MS
SECOND_MS: Final = 1_000
# A jump this long before a period may have shown times that the period shows again. No jump is longer than a day.
LOOK_BACK_MS: Final = 2 * DAY_MS
PERIODS_CACHED: Final = 8_192


class Span(msgspec.Struct, frozen=True):
    """From `start_ms` to before `end_ms`; until then the clock had shown all times before `shown_ms`."""

    start_ms: int
    end_ms: int
    offset_ms: int
    shown_ms: int

    @property
    def clock_start_ms(self) -> int:
        """What the clock shows when the span begins."""
        return self.start_ms + self.offset_ms


def span_at(zone_id: str, at_ms: int) -> Span:
    """The span that an instant is in."""
    spans = _spans(zone_id, at_ms // PERIOD_MS)
    return next(span for span in spans if at_ms < span.end_ms)


@lru_cache(maxsize=PERIODS_CACHED)
def _spans(zone_id: str, period: int) -> tuple[Span, ...]:
    zone, start_ms, end_ms = zone_of(zone_id), period * PERIOD_MS, (period + 1) * PERIOD_MS
    before_ms = start_ms - LOOK_BACK_MS
    shown_ms, made = before_ms + zone.offset_ms(before_ms), []
    for from_ms, upto_ms in pairwise((before_ms, *_jumps(zone, before_ms, end_ms), end_ms)):
        offset_ms = zone.offset_ms(from_ms)
        if from_ms >= start_ms:
            made.append(Span(from_ms, upto_ms, offset_ms, shown_ms))
        elif upto_ms > start_ms:
            made.append(Span(start_ms, upto_ms, offset_ms, max(shown_ms, start_ms + offset_ms)))
        shown_ms = max(shown_ms, upto_ms + offset_ms)
    return tuple(made)


def _jumps(zone: Zone, from_ms: int, upto_ms: int) -> Iterator[int]:
    """The instants after the first and before the second at which the clock is put forward or back."""
    if zone.fixed_ms is not None:
        return
    low_ms, low = from_ms, zone.offset_ms(from_ms)
    while low_ms < upto_ms:
        high_ms = min(low_ms + STEP_MS, upto_ms)
        high = zone.offset_ms(high_ms)
        if high != low and (jump_ms := _jump(zone, low_ms, high_ms, high)) < upto_ms:
            yield jump_ms
        low_ms, low = high_ms, high


def _jump(zone: Zone, low_ms: int, high_ms: int, offset_ms: int) -> int:
    """The first instant after `low` with the offset of `high`."""
    while high_ms - low_ms > SECOND_MS:
        middle_ms = (low_ms + high_ms) // 2 // SECOND_MS * SECOND_MS
        if zone.offset_ms(middle_ms) == offset_ms:
            high_ms = middle_ms
        else:
            low_ms = middle_ms
    return high_ms
