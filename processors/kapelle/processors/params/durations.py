"""Numbers and durations that a definition may write as text, with workflow parameters inside: `"${hours}h 30min"`."""

import re
from typing import Final

from kapelle.processors.params.errors import BadNumber, TextTooLong
from kapelle.processors.params.interpolation import Lookup, at_most, interpolated

DAY_MS: Final = 86_400_000
DURATION_MS_MAX: Final = 120 * DAY_MS
DURATION_MS_DEFAULT: Final = 10 * DAY_MS
LONG_MAX: Final = 2**63 - 1
FILLED_IN_CHARS_MAX: Final = 10_000
UNITS_MS: Final = {
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
}
_PART = re.compile(rf"(\d{{1,18}})\s*({'|'.join(sorted(UNITS_MS, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,19}")


def number_of(written: int | str, lookup: Lookup) -> int:
    """A count: a non-negative integer, or text that is one once its parameters are filled in."""
    text = _filled_in(written, lookup)
    if isinstance(written, bool) or not _DIGITS.fullmatch(text) or int(text) > LONG_MAX:
        raise BadNumber("an integer from 0", written)
    return int(text)


def duration_ms(written: int | str | None, lookup: Lookup) -> int:
    """A duration: plain numbers are seconds, text is the sum of its parts (`1 day 2h`), other words are passed over."""
    if written is None:
        return DURATION_MS_DEFAULT
    expected = "a duration of at most 120 days such as 90, '90 s' or '1 day 2h'"
    text = _filled_in(written, lookup)
    if isinstance(written, bool):
        raise BadNumber(expected, written)
    if _DIGITS.fullmatch(text):
        total = int(text) * 1000
    else:
        total = sum(int(amount) * UNITS_MS[unit.lower()] for amount, unit in _PART.findall(text[:1000]))
    if not 0 < total <= DURATION_MS_MAX:
        raise BadNumber(expected, text)
    return total


def _filled_in(written: int | str, lookup: Lookup) -> str:
    if not isinstance(written, str):
        return str(written)
    try:
        return interpolated(written, lookup, at_most(FILLED_IN_CHARS_MAX)).strip()
    except TextTooLong:
        raise BadNumber(
            f"at most {FILLED_IN_CHARS_MAX:,} characters after its parameters are substituted", written
        ) from None
    except KeyError as error:
        raise BadNumber(f"only parameters of the workflow, and not {error.args[0]!r}", written) from None
