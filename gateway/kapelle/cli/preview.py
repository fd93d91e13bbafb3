"""The next times of a schedule, computed here and not by a server."""

import time
from typing import Final

import msgspec

from kapelle.cli.errors import BadParam
from kapelle.processors.periods import (
    ZONE_DEFAULT,
    BadTimes,
    Previewed,
    checked_zone,
    moment_ms,
    previewed,
    schedule_asked,
)
from kapelle.processors.sel.joda.zone import zone_of

# The names that the options have in messages about times.
OPTIONS: Final = {"cron": "CRON", "interval": "--every", "timezone": "--tz", "from": "--from"}


class Preview(msgspec.Struct, frozen=True):
    """The next times of a schedule, and its zone."""

    timezone: str
    times: list[Previewed]


def preview_of(cron: str | None, every: str | None, zone: str | None, *, since: str | None, count: int) -> Preview:
    """The next times from a moment on. Raises `BadParam` with the option that is wrong."""
    if (cron is None) == (every is None):
        raise BadParam(f"Expected CRON or --every, but found {'none' if cron is None else 'both'}")
    timezone = zone or ZONE_DEFAULT
    try:
        clock = zone_of(checked_zone(timezone))
        from_ms = time.time_ns() // 1_000_000 if since is None else moment_ms(since, clock, "from")
        schedule = schedule_asked(cron, every, timezone, anchor_ms=None if since is None else from_ms)
    except BadTimes as error:
        raise BadParam("\n  ".join(_with_option(text) for text in error.errors)) from None
    return Preview(timezone, previewed(schedule, from_ms, count))


def _with_option(text: str) -> str:
    """A message that begins with the name of a field, with that of the option instead."""
    field, colon, rest = text.partition(": ")
    return f"{OPTIONS[field]}: {rest}" if colon and field in OPTIONS else text
