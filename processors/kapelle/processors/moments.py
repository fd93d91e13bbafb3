"""Which times there are, and how people read them."""

from datetime import UTC, datetime, timedelta
from typing import Final

TIME_MS_MIN: Final = -62_135_596_800_000  # the year 1
TIME_MS_MAX: Final = 253_402_300_799_999  # the year 9999
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def utc_text(at_ms: int) -> str:
    """A time to the second, such as `2026-03-01T09:30:00Z`. Beyond the years that have dates, the nearest one."""
    within = min(max(at_ms, TIME_MS_MIN), TIME_MS_MAX)
    return (_EPOCH + timedelta(seconds=within // 1_000)).strftime("%Y-%m-%dT%H:%M:%SZ")
