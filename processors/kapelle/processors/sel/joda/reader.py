"""Reading times from text: by a pattern, or in any ISO 8601 form that Joda's constructor takes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import msgspec

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.joda.formatter import DIGITS_IN_FIELD, NUMBERS, Formatter, Part
from kapelle.processors.sel.joda.moment import FIELDS, MONTHS, WEEKDAYS, DateTime, millis_of
from kapelle.processors.sel.joda.zone import EPOCH, UTC, Zone, fixed, parsed_offset, zone_ids, zone_of

# The order in which parsed fields are set: the larger first, so that a day finds its month.
SET_ORDER = (
    "year",
    "weekyear",
    "monthOfYear",
    "weekOfWeekyear",
    "dayOfYear",
    "dayOfMonth",
    "dayOfWeek",
    "hourOfDay",
    "minuteOfHour",
    "secondOfMinute",
    "millisOfSecond",
)
DEFAULT_YEAR = 2000
PIVOT_BACK_YEARS = 80  # a two-digit year is taken from the century that begins eighty years before now
ZONE_NAMES = {
    "UT": 0,
    "UTC": 0,
    "GMT": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}


class _Reading(msgspec.Struct):
    """How far the text has been read, and what was found."""

    text: str
    at: int
    now_year: int
    fields: dict[str, int]
    zone: Zone | None = None
    half: int | None = None
    hour12: int | None = None


def parsed(formatter: Formatter, text: str, now_year: int) -> DateTime:
    """The moment that the text says. Its zone is the formatter's, or UTC."""
    reading = _Reading(text, 0, now_year, {})
    for number, part in enumerate(formatter.parts):
        following = formatter.parts[number + 1] if number + 1 < len(formatter.parts) else None
        if not _read(part, following, reading):
            raise _malformed(formatter, text, reading.at)
    if reading.at != len(text):
        raise _malformed(formatter, text, reading.at)
    zone = formatter.zone or UTC
    return DateTime(_instant(reading, reading.zone or zone), zone)


def _malformed(formatter: Formatter, text: str, at: int) -> BadValue:
    rest = text[at : at + 20] if at < len(text) else "the end"
    return BadValue(f"Expected a date like {formatter.pattern!r}, but found {text[:40]!r}, malformed at {rest!r}")


def _instant(reading: _Reading, zone: Zone) -> int:
    fields = reading.fields
    if reading.hour12 is not None:
        fields["hourOfDay"] = reading.hour12 + 12 * (reading.half or 0)
    if not {"year", "weekyear"} & fields.keys() and {"monthOfYear", "dayOfMonth", "dayOfYear"} & fields.keys():
        fields["year"] = DEFAULT_YEAR
    local: datetime = EPOCH
    for name in SET_ORDER:
        if name not in fields:
            continue
        field = FIELDS[name]
        value = fields[name]
        if not field.low <= value <= field.high(local):
            raise BadValue(f"Expected {name} from {field.low} to {field.high(local)}, but found {value}")
        local = field.write(local, value)
    return zone.exact(millis_of(local))


def _read(part: Part, following: Part | None, reading: _Reading) -> bool:
    letter, count = part.letter, part.count
    if not letter:
        matched = reading.text[reading.at : reading.at + len(part.text)].lower() == part.text.lower()
        reading.at += len(part.text) if matched else 0
        return matched
    if letter == "M" and count >= 3:
        return _read_name(reading, "monthOfYear", MONTHS[1:])
    if letter == "E":
        return _read_name(reading, "dayOfWeek", list(WEEKDAYS))
    if letter in "Gaz":
        return _read_word(letter, reading)
    if letter == "Z":
        return _read_zone(reading)
    return _read_number(part, following, reading)


def _read_name(reading: _Reading, field: str, names: list[str]) -> bool:
    rest = reading.text[reading.at : reading.at + 12].lower()
    for number, name in enumerate(names, start=1):
        for form in (name, name[:3]):
            if rest.startswith(form.lower()):
                reading.fields[field] = number
                reading.at += len(form)
                return True
    return False


def _read_word(letter: str, reading: _Reading) -> bool:
    rest = reading.text[reading.at : reading.at + 4].upper()
    if letter == "z":
        for name in sorted(ZONE_NAMES, key=len, reverse=True):
            if rest.startswith(name):
                reading.zone = fixed(ZONE_NAMES[name] * 3_600_000)
                reading.at += len(name)
                return True
        return False
    words = ("AM", "PM") if letter == "a" else ("BC", "AD")
    if rest[:2] not in words or rest[:2] == "BC":
        return False
    if letter == "a":
        reading.half = words.index(rest[:2])
    reading.at += 2
    return True


_ZONE_TEXT = re.compile(r"Z(?![A-Za-z])|[+-]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d{3})?)?)?|[A-Za-z][A-Za-z0-9_+\-/]*")


def _read_zone(reading: _Reading) -> bool:
    match = _ZONE_TEXT.match(reading.text, reading.at)
    if match is None:
        return False
    name = match.group()
    offset = parsed_offset(name)
    if offset is None and name != "Z" and name not in zone_ids():
        return False
    reading.zone = fixed(offset) if offset is not None else zone_of(name)
    reading.at = match.end()
    return True


def _read_number(part: Part, following: Part | None, reading: _Reading) -> bool:
    letter, count = part.letter, part.count
    most = DIGITS_IN_FIELD.get(letter, 2)
    if letter == "S":
        most = count
    elif following is not None and following.is_number:
        most = count  # `yyyyMMdd`: the digits of the next field begin right after ours
    else:
        most = max(most, count)
    start = reading.at
    end = start
    if letter in "yYxC" and reading.text[start : start + 1] in ("-", "+"):
        end += 1
    first = end
    while end < len(reading.text) and end - first < most and reading.text[end] in "0123456789":
        end += 1
    if end == first or (letter == "S" and end - first < count):
        return False
    value = int(reading.text[start:end])
    reading.at = end
    return _keep_number(part, value, end - first, reading)


def _keep_number(part: Part, value: int, digits: int, reading: _Reading) -> bool:
    letter, count = part.letter, part.count
    if letter == "S":
        reading.fields["millisOfSecond"] = int(reading.text[reading.at - digits : reading.at].ljust(3, "0")[:3])
    elif letter in "Kh":
        reading.hour12 = value % 12
        return 0 <= value <= (11 if letter == "K" else 12) and (letter == "K" or value > 0)
    elif letter == "k":
        reading.fields["hourOfDay"] = value % 24
        return 1 <= value <= 24
    elif letter == "C":
        reading.fields["year"] = value * 100
    else:
        if letter in "yYx" and count == 2 and digits == 2:
            start = reading.now_year - PIVOT_BACK_YEARS
            value = start + (value - start) % 100
        reading.fields[NUMBERS[letter]] = value
    return True


_ISO = re.compile(
    r"(?:(?P<year>[+-]?\d{1,9})"
    r"(?:-W(?P<week>\d{1,2})(?:-(?P<weekday>\d))?|-(?P<ordinal>\d{3})(?!\d)|-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?)?"
    r"(?P<t>T(?:(?P<hour>\d{1,2})(?:[.,](?P<hfrac>\d{1,9})|:(?P<minute>\d{1,2})"
    r"(?:[.,](?P<mfrac>\d{1,9})|:(?P<second>\d{1,2})(?:[.,](?P<sfrac>\d{1,9}))?)?)?)?"
    r"(?P<offset>Z|[+-]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d{3})?)?)?)?)?"
)
ISO_FIELDS = {
    "month": "monthOfYear",
    "day": "dayOfMonth",
    "ordinal": "dayOfYear",
    "week": "weekOfWeekyear",
    "weekday": "dayOfWeek",
    "hour": "hourOfDay",
    "minute": "minuteOfHour",
    "second": "secondOfMinute",
}
FRACTIONS_MS = {"hfrac": 3_600_000, "mfrac": 60_000, "sfrac": 1000}


def parsed_iso(text: str, zone: Zone) -> DateTime:
    """The moment that an ISO 8601 text says, shown in the zone, which is also meant when the text has no offset."""
    match = _ISO.fullmatch(text) if text and len(text) <= 64 else None
    if match is None or not (match["year"] or match["hour"]):
        raise BadValue(f"Expected a date like '2024-02-29T10:15:30.000Z', but found {text[:40]!r}")
    fields = {name: int(match[group]) for group, name in ISO_FIELDS.items() if match[group] is not None}
    if match["year"] is not None:
        fields["weekyear" if match["week"] else "year"] = int(match["year"])
    reading = _Reading(text, 0, DEFAULT_YEAR, fields)
    written = match["offset"]
    meant = zone if written is None else fixed(0 if written == "Z" else parsed_offset(written) or 0)
    instant = _instant(reading, meant)
    for group, unit_ms in FRACTIONS_MS.items():
        if match[group] is not None:
            digits = match[group]
            instant += int(
                timedelta(milliseconds=int(digits) * unit_ms // 10 ** len(digits)) / timedelta(milliseconds=1)
            )
    return DateTime(instant, zone)
