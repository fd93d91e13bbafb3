"""The ticks of schedules, rule by rule."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from kapelle.processors.calendar import Schedule, ScheduleType, Times, times_of

DAY_MS = 86_400_000
YEAR_2200_MS = 7_258_118_400_000


def ms(text: str) -> int:
    """An instant; without an offset in UTC."""
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def cron(text: str, zone: str = "UTC", start: str | None = None) -> Times:
    return times_of(Schedule(ScheduleType.CRON, text, zone, start_ms=None if start is None else ms(start)))


def ticks(times: Times, after: str, upto: str) -> list[str]:
    """The ticks after one instant and up to another, in UTC."""
    found, at_ms = [], ms(after)
    while (tick := times.next_after(at_ms)) is not None and tick <= ms(upto):
        found.append((datetime(1970, 1, 1) + timedelta(milliseconds=tick)).isoformat(timespec="minutes"))
        at_ms = tick
    assert times.count(ms(after), ms(upto)) == len(found)
    return found


def test_a_tick_is_not_after_itself_and_is_the_last_at_its_own_time() -> None:
    daily = cron("0 5 * * *")

    assert daily.next_after(ms("2026-01-01T05:00")) == ms("2026-01-02T05:00")
    assert daily.next_after(ms("2026-01-01T05:00") - 1) == ms("2026-01-01T05:00")
    assert daily.last_upto(ms("2026-01-01T05:00")) == ms("2026-01-01T05:00")
    assert daily.last_upto(ms("2026-01-01T05:00") - 1) == ms("2025-12-31T05:00")


def test_a_time_that_the_clock_skips_fires_at_the_end_of_the_gap() -> None:
    assert ticks(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T12:00", "2026-03-30T12:00") == [
        "2026-03-29T01:00",  # 03:00 in Berlin
        "2026-03-30T00:30",
    ]


def test_all_times_of_a_gap_fire_once_together_with_the_time_at_its_end() -> None:
    assert ticks(cron("*/20 2,3 * * *", "Europe/Berlin"), "2026-03-29T00:00", "2026-03-29T12:00") == [
        "2026-03-29T01:00",
        "2026-03-29T01:20",
        "2026-03-29T01:40",
    ]


def test_a_time_that_the_clock_shows_twice_fires_at_the_first() -> None:
    assert ticks(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00", "2026-10-26T12:00") == [
        "2026-10-25T00:30",
        "2026-10-26T01:30",
    ]


def test_an_hourly_schedule_follows_real_time_through_a_gap() -> None:
    assert ticks(cron("30 * * * *", "Europe/Berlin"), "2026-03-29T00:00", "2026-03-29T02:30") == [
        "2026-03-29T00:30",  # 01:30
        "2026-03-29T01:30",  # 03:30
        "2026-03-29T02:30",
    ]


def test_an_hourly_schedule_follows_real_time_through_a_fold() -> None:
    assert ticks(cron("30 * * * *", "Europe/Berlin"), "2026-10-25T00:00", "2026-10-25T02:30") == [
        "2026-10-25T00:30",  # 02:30
        "2026-10-25T01:30",  # 02:30 again
        "2026-10-25T02:30",
    ]


def test_a_gap_of_half_an_hour_is_closed_at_its_end() -> None:
    assert ticks(cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-02T20:00", "2026-10-04T20:00") == [
        "2026-10-03T15:30",  # 02:30
        "2026-10-04T15:15",
    ]


@pytest.mark.parametrize(
    ("zone", "day", "tick"),
    [
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00"),
        ("Asia/Beirut", "2026-03-29", "2026-03-28T22:00"),
        ("America/Havana", "2026-03-08", "2026-03-08T05:00"),
    ],
)
def test_a_midnight_that_the_clock_skips_fires_at_one(zone: str, day: str, tick: str) -> None:
    before, after = ms(day) - DAY_MS // 2, ms(day) + DAY_MS // 2

    assert cron("0 0 * * *", zone).next_after(before) == ms(tick)
    assert cron("0 0 * * *", zone).last_upto(after) == ms(tick)


def test_a_day_that_the_calendar_skips_fires_when_the_next_begins() -> None:
    assert ticks(cron("0 12 * * *", "Pacific/Apia"), "2011-12-29T12:00", "2012-01-01T12:00") == [
        "2011-12-29T22:00",  # 29 December, 12:00
        "2011-12-30T10:00",  # 30 December is skipped: 31 December, 00:00
        "2011-12-30T22:00",
        "2011-12-31T22:00",
    ]


def test_a_midnight_that_is_shown_twice_fires_once() -> None:
    assert ticks(cron("0 0 * * *", "America/Havana"), "2026-10-31T12:00", "2026-11-02T12:00") == [
        "2026-11-01T04:00",
        "2026-11-02T05:00",
    ]


def test_the_first_time_asked_for_may_lie_within_a_fold() -> None:
    daily, hourly = cron("30 2 * * *", "Europe/Berlin"), cron("30 * * * *", "Europe/Berlin")

    assert daily.next_after(ms("2026-10-25T01:15")) == ms("2026-10-26T01:30")
    assert daily.last_upto(ms("2026-10-25T01:15")) == ms("2026-10-25T00:30")
    assert hourly.next_after(ms("2026-10-25T00:45")) == ms("2026-10-25T01:30")
    assert hourly.last_upto(ms("2026-10-25T01:15")) == ms("2026-10-25T00:30")


@pytest.mark.parametrize("years", ["2026", "*"])
def test_the_last_hour_of_the_last_day_that_is_shown_twice_fires_twice(years: str) -> None:
    hourly = cron(f"0 30 * 29 10 ? {years}", "Africa/Cairo")

    assert ticks(hourly, "2026-10-29T19:00", "2027-01-01T00:00") == [
        "2026-10-29T19:30",
        "2026-10-29T20:30",
        "2026-10-29T21:30",
    ]


def test_the_last_tick_may_be_at_a_clock_time_that_is_shown_again_later() -> None:
    yearly = cron("0 30 * 1 11 ?", "America/Havana")

    assert yearly.last_upto(ms("2026-11-01T05:10")) == ms("2026-11-01T04:30")  # at 00:10, for the second time


@pytest.mark.parametrize(
    ("text", "tick"),
    [
        ("30 2 29 3", "2026-03-29T01:00"),  # skipped
        ("0 12 28 3", "2026-03-28T11:00"),  # a day before the gap
        ("0 12 29 3", "2026-03-29T10:00"),
        ("0 12 30 3", "2026-03-30T10:00"),
        ("30 2 25 10", "2026-10-25T00:30"),  # shown twice
        ("0 12 24 10", "2026-10-24T10:00"),
        ("0 12 26 10", "2026-10-26T11:00"),
    ],
)
def test_a_tick_next_to_a_jump_of_the_clock_is_found_from_far_away(text: str, tick: str) -> None:
    once = cron(f"0 {text} ? 2026", "Europe/Berlin")

    assert once.next_after(ms("2011-01-01")) == ms(tick)
    assert once.last_upto(ms("2101-01-01")) == ms(tick)
    assert once.count(ms("2011-01-01"), ms("2101-01-01")) == 1


def test_two_jumps_of_the_clock_within_a_week_are_both_seen() -> None:
    found = ticks(cron("0 12 * * *", "America/Noronha"), "2000-10-07T00:00", "2000-10-16T00:00")

    assert [tick[8:] for tick in found] == ["07T14:00", *(f"{day:02}T13:00" for day in range(8, 15)), "15T14:00"]


def test_ten_years_of_a_daily_schedule_have_one_tick_on_each_day() -> None:
    daily = cron("30 2 * * *", "Europe/Berlin")
    first, last = "2026-01-01T00:00+01:00", "2036-01-01T00:00+01:00"

    found = ticks(daily, first, last)

    assert len(found) == (ms(last) - ms(first)) // DAY_MS == 3_652
    assert len({tick[:10] for tick in found}) == 3_652


def test_a_schedule_has_no_tick_before_its_start() -> None:
    daily = cron("0 5 * * *", start="2026-01-02T05:00")

    assert daily.next_after(0) == ms("2026-01-02T05:00")
    assert daily.last_upto(ms("2026-01-02T04:59")) is None
    assert daily.last_upto(ms("2026-01-02T05:00")) == ms("2026-01-02T05:00")
    assert daily.count(0, ms("2026-01-03T05:00")) == 2


def test_an_interval_follows_elapsed_time_and_no_clock() -> None:
    anchor_ms = ms("2026-03-28T00:00+01:00")
    times = times_of(Schedule(ScheduleType.INTERVAL, timezone="Europe/Berlin", interval_ms=DAY_MS, anchor_ms=anchor_ms))

    assert ticks(times, "2026-03-28T12:00", "2026-03-30T12:00") == ["2026-03-28T23:00", "2026-03-29T23:00"]


def test_an_interval_has_ticks_before_its_anchor_too() -> None:
    times = times_of(Schedule(ScheduleType.INTERVAL, interval_ms=7_200_000, anchor_ms=ms("2030-01-01T01:00")))

    assert ticks(times, "2026-01-01T00:00", "2026-01-01T04:00") == ["2026-01-01T01:00", "2026-01-01T03:00"]


def test_ticks_begin_with_1970_and_end_with_2199() -> None:
    yearly = cron("0 0 1 1 *")

    assert yearly.next_after(-(10**15)) == 0
    assert yearly.last_upto(-1) is None
    assert yearly.last_upto(10**15) == ms("2199-01-01")
    assert yearly.next_after(ms("2199-01-01")) is None
    assert yearly.count(-(10**15), 10**15) == 230


def test_a_schedule_of_past_years_has_no_next_tick() -> None:
    past = cron("0 0 12 1 1 ? 2020")

    assert past.next_after(ms("2020-01-01T12:00")) is None
    assert past.last_upto(ms("2026-01-01")) == ms("2020-01-01T12:00")


def test_a_leap_day_is_found_over_a_century_without_one() -> None:
    assert ticks(cron("0 0 29 2 *"), "2092-03-01", "2108-01-01") == ["2096-02-29T00:00", "2104-02-29T00:00"]


def test_170_years_are_counted_in_a_fraction_of_a_second() -> None:
    before = time.process_time()

    count = cron("*/2 * * * *", "Europe/Lisbon").count(ms("2030-01-01"), YEAR_2200_MS - 1)

    assert count == (YEAR_2200_MS - 1 - ms("2030-01-01")) // 120_000
    assert time.process_time() - before < 1
