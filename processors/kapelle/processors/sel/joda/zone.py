"""Time zones, and the two ways between an instant and a wall clock that Joda has.

A wall clock time may not exist (the clock skips it in spring) or exist twice (the clock repeats it in autumn):

- exact, for constructors, parsing and `with…`: a time that does not exist is an error; of two, the earlier is meant,
  unless the moment that we came from had the later offset;
- lenient, for adding days and longer: a time that does not exist moves forward by the length of the gap.
"""

import re
from datetime import UTC as UTC_TZ
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from kapelle.processors.sel.errors import BadValue, did_you_mean

EPOCH: Final = datetime(1970, 1, 1)
UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC_TZ)
DAY_MS: Final = 86_400_000
# The years 1 to 9999, with a day to spare on both sides for any offset.
MS_MIN: Final = -62_135_596_800_000 + DAY_MS
MS_MAX: Final = 253_402_300_799_999 - DAY_MS
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{3}))?)?)?")
_UTC_NAMES = frozenset({"UTC", "UT", "GMT", "Z", "Zulu", "Etc/UTC", "Universal"})


class Zone:
    """A time zone of the tz database, or a fixed offset."""

    __slots__ = ("_tz", "fixed_ms", "id")

    def __init__(self, zone_id: str, tz: tzinfo | None, fixed_ms: int | None) -> None:
        self.id = zone_id
        self._tz = tz
        self.fixed_ms = fixed_ms

    def sel_text(self) -> str:
        """The id of the zone."""
        return self.id

    def offset_ms(self, ms: int) -> int:
        """How far the wall clock is ahead of UTC at that instant."""
        if self.fixed_ms is not None:
            return self.fixed_ms
        return self._delta_ms(self._at(ms).utcoffset())

    def name_at(self, ms: int) -> str:
        """The short name in use at that instant, such as PST or PDT."""
        if self.fixed_ms is not None or self._tz is None:
            return self.id
        name = self._at(ms).tzname() or self.id
        return name if not name.startswith(("+", "-")) else offset_text(self.offset_ms(ms))

    def is_summer(self, ms: int) -> bool:
        """Whether the clock is put forward at that instant."""
        return self.fixed_ms is None and bool(self._at(ms).dst())

    def exact(self, local_ms: int, *, from_ms: int | None = None) -> int:
        """The instant at which the wall clock shows this time."""
        instants = self._instants(local_ms)
        if not instants:
            wall = (EPOCH + timedelta(milliseconds=local_ms)).isoformat(timespec="milliseconds")
            raise BadValue(f"Expected a time that exists, but the clock skips {wall} in {self.id}")
        return self._preferred(instants, local_ms, from_ms)

    def lenient(self, local_ms: int, *, from_ms: int | None = None) -> int:
        """The instant at which the wall clock shows this time, or would if it had not been put forward."""
        instants = self._instants(local_ms)
        if instants:
            return self._preferred(instants, local_ms, from_ms)
        return local_ms - self._offset_before_gap(local_ms)

    def after_gap(self, local_ms: int) -> int:
        """The first instant whose wall clock is not before this time."""
        instants = self._instants(local_ms)
        if instants:
            return instants[0]
        low, high = local_ms - DAY_MS, local_ms + DAY_MS
        # The wall clock runs evenly here but for the one jump: find the first instant past the wanted time.
        while low < high:
            middle = (low + high) // 2
            if middle + self.offset_ms(middle) >= local_ms:
                high = middle
            else:
                low = middle + 1
        return low

    def _preferred(self, instants: list[int], local_ms: int, from_ms: int | None) -> int:
        if len(instants) > 1 and from_ms is not None:
            kept = local_ms - self.offset_ms(from_ms)
            if kept in instants:
                return kept
        return instants[0]

    def _instants(self, local_ms: int) -> list[int]:
        if self.fixed_ms is not None:
            return [checked_ms(local_ms - self.fixed_ms)]
        checked_ms(local_ms)
        offsets = {self.offset_ms(clamped(local_ms + shift)) for shift in (-DAY_MS, DAY_MS)}
        wall = EPOCH + timedelta(milliseconds=local_ms)
        for fold in (0, 1):
            offsets.add(self._delta_ms(wall.replace(tzinfo=self._tz, fold=fold).utcoffset()))
        instants = {local_ms - o for o in offsets if self.offset_ms(clamped(local_ms - o)) == o}
        return sorted(checked_ms(ms) for ms in instants)

    def _offset_before_gap(self, local_ms: int) -> int:
        wall = EPOCH + timedelta(milliseconds=local_ms)
        return self._delta_ms(wall.replace(tzinfo=self._tz, fold=0).utcoffset())

    def _at(self, ms: int) -> datetime:
        return (UTC_EPOCH + timedelta(milliseconds=checked_ms(ms))).astimezone(self._tz)

    @staticmethod
    def _delta_ms(delta: timedelta | None) -> int:
        return 0 if delta is None else (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


UTC: Final = Zone("UTC", None, 0)


def checked_ms(ms: int) -> int:
    """The instant, if it is within the years that we know."""
    if not MS_MIN <= ms <= MS_MAX:
        raise BadValue("Expected a time between the years 1 and 9999")
    return ms


def clamped(ms: int) -> int:
    """The nearest instant within the years that we know."""
    return min(max(ms, MS_MIN), MS_MAX)


@lru_cache(maxsize=1)
def zone_ids() -> frozenset[str]:
    """The ids of the tz database. Those that mean something else on another machine are left out."""
    return frozenset(available_timezones()) - {"localtime", "Factory", "posixrules"}


@lru_cache(maxsize=1024)
def zone_of(zone_id: str) -> Zone:
    """The zone of that id: `America/Los_Angeles`, `UTC`, `+02:00`."""
    if zone_id in _UTC_NAMES:
        return UTC
    offset = parsed_offset(zone_id)
    if offset is not None:
        return fixed(offset)
    if zone_id not in zone_ids():
        hint = did_you_mean(zone_id, zone_ids())
        raise BadValue(f"Expected the id of a time zone, but found {zone_id[:64]!r}", hint=hint)
    return Zone(zone_id, ZoneInfo(zone_id), None)


def fixed(offset_ms: int) -> Zone:
    """The zone that is always that far ahead of UTC."""
    return UTC if offset_ms == 0 else Zone(offset_text(offset_ms), None, offset_ms)


def parsed_offset(text: str) -> int | None:
    """`+02:00`, `-0800` or `+5` in milliseconds, or None if it is not an offset."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    sign, hours, minutes, seconds, millis = match.groups()
    if int(hours) > 23 or int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise BadValue(f"Expected an offset below 24 hours, but found {text!r}")
    total = ((int(hours) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)) * 1000 + int(millis or 0)
    return total if sign == "+" else -total


def offset_text(offset_ms: int, *, colon: bool = True) -> str:
    """`+02:00`, or `+0200` without the colon. Seconds appear only when there are any."""
    sign = "-" if offset_ms < 0 else "+"
    seconds, millis = divmod(abs(offset_ms), 1000)
    mark = ":" if colon else ""
    text = f"{sign}{seconds // 3600:02d}{mark}{seconds // 60 % 60:02d}"
    if seconds % 60 or millis:
        text += f"{mark}{seconds % 60:02d}"
    return f"{text}.{millis:03d}" if millis else text
