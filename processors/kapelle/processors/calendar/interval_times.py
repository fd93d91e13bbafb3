"""The instants of an interval: they follow elapsed time, so no zone concerns them."""

from __future__ import annotations

from kapelle.processors.calendar.limits import FIRST_MS, LAST_MS


class IntervalTimes:
    """The instants at anchor + k * interval, for every integer k."""

    def __init__(self, interval_ms: int, anchor_ms: int) -> None:
        if interval_ms <= 0:
            raise ValueError(f"Expected an interval of at least one millisecond, but found {interval_ms}")
        self._interval_ms, self._anchor_ms = interval_ms, anchor_ms

    def next_after(self, at_ms: int) -> int | None:
        """The first tick after that instant, or None if there is none."""
        tick_ms = self._at_or_before(max(at_ms, FIRST_MS - 1)) + self._interval_ms
        return tick_ms if tick_ms <= LAST_MS else None

    def last_upto(self, at_ms: int) -> int | None:
        """The last tick that is not after that instant, or None if there is none."""
        tick_ms = self._at_or_before(min(at_ms, LAST_MS))
        return tick_ms if tick_ms >= FIRST_MS else None

    def count(self, after_ms: int, upto_ms: int) -> int:
        """How many ticks are after the first instant and not after the second."""
        after_ms, upto_ms = max(after_ms, FIRST_MS - 1), min(upto_ms, LAST_MS)
        if upto_ms <= after_ms:
            return 0
        return (self._at_or_before(upto_ms) - self._at_or_before(after_ms)) // self._interval_ms

    def _at_or_before(self, at_ms: int) -> int:
        return at_ms - (at_ms - self._anchor_ms) % self._interval_ms
