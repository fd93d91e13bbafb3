"""Joda's date patterns: `yyyyMMdd`, `yyyy-MM-dd'T'HH:mm:ss.SSSZZ` and all other letters, printed and parsed.

A pattern is compiled into parts: literal text or (letter, count). Printing joins the parts' texts. Parsing reads the
parts one after the other and collects fields, which are then set on 1970-01-01, the largest first; with a month or day
and no year the year is 2000, as in Joda.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from kapelle.processors.sel.errors import BadValue
from kapelle.processors.sel.joda.moment import FIELDS, MONTHS, WEEKDAYS, DateTime
from kapelle.processors.sel.joda.zone import UTC, Zone, offset_text

PATTERN_CHARS_MAX = 256
COUNT_MAX = 32
# Letter → the field it stands for. The rest of the letters are texts or need arithmetic, see `_number`.
NUMBERS = {
    "y": "year",
    "Y": "year",
    "x": "weekyear",
    "w": "weekOfWeekyear",
    "e": "dayOfWeek",
    "D": "dayOfYear",
    "M": "monthOfYear",
    "d": "dayOfMonth",
    "H": "hourOfDay",
    "m": "minuteOfHour",
    "s": "secondOfMinute",
}
LETTERS = frozenset("GCYxweEyDMdaKhHkmsSzZ")
DIGITS_IN_FIELD = {"y": 9, "Y": 9, "x": 9, "D": 3, "C": 9}


class Part(msgspec.Struct, frozen=True):
    """A piece of a pattern: a letter with its count, or literal text if the letter is empty."""

    letter: str
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it prints as digits."""
        return (self.letter in "CYxweyDdKhHkmsS" and bool(self.letter)) or (self.letter == "M" and self.count <= 2)


class Formatter(msgspec.Struct, frozen=True):
    """A compiled pattern, with the zone that it prints and parses in (None: the moment's own, or UTC)."""

    pattern: str
    parts: tuple[Part, ...]
    zone: Zone | None = None

    def with_zone(self, zone: Zone) -> Formatter:
        """The same pattern in another zone."""
        return Formatter(self.pattern, self.parts, zone)

    def printed(self, moment: DateTime) -> str:
        """The moment as text."""
        shown = moment if self.zone is None else moment.with_zone(self.zone)
        return "".join(_print(part, shown) for part in self.parts)

    def sel_text(self) -> str:
        """The pattern."""
        return self.pattern


@lru_cache(maxsize=1024)
def formatter_of(pattern: str) -> Formatter:
    """Compile a pattern."""
    if not pattern:
        raise BadValue("Expected a date pattern, but found an empty one")
    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadValue(f"Expected a date pattern of at most {PATTERN_CHARS_MAX} characters")
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "'":
            text, at = _quoted(pattern, at)
            parts.append(Part("", 0, text))
            continue
        end = at + 1
        if char.isascii() and char.isalpha():
            while end < len(pattern) and pattern[end] == char:
                end += 1
            if char not in LETTERS:
                raise BadValue(f"Expected a letter of a date pattern, but found {char!r} in {pattern!r}")
            if end - at > COUNT_MAX:
                raise BadValue(f"Expected at most {COUNT_MAX} of a letter, but found {end - at} in {pattern!r}")
            parts.append(Part(char, end - at))
        else:
            parts.append(Part("", 0, char))
        at = end
    return Formatter(pattern, tuple(parts))


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text between quotes; two quotes are one quote."""
    if pattern[at : at + 2] == "''":
        return "'", at + 2
    out: list[str] = []
    at += 1
    while at < len(pattern):
        if pattern[at] != "'":
            out.append(pattern[at])
            at += 1
        elif pattern[at : at + 2] == "''":
            out.append("'")
            at += 2
        else:
            break
    return "".join(out), at + 1


def _print(part: Part, moment: DateTime) -> str:
    letter, count = part.letter, part.count
    if not letter:
        return part.text
    if letter == "M" and count >= 3:
        name = MONTHS[moment.local.month]
        return name if count > 3 else name[:3]
    if letter == "E":
        name = WEEKDAYS[moment.local.weekday()]
        return name if count > 3 else name[:3]
    if letter in "GazZ":
        return _print_word(part, moment)
    if letter == "S":
        return f"{moment.local.microsecond // 1000:03d}".ljust(count, "0")[:count]
    value = _number(letter, moment)
    if letter in "yYx" and count == 2:
        value %= 100
    return str(value).rjust(count, "0")


def _number(letter: str, moment: DateTime) -> int:
    hour = moment.local.hour
    if letter in NUMBERS:
        return FIELDS[NUMBERS[letter]].read(moment.local)
    return {"C": moment.local.year // 100, "K": hour % 12, "h": hour % 12 or 12, "k": hour or 24}[letter]


def _print_word(part: Part, moment: DateTime) -> str:
    letter, count = part.letter, part.count
    if letter == "G":
        return "AD"
    if letter == "a":
        return "AM" if moment.local.hour < 12 else "PM"
    if letter == "z":
        return zone_words(moment) if count >= 4 else moment.zone.name_at(moment.ms)
    if count >= 3:
        return moment.zone.id
    return offset_text(moment.zone.offset_ms(moment.ms), colon=count == 2)


ZONE_WORDS = {
    "America/Los_Angeles": "Pacific",
    "US/Pacific": "Pacific",
    "America/Denver": "Mountain",
    "America/Chicago": "Central",
    "America/New_York": "Eastern",
    "US/Eastern": "Eastern",
    "Europe/Berlin": "Central European",
    "Europe/Paris": "Central European",
}


def zone_words(moment: DateTime) -> str:
    """The long name of the zone, for the zones whose words we know; else the short one."""
    if moment.zone is UTC:
        return "Coordinated Universal Time"
    words = ZONE_WORDS.get(moment.zone.id)
    if words is None:
        return moment.zone.name_at(moment.ms)
    summer = "Summer" if words.endswith("European") else "Daylight"
    return f"{words} {summer if moment.zone.is_summer(moment.ms) else 'Standard'} Time"
