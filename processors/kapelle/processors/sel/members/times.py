"""Members of DateTime, DateTimeZone, DateTimeFormat(ter), Property and Days."""

from collections.abc import Callable

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.joda.formatter import Formatter, formatter_of
from kapelle.processors.sel.joda.moment import FIELDS, DateTime, Days, Property, with_field
from kapelle.processors.sel.joda.reader import parsed, parsed_iso
from kapelle.processors.sel.joda.zone import UTC, Zone, zone_of
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import LONG, STRING, Member, Table, member

MOMENT = frozenset({DateTime})
ZONE = frozenset({Zone})
FORMATTER = frozenset({Formatter})
# Visits: calendar arithmetic is dearer than a node of the tree, a part of a pattern too, and a search in the tables of
# a zone for the moment at which a day begins is dearer still.
COST = 20
PART_COST = 8
START_OF_DAY_COST = 200
UNITS = ("Years", "Months", "Weeks", "Days", "Hours", "Minutes", "Seconds", "Millis")
PROPERTIES = tuple(name for name in FIELDS if name != "year")


def now_ms(frame: Frame) -> int:
    """The caller's time: the same for the whole evaluation."""
    if frame.host.now_ms is None:
        raise BadValue("Expected a clock, but none is configured")
    return frame.host.now_ms


def _now_year(frame: Frame) -> int:
    return DateTime(frame.host.now_ms or 0).local.year


def _new(frame: Frame, *args: Value) -> DateTime:
    _made(frame)
    if not args:
        return DateTime(now_ms(frame))
    if len(args) == 8:
        return _new_from_fields(*args)
    zone = args[1] if len(args) == 2 else UTC
    return _moment(args[0], zone)


def _moment(value: Value, zone: Zone) -> DateTime:
    if value.__class__ is int:
        return DateTime(value, zone)
    return parsed_iso(value, zone) if value.__class__ is str else value.with_zone(zone)


def _new_from_fields(*args: Value) -> DateTime:
    *numbers, zone = args
    names = ("year", "monthOfYear", "dayOfMonth", "hourOfDay", "minuteOfHour", "secondOfMinute", "millisOfSecond")
    moment = DateTime(0)
    for name, value in zip(names, numbers, strict=True):
        moment = with_field(moment, name, value)
    return DateTime(zone.exact(moment.ms), zone)


def _made(frame: Frame) -> None:
    frame.spend(64)
    frame.work(COST)


def _counted(run: Callable[..., Value]) -> Callable[..., Value]:
    def counted(frame: Frame, *args: Value) -> Value:
        _made(frame)
        return run(*args)

    return counted


def _moving(unit: str, sign: int) -> Member:
    return member(_counted(lambda moment, amount: moment.plus(unit, sign * amount)), (LONG,))


def _setting(name: str) -> Member:
    return member(_counted(lambda moment, value: with_field(moment, name, value)), (LONG,))


def _getting(name: str) -> Member:
    return member(_counted(lambda moment: FIELDS[name].read(moment.local)))


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _print(frame: Frame, moment: DateTime, pattern: str | None = None) -> str:
    if pattern is None:
        frame.work(COST)
        text = moment.sel_text()
    else:
        formatter = formatter_of(pattern)
        frame.work(COST + len(pattern) + PART_COST * len(formatter.parts))
        text = formatter.printed(moment)
    frame.text(len(text))
    return text


def _compiled(frame: Frame, pattern: str) -> Formatter:
    frame.work(COST + len(pattern))
    frame.spend(64)
    return formatter_of(pattern)


def pattern_cost(formatter: Formatter) -> int:
    """What it takes to print or to parse by a pattern, in visits."""
    return COST + PART_COST * len(formatter.parts)


def _start_of_day(frame: Frame, moment: DateTime) -> DateTime:
    _made(frame)
    if moment.zone.fixed_ms is None:
        frame.work(START_OF_DAY_COST)
    return moment.start_of_day()


def _parse(frame: Frame, formatter: Formatter, text: str) -> DateTime:
    _made(frame)
    frame.work(pattern_cost(formatter))
    frame.scan(len(text))
    return parsed(formatter, text, _now_year(frame))


def _print_by(frame: Frame, formatter: Formatter, value: int | DateTime) -> str:
    frame.work(pattern_cost(formatter))
    text = formatter.printed(DateTime(value) if isinstance(value, int) else value)
    frame.text(len(text))
    return text


MOMENT_METHODS: Table = {
    "toString": member(_print, (), (STRING,)),
    "withZone": member(_counted(lambda m, zone: m.with_zone(zone)), (ZONE,)),
    "toDateTime": member(_counted(lambda m, zone: m.with_zone(zone)), (ZONE,)),
    "isAfter": member(lambda _, a, b: a.ms > b.ms, (MOMENT,)),
    "isBefore": member(lambda _, a, b: a.ms < b.ms, (MOMENT,)),
    "isEqual": member(lambda _, a, b: a.ms == b.ms, (MOMENT,)),
    "getMillis": member(lambda _, m: m.ms),
    "withTimeAtStartOfDay": member(_start_of_day),
    **{f"plus{unit}": _moving(unit, 1) for unit in UNITS},
    **{f"minus{unit}": _moving(unit, -1) for unit in UNITS},
    **{name: member(_counted(lambda m, n=name: Property(m, n))) for name in PROPERTIES},
    **{f"with{_capital(name)}": _setting(name) for name in FIELDS if name not in ("minuteOfDay", "secondOfDay")},
    **{f"get{_capital(name)}": _getting(name) for name in FIELDS},
}
MOMENT_STATIC: Table = {"parse": member(lambda f, _, text, by: _parse(f, by, text), (STRING, FORMATTER))}
ZONE_METHODS: Table = {"getOffset": member(_counted(lambda zone, ms: zone.offset_ms(ms)), (LONG,))}
ZONE_STATIC: Table = {"forID": member(_counted(lambda _, zone_id: zone_of(zone_id)), (STRING,))}
FORMATTER_METHODS: Table = {
    "withZone": member(_counted(lambda by, zone: by.with_zone(zone)), (ZONE,)),
    "parseDateTime": member(_parse, (STRING,)),
    "parseMillis": member(lambda f, by, text: _parse(f, by, text).ms, (STRING,)),
    "print": member(_print_by, (frozenset({int, DateTime}),)),
}
FORMATTER_STATIC: Table = {"forPattern": member(lambda f, _, pattern: _compiled(f, pattern), (STRING,))}
PROPERTY_METHODS: Table = {
    "get": member(_counted(lambda p: p.get())),
    "getAsText": member(_counted(lambda p: p.as_text())),
    "withMinimumValue": member(_counted(lambda p: p.lowest())),
    "withMaximumValue": member(_counted(lambda p: p.highest())),
}
DAYS_METHODS: Table = {"getDays": member(lambda _, d: d.days)}
DAYS_STATIC: Table = {"daysBetween": member(_counted(lambda _, a, b: Days.between(a, b)), (MOMENT, MOMENT))}
NEW: Table = {
    "DateTime": member(
        _new,
        (),
        (frozenset({int, str, DateTime}),),
        (frozenset({int, str, DateTime}), ZONE),
        (LONG, LONG, LONG, LONG, LONG, LONG, LONG, ZONE),
    )
}
