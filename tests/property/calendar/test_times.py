"""The ticks of random schedules, held to a model that looks at every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.calendar import Schedule, ScheduleType, times_of
from kapelle.processors.calendar.spans import span_at
from kapelle.processors.sel.joda.zone import zone_ids, zone_of

MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
END_MS: Final = 7_258_118_400_000  # 2200
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# Days around which something happens to the clock of a zone, and a day on which nothing does.
MOMENTS: Final = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2027-03-14"),
    ("America/New_York", "2027-11-07"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Australia/Lord_Howe", "2027-04-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("Africa/Cairo", "2026-10-30"),
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2026-11-01"),
    ("Asia/Beirut", "2026-03-29"),
    ("Pacific/Apia", "2011-12-30"),
    ("Antarctica/Troll", "2026-03-29"),
    ("Antarctica/Troll", "2026-10-25"),
    ("Africa/Casablanca", "2026-02-15"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("Asia/Kathmandu", "1986-01-01"),
    ("Asia/Pyongyang", "2018-05-05"),
    ("+05:45", "2028-02-29"),
    ("UTC", "2026-12-31"),
)


class Fields(NamedTuple):
    """A cron text of plain values, as sets."""

    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]

    @property
    def text(self) -> str:
        weekdays = "*" if len(self.weekdays) == 7 else ",".join(WEEKDAYS[day] for day in sorted(self.weekdays))
        return f"{_listed(self.minutes)} {_listed(self.hours)} * * {weekdays}"

    def names(self, clock_ms: int) -> bool:
        at = datetime(1970, 1, 1) + timedelta(milliseconds=clock_ms)
        return at.minute in self.minutes and at.hour in self.hours and at.isoweekday() % 7 in self.weekdays


def _listed(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))


fields = st.builds(
    Fields,
    st.frozensets(st.integers(0, 59), min_size=1, max_size=4),
    st.one_of(st.just(frozenset(range(24))), st.frozensets(st.sampled_from([0, 1, 2, 3, 4, 12, 22, 23]), min_size=1)),
    st.one_of(st.just(frozenset(range(7))), st.frozensets(st.integers(0, 6), min_size=1)),
)


def model(fields: Fields, zone_id: str, from_ms: int, upto_ms: int) -> list[int]:
    """The ticks after the first instant and not after the second: each minute is looked at."""
    zone, ticks = zone_of(zone_id), []
    begin_ms = from_ms - 2 * DAY_MS
    shown_ms = begin_ms + zone.offset_ms(begin_ms)
    is_hourly = len(fields.hours) == 24
    for at_ms in range(begin_ms + MINUTE_MS, upto_ms + 1, MINUTE_MS):
        clock_ms = at_ms + zone.offset_ms(at_ms)
        first_ms = clock_ms if is_hourly else shown_ms + MINUTE_MS
        if at_ms > from_ms and any(fields.names(ms) for ms in range(first_ms, clock_ms + 1, MINUTE_MS)):
            ticks.append(at_ms)
        shown_ms = max(shown_ms, clock_ms)
    return ticks


@given(fields=fields, moment=st.sampled_from(MOMENTS), shift=st.integers(-1440, 1440))
def test_ticks_are_those_of_a_model_that_looks_at_every_minute(
    fields: Fields, moment: tuple[str, str], shift: int
) -> None:
    zone, day = moment
    from_ms = round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000) - DAY_MS + shift * MINUTE_MS
    upto_ms = from_ms + 2 * DAY_MS
    times = times_of(Schedule(ScheduleType.CRON, fields.text, zone))

    expected = model(fields, zone, from_ms, upto_ms)

    forward, at_ms = [], from_ms
    while (tick := times.next_after(at_ms)) is not None and tick <= upto_ms:
        forward.append(tick)
        at_ms = tick
    assert forward == expected
    assert times.count(from_ms, upto_ms) == len(expected)
    assert [times.last_upto(tick) for tick in expected] == expected
    assert [times.last_upto(tick - 1) for _, tick in pairwise(expected)] == expected[:-1]
    assert [times.count(from_ms, tick) for tick in expected] == list(range(1, len(expected) + 1))


@given(
    interval_ms=st.integers(120_000, 40 * DAY_MS),
    anchor_ms=st.integers(-DAY_MS, 4 * 10**12),
    start_ms=st.one_of(st.none(), st.integers(0, 4 * 10**12)),
    at_ms=st.integers(0, 4 * 10**12),
)
def test_ticks_of_an_interval_are_multiples_from_its_anchor_and_not_before_its_start(
    interval_ms: int, anchor_ms: int, start_ms: int | None, at_ms: int
) -> None:
    schedule = Schedule(ScheduleType.INTERVAL, interval_ms=interval_ms, anchor_ms=anchor_ms, start_ms=start_ms)
    times = times_of(schedule)

    tick = times.next_after(at_ms)

    assert tick is not None
    assert (tick - anchor_ms) % interval_ms == 0
    assert at_ms < tick
    assert tick - interval_ms <= at_ms or tick - interval_ms < (start_ms or 0)
    assert tick >= (start_ms or tick)
    assert times.last_upto(tick) == tick
    assert times.count(at_ms, tick) == 1
    assert times.count(at_ms, tick + 7 * interval_ms - 1) == 7


@given(zone=st.sampled_from(sorted(zone_ids())), at_ms=st.integers(0, END_MS), around_ms=st.integers(-DAY_MS, DAY_MS))
@settings(max_examples=300)
def test_spans_have_the_offsets_of_their_zone_up_to_the_second_at_which_it_changes(
    zone: str, at_ms: int, around_ms: int
) -> None:
    known, span = zone_of(zone), span_at(zone, at_ms)

    assert span.start_ms <= at_ms < span.end_ms
    assert span.offset_ms == known.offset_ms(at_ms) == known.offset_ms(span.start_ms)
    assert span.offset_ms == known.offset_ms(span.end_ms - 1)
    near_ms = span.end_ms + around_ms
    assert span_at(zone, near_ms).offset_ms == known.offset_ms(near_ms)


@given(
    zone=st.sampled_from(sorted(zone_ids())),
    year=st.integers(2012, 2189),  # before, some zones skipped a day
    time=st.tuples(st.integers(0, 23), st.integers(0, 59)),
)
@settings(max_examples=60, deadline=None)
def test_a_daily_schedule_of_any_zone_has_one_tick_for_each_day_of_ten_years(
    zone: str, year: int, time: tuple[int, int]
) -> None:
    times = times_of(Schedule(ScheduleType.CRON, f"{time[1]} {time[0]} * * *", zone))
    first, last = (zone_of(zone).after_gap(clock_ms(y)) for y in (year, year + 10))

    found, at_ms = [], first - 1
    while (tick := times.next_after(at_ms)) is not None and tick < last:
        found.append(tick)
        at_ms = tick

    assert len(found) == (clock_ms(year + 10) - clock_ms(year)) // DAY_MS
    assert times.count(first - 1, last - 1) == len(found)
    assert all(after - before > DAY_MS // 2 for before, after in pairwise(found))


def clock_ms(year: int) -> int:
    return (datetime(year, 1, 1) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
