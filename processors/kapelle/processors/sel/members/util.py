"""Members of Util, System, Arrays, DateTimeConstants and UUID."""

import re
from datetime import date

from kapelle.processors.sel.errors import BadValue, LimitExceeded
from kapelle.processors.sel.joda.formatter import formatter_of
from kapelle.processors.sel.joda.moment import DateTime
from kapelle.processors.sel.joda.reader import parsed
from kapelle.processors.sel.joda.zone import DAY_MS, zone_of
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import ANY, LONG, STRING, TEXT_OR_LONG, Table, member
from kapelle.processors.sel.members.numbers import parsed_long
from kapelle.processors.sel.members.times import COST, MOMENT, now_ms
from kapelle.processors.sel.types import Uuid
from kapelle.processors.sel.values import LongArray, json_of

DATE_INT = "yyyyMMdd"
EPOCH_DAY = date(1970, 1, 1)
DAYS_MAX = 4_000_000  # more than there are from the year 1 to 9999
WORDS_MS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
}
_PERIOD_PART = re.compile(r"([+-]?\d{1,15}) (week|day|hour|minute|second|millisecond)s?")
_PERIOD_JOIN = re.compile(r", and |, | and ")


def _day(frame: Frame, value: str | int) -> date:
    """The day of a date like 20240229, given as text or number."""
    frame.work(COST)
    text = str(value)
    if len(text) == 8 and text.isascii() and text.isdigit():
        try:
            return date(int(text[:4]), int(text[4:6]), int(text[6:]))
        except ValueError:
            raise BadValue(f"Expected a day of the calendar like 20240229, but found {text}") from None
    return parsed(formatter_of(DATE_INT), text, 2000).local.date()


def _date(frame: Frame, value: str | int) -> DateTime:
    return DateTime((_day(frame, value) - EPOCH_DAY).days * DAY_MS)


def _date_int(frame: Frame, moment: DateTime) -> str:
    frame.work(COST)
    return formatter_of(DATE_INT).printed(moment)


def _number(value: str | int) -> int:
    return parsed_long(value) if isinstance(value, str) else value


def _date_int_hour_to_ts(frame: Frame, _: Value, *args: Value) -> int:
    day, hour, zone, days, hours = args
    by = formatter_of("yyyyMMddHH").with_zone(zone_of(zone))
    frame.work(40)
    moment = parsed(by, f"{day}{hour}", 2000)
    return moment.plus("Days", -_number(days)).plus("Hours", -_number(hours)).ms


def period_ms(text: str) -> int:
    """A period in Joda's words: `2 hours`, `1 day and 30 minutes`."""
    total = 0
    for part in _PERIOD_JOIN.split(text[:200].strip()):
        match = _PERIOD_PART.fullmatch(part)
        if match is None:
            raise BadValue(f"Expected a duration such as '1 day and 2 hours', but found {text[:40]!r}")
        total += int(match[1]) * WORDS_MS[match[2]]
    return total


def _remaining(frame: Frame, moment: DateTime, duration: str) -> str:
    frame.work(COST)
    left = max(moment.ms + period_ms(duration) - now_ms(frame), 0)
    return f"{left} milliseconds"


def _date_ints_between(frame: Frame, _: Value, start: Value, end: Value, step: Value) -> LongArray:
    """The days from `start` to before `end`. A negative step gives the days from `end` to before `start`, reversed."""
    by = _number(step)
    if by == 0:
        raise BadValue("Expected a step other than 0")
    start_day, end_day = _day(frame, start), _day(frame, end)
    first, last = (start_day, end_day) if by > 0 else (end_day, start_day)
    days = range(first.toordinal(), last.toordinal(), min(abs(by), DAYS_MAX))
    frame.array(len(days), 40)
    frame.work(4 * len(days))
    return LongArray(_number_of(date.fromordinal(day)) for day in (days if by > 0 else reversed(days)))


def _number_of(day: date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def _ints_between(frame: Frame, _: Value, start: Value, end: Value, step: Value) -> LongArray:
    first, last, by = _number(start), _number(end), _number(step)
    if by == 0:
        raise BadValue("Expected a step other than 0")
    numbers = range(first, last, by)
    # len() fails above the machine's word, and so large an array is refused in any case.
    count = len(numbers) if abs(last - first) <= frame.limits.array_length * abs(by) else None
    if count is None:
        raise LimitExceeded("array_length", frame.limits.array_length)
    frame.array(count, 40)
    return LongArray(numbers)


def _new_id(frame: Frame, _: Value) -> Uuid:
    if frame.host.new_id is None:
        raise BadValue("Expected a source of ids, but none is configured")
    frame.text(36)
    frame.work(100)
    return Uuid(frame.host.new_id())


def _id_text(frame: Frame, target: Uuid) -> str:
    frame.text(36)
    return target.sel_text()


UTIL: Table = {
    "dateIntToTs": member(lambda f, _, d: _date(f, d).ms, (TEXT_OR_LONG,)),
    "tsToDateInt": member(lambda f, _, ms: _date_int(f, DateTime(_number(ms))), (TEXT_OR_LONG,)),
    "incrementDateInt": member(lambda f, _, d, n: _date_int(f, _date(f, d).plus("Days", n)), (TEXT_OR_LONG, LONG)),
    "dateIntHourToTs": member(_date_int_hour_to_ts, (TEXT_OR_LONG, TEXT_OR_LONG, STRING, TEXT_OR_LONG, TEXT_OR_LONG)),
    "timeoutForDateTimeDeadline": member(lambda f, _, m, d: _remaining(f, m, d), (MOMENT, STRING)),
    "timeoutForDateIntDeadline": member(lambda f, _, d, t: _remaining(f, _date(f, d), t), (TEXT_OR_LONG, STRING)),
    "dateIntsBetween": member(_date_ints_between, (TEXT_OR_LONG, TEXT_OR_LONG, TEXT_OR_LONG)),
    "intsBetween": member(_ints_between, (TEXT_OR_LONG, TEXT_OR_LONG, TEXT_OR_LONG)),
    "toJson": member(lambda f, _, v: json_of(f, v), (ANY,)),
}
SYSTEM: Table = {"currentTimeMillis": member(lambda f, _: now_ms(f))}
ARRAYS: Table = {"asList": member(lambda _, __, v: v, (ANY,))}
CONSTANTS = {
    "MONDAY": 1,
    "TUESDAY": 2,
    "WEDNESDAY": 3,
    "THURSDAY": 4,
    "FRIDAY": 5,
    "SATURDAY": 6,
    "SUNDAY": 7,
}
UUID_METHODS: Table = {"toString": member(_id_text)}
UUID_STATIC: Table = {"randomUUID": member(_new_id)}
