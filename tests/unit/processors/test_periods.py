"""Times that people ask for: schedules, periods and previews."""

import pytest

from kapelle.processors.calendar import Schedule, ScheduleType
from kapelle.processors.moments import utc_text
from kapelle.processors.periods import BadTimes, on_the_clock, period_asked, previewed, schedule_asked

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("since", "until", "timezone", "first", "last"),
    [
        ("2026-01-01", "2026-01-31", "UTC", "2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z"),
        ("20260101", "20260131", "UTC", "2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z"),
        ("2026-03-29", "2026-03-29", BERLIN, "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"),
        ("2026-03-29T02:30", "2026-03-29T04:00", BERLIN, "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"),
        ("2026-01-01T00:00Z", "2026-01-01T02:00+01:00", BERLIN, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        (1_767_225_600_000, "1767225600000", BERLIN, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_a_period_is_read_on_the_clock_of_its_zone(
    since: int | str, until: int | str, timezone: str, first: str, last: str
) -> None:
    first_ms, last_ms = period_asked(since, until, timezone)

    assert (utc_text(first_ms), utc_text(last_ms)) == (first, last)


@pytest.mark.parametrize(
    ("since", "until", "timezone", "reason"),
    [
        ("", "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("2026", "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("2026-01-01", "2026-02-30", "UTC", "to: Expected an ISO date"),
        ("1969-12-31", "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("2026-01-01", "2200-01-01", "UTC", "to: Expected an ISO date"),
        (-1, "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("9" * 5_000, "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("0001-01-01T00:00+23:59", "2026-01-01", "UTC", "from: Expected an ISO date"),
        ("2026-01-02", "2026-01-01", "UTC", "Expected a period that begins before it ends"),
        ("2026-01-01", "2026-01-02", "Mars/Olympus", "timezone: Expected a time zone"),
    ],
)
def test_what_is_no_period_is_refused(since: int | str, until: int | str, timezone: str, reason: str) -> None:
    with pytest.raises(BadTimes, match=reason):
        period_asked(since, until, timezone)


def test_days_and_weeks_are_counted_on_the_clock_of_a_zone_that_changes_it() -> None:
    anchor_ms, _ = period_asked("2026-03-28T06:30", "2026-03-29", BERLIN)

    def asked(interval: str, timezone: str) -> Schedule:
        return on_the_clock(schedule_asked(None, interval, timezone, anchor_ms=anchor_ms))

    assert asked("1d", BERLIN) == Schedule(ScheduleType.CRON, "30 6 * * *", BERLIN)
    assert asked("7d", BERLIN) == Schedule(ScheduleType.CRON, "30 6 * * SAT", BERLIN)
    for interval, timezone in (("1d", "UTC"), ("7d", "+02:00"), ("12h", BERLIN), ("2d", BERLIN)):
        assert asked(interval, timezone).type is ScheduleType.INTERVAL


def test_a_preview_says_which_times_a_change_of_the_clock_concerns() -> None:
    at_half_past_two = schedule_asked("30 2 * * *", None, BERLIN)

    def notes(since: str) -> list[str | None]:
        first_ms, _ = period_asked(since, "2199-01-01", BERLIN)
        return [one.note for one in previewed(at_half_past_two, first_ms, 3)]

    assert notes("2026-03-28") == [None, "moved: the clock skips from 02:00 to 03:00", None]
    assert notes("2026-10-24") == [None, "the clock shows this time twice: only the first counts", None]
    assert notes("2026-06-01") == [None, None, None]


def test_a_preview_ends_with_the_last_time() -> None:
    first_ms, _ = period_asked("2199-12-31", "2199-12-31", "UTC")

    assert len(previewed(schedule_asked("@daily", None, None), first_ms, 10)) == 1
