"""An instant in a zone (`DateTime`), its fields (`Property`), and the days between two (`Days`)."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Final

import msgspec

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.joda.zone import DAY_MS, EPOCH, UTC, Zone, checked_ms, offset_text

YEAR_MIN: Final = 1
YEAR_MAX: Final = 9999
MONTHS: Final = calendar.month_name
WEEKDAYS: Final = calendar.day_name
UNITS_MS: Final = {"Hours": 3_600_000, "Minutes": 60_000, "Seconds": 1000, "Millis": 1}


class DateTime:
    """An instant with a zone. Immutable."""

    __slots__ = ("_local", "ms", "zone")

    def __init__(self, ms: int, zone: Zone = UTC) -> None:
        self.ms = checked_ms(ms)
        self.zone = zone
        self._local: datetime | None = None

    @property
    def local(self) -> datetime:
        """What the wall clock of the zone shows."""
        if self._local is None:
            self._local = EPOCH + timedelta(milliseconds=self.local_ms)
        return self._local

    @property
    def local_ms(self) -> int:
        """The wall clock as milliseconds since the epoch of wall clocks."""
        return self.ms + self.zone.offset_ms(self.ms)

    def sel_text(self) -> str:
        """ISO 8601 with milliseconds, as Joda prints it."""
        offset = self.zone.offset_ms(self.ms)
        suffix = "Z" if offset == 0 else offset_text(offset)
        return f"{self.local.isoformat(timespec='milliseconds')}{suffix}"

    def with_zone(self, zone: Zone) -> DateTime:
        """The same instant elsewhere."""
        return DateTime(self.ms, zone)

    def plus(self, unit: str, amount: int) -> DateTime:
        """Later by an amount of `Years` … `Millis`: days and longer move the wall clock, the rest the instant."""
        if unit in UNITS_MS:
            return DateTime(checked_ms(self.ms + amount * UNITS_MS[unit]), self.zone)
        if amount == 0:
            return self
        moved = _local_plus(self.local, unit, amount)
        return DateTime(self.zone.lenient(millis_of(moved), from_ms=self.ms), self.zone)

    def with_local(self, local: datetime) -> DateTime:
        """The same zone at another time of its wall clock, which must exist."""
        return DateTime(self.zone.exact(millis_of(local), from_ms=self.ms), self.zone)

    def start_of_day(self) -> DateTime:
        """The first instant of the day: midnight, or later where the clock skips midnight."""
        midnight = self.local.replace(hour=0, minute=0, second=0, microsecond=0)
        return DateTime(self.zone.after_gap(millis_of(midnight)), self.zone)


def millis_of(local: datetime) -> int:
    """A wall clock time as milliseconds."""
    delta = local - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


def _local_plus(local: datetime, unit: str, amount: int) -> datetime:
    if abs(amount) > 4_000_000:
        raise BadValue("Expected a time between the years 1 and 9999")
    if unit in ("Weeks", "Days"):
        try:
            return local + timedelta(days=amount * (7 if unit == "Weeks" else 1))
        except OverflowError:
            raise BadValue("Expected a time between the years 1 and 9999") from None
    months = local.year * 12 + local.month - 1 + amount * (12 if unit == "Years" else 1)
    return _in_month(local, months // 12, months % 12 + 1)


def _in_month(local: datetime, year: int, month: int) -> datetime:
    if not YEAR_MIN <= year <= YEAR_MAX:
        raise BadValue("Expected a time between the years 1 and 9999")
    return local.replace(year=year, month=month, day=min(local.day, days_in_month(year, month)))


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    return calendar.monthrange(year, month)[1]


def weeks_in(weekyear: int) -> int:
    """52 or 53. The 28th of December is always in the last week."""
    return date(weekyear, 12, 28).isocalendar().week


def days_in_year(year: int) -> int:
    """365 or 366."""
    return 366 if calendar.isleap(year) else 365


def _millis_of_day(local: datetime) -> int:
    return ((local.hour * 60 + local.minute) * 60 + local.second) * 1000 + local.microsecond // 1000


def _at_millis_of_day(local: datetime, value: int) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(milliseconds=value)


def _at_week(local: datetime, weekyear: int, week: int) -> datetime:
    day = date.fromisocalendar(weekyear, min(week, weeks_in(weekyear)), local.isoweekday())
    return local.replace(year=day.year, month=day.month, day=day.day)


def _of_day(unit_ms: int) -> tuple[Callable[[datetime], int], Callable[[datetime, int], datetime]]:
    """Reading and setting a count of units since midnight; what is smaller than the unit stays."""

    def read(local: datetime) -> int:
        return _millis_of_day(local) // unit_ms

    def write(local: datetime, value: int) -> datetime:
        return _at_millis_of_day(local, value * unit_ms + _millis_of_day(local) % unit_ms)

    return read, write


class Field(msgspec.Struct, frozen=True):
    """A calendar field: how to read it, how to set it, and its bounds at a given time."""

    read: Callable[[datetime], int]
    write: Callable[[datetime, int], datetime]
    low: int
    high: Callable[[datetime], int]


FIELDS: Final[dict[str, Field]] = {
    "year": Field(lambda t: t.year, lambda t, v: _in_month(t, v, t.month), YEAR_MIN, lambda _: YEAR_MAX),
    "monthOfYear": Field(lambda t: t.month, lambda t, v: _in_month(t, t.year, v), 1, lambda _: 12),
    "weekyear": Field(
        lambda t: t.isocalendar().year,
        lambda t, v: _at_week(t, v, t.isocalendar().week),
        YEAR_MIN + 1,
        lambda _: YEAR_MAX - 1,
    ),
    "weekOfWeekyear": Field(
        lambda t: t.isocalendar().week,
        lambda t, v: _at_week(t, t.isocalendar().year, v),
        1,
        lambda t: weeks_in(t.isocalendar().year),
    ),
    "dayOfYear": Field(
        lambda t: t.timetuple().tm_yday,
        lambda t, v: t + timedelta(days=v - t.timetuple().tm_yday),
        1,
        lambda t: days_in_year(t.year),
    ),
    "dayOfMonth": Field(lambda t: t.day, lambda t, v: t.replace(day=v), 1, lambda t: days_in_month(t.year, t.month)),
    "dayOfWeek": Field(lambda t: t.isoweekday(), lambda t, v: t + timedelta(days=v - t.isoweekday()), 1, lambda _: 7),
    "hourOfDay": Field(lambda t: t.hour, lambda t, v: t.replace(hour=v), 0, lambda _: 23),
    "minuteOfHour": Field(lambda t: t.minute, lambda t, v: t.replace(minute=v), 0, lambda _: 59),
    "secondOfMinute": Field(lambda t: t.second, lambda t, v: t.replace(second=v), 0, lambda _: 59),
    "millisOfSecond": Field(
        lambda t: t.microsecond // 1000, lambda t, v: t.replace(microsecond=v * 1000), 0, lambda _: 999
    ),
    "minuteOfDay": Field(*_of_day(60_000), 0, lambda _: 1439),
    "secondOfDay": Field(*_of_day(1000), 0, lambda _: 86_399),
    "millisOfDay": Field(*_of_day(1), 0, lambda _: DAY_MS - 1),
}


def with_field(moment: DateTime, name: str, value: int) -> DateTime:
    """The moment with one field set."""
    field = FIELDS[name]
    high = field.high(moment.local)
    if not field.low <= value <= high:
        raise BadValue(f"Expected {name} from {field.low} to {high}, but found {value}")
    try:
        return moment.with_local(field.write(moment.local, value))
    except (OverflowError, ValueError):
        raise BadValue("Expected a time between the years 1 and 9999") from None


class Property(msgspec.Struct, frozen=True):
    """One field of a moment."""

    moment: DateTime
    name: str

    def get(self) -> int:
        """The field's value."""
        return FIELDS[self.name].read(self.moment.local)

    def as_text(self) -> str:
        """The field's value in words where it has any (US English)."""
        value = self.get()
        if self.name == "monthOfYear":
            return MONTHS[value]
        if self.name == "dayOfWeek":
            return WEEKDAYS[value - 1]
        return str(value)

    def lowest(self) -> DateTime:
        """The moment with this field at its minimum."""
        return with_field(self.moment, self.name, FIELDS[self.name].low)

    def highest(self) -> DateTime:
        """The moment with this field at its maximum."""
        return with_field(self.moment, self.name, FIELDS[self.name].high(self.moment.local))


class Days(msgspec.Struct, frozen=True):
    """A number of days."""

    days: int

    @classmethod
    def between(cls, start: DateTime, end: DateTime) -> Days:
        """Whole days on the wall clock of the first moment's zone."""
        difference = end.with_zone(start.zone).local_ms - start.local_ms
        days = abs(difference) // DAY_MS
        return cls(days if difference >= 0 else -days)
