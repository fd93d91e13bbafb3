"""Moments within sentences."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment_text(at_ms: int | None) -> str:
    """A moment as ISO 8601 in UTC."""
    if at_ms is None:
        return "an unknown time"
    return (_EPOCH + timedelta(milliseconds=at_ms)).strftime("%Y-%m-%dT%H:%M:%SZ")
