"""The cases of the table of cron expressions, and why other implementations say something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from kapelle.processors.calendar.spans import span_at

Reasons = Mapping[str, str]  # by implementation


class Case(NamedTuple):
    """A question, and the reasons that other answers than ours may have."""

    form: str  # unix or quartz
    cron: str
    zone: str
    after: str  # an instant
    reasons: Reasons = MappingProxyType({})
    ticks: int = 5

    @property
    def after_ms(self) -> int:
        return round(datetime.fromisoformat(self.after).replace(tzinfo=UTC).timestamp() * 1000)


START: Final = "2026-01-01T00:00"

# Forms of five fields, in UTC.
UNIX: Final = """
* * * * *|*/2 * * * *|*/7 * * * *|5/10 * * * *|0-30/10 * * * *|0,15,30,45 * * * *|59 * * * *|1-5,10-15/2,50 * * * *
0 */5 * * *|0 3/6 * * *|30 9-17 * * *|30 9-17/4 * * *|0 0,12 * * *|15 23 * * *|0 0 * * *|5 0 * * *|*/20 8-10 * * *
0 0 1 * *|0 0 15,31 * *|0 0 */10 * *|0 0 28-31 * *|0 0 31 * *|0 0 30 * *|0 0 29 2 *|0 0 31 1,3,5 *|0 0 5/9 * *
0 0 1 1 *|0 0 1 */3 *|0 0 1 2-11/3 *|0 0 1 JAN,JUL *|0 0 1 mar-may *|0 0 31 12 *|0 12 25 DEC *|0 0 10 10/1 *
0 9 * * 1-5|0 9 * * MON-FRI|0 9 * * 0|0 9 * * 7|0 9 * * SUN|0 9 * * 0,6|0 9 * * 5-7|0 9 * * FRI-SUN|0 9 * * */2
0 9 * * 0-7|0 9 * * 1-7|0 9 * * 0-6/3|0 9 * * sat|0 9 * * MON,WED,FRI|0 9 * * 3
0 9 1 * MON|0 9 13 * 5|0 9 1,15 * MON-FRI|0 9 */2 * MON|0 9 1-31 * MON|0 9 1 * 0-6|0 9 31 2 MON|0 9 29 2 1|0 9 1-7 1 1
0 0 13 * FRI|30 4 1,15 * 5|0 22 * 6-8 1-5|23 0-20/2 * * *|5 4 * * SUN|0 0,12 1 */2 *|15 14 1 * *|0 4 8-14 * *
"""

# Forms of six and seven fields, in UTC.
QUARTZ: Final = """
0 * * * * ?|0 0/2 * * * ?|30 0/15 * * * ?|0 5,10 14-16 * * ?|15 0 0/4 * * ?|0 0 12 * * ?|0 15 10 ? * *|0 0 0 ? * SUN
0 0 12 1 * ?|0 0 12 1/5 * ?|0 0 12 1,15 * ?|0 0 12 28-31 * ?|0 0 12 31 * ?|0 0 12 29 2 ?|0 0 12 */9 * ?
0 0 12 L * ?|0 0 12 LW * ?|0 0 12 1W * ?|0 0 12 15W * ?|0 0 12 10W * ?|0 0 12 L FEB ?|0 0 12 LW 2,5 ?|0 0 12 L-1 1 ?
0 0 12 L-5 JUL ?|0 0 12 30W 5,8 ?|0 0 12 1W 2,8,11 ?|0 0 12 L-30 1,3 ?
0 0 12 ? * L|0 0 12 ? * 6L|0 0 12 ? * FRIL|0 0 12 ? * 1L|0 0 12 ? * 7L|0 0 12 ? * MONL|0 0 12 ? 2 4L
0 0 12 ? * 6#3|0 0 12 ? * FRI#1|0 0 12 ? * 2#5|0 0 12 ? * 1#1|0 0 12 ? * 7#2|0 0 12 ? * SUN#5|0 0 12 ? 2 MON#4
0 0 12 ? * 2-6|0 0 12 ? * MON-FRI|0 0 12 ? * 1|0 0 12 ? * 7|0 0 12 ? * 1,7|0 0 12 ? * MON,WED|0 0 12 ? * 1/2
0 0 12 ? * 2/3|0 0 12 ? * FRI-MON|0 0 12 ? * 7-1|0 0 12 ? * 6-2|0 0 12 ? * SAT-SUN
0 0 12 ? JAN,JUN mon|0 30 9 ? 3-5 TUE-THU
0 0 12 1 1 ? 2026|0 0 12 1 1 ? 2027-2030|0 0 12 1 1 ? 2026/4|0 0 12 29 2 ? 2028,2032|0 0 12 1 1 ? 2020
0 0 12 ? 1 2#1 2030/3|0 0 12 1 1 ? *|0 0 12 29 2 ? 2026-2040|0 0 12 31 DEC ? 2099|0 0 12 L 2 ? 2027-2032
"""

# Forms in which others differ, one by one.
WRAP: Final = {"cron-utils": "wrap-first-only"}
SINGLE: Final = (
    *(Case("quartz", f"0 0 {hours} * * ?", "UTC", START, WRAP) for hours in ("22-2", "22-2/2", "23-1", "18-6/4")),
    *(Case("quartz", f"0 {minutes} 12 * * ?", "UTC", START, WRAP) for minutes in ("50-10/10", "58-2/2")),
    *(Case("quartz", f"0 0 12 {days} * ?", "UTC", START, WRAP) for days in ("25-5", "30-2", "28-3/3")),
    *(Case("quartz", f"0 0 12 1 {months} ?", "UTC", START, WRAP) for months in ("NOV-FEB", "10-3", "11-4/2")),
    *(Case("quartz", f"0 0 12 L-{n} * ?", "UTC", START) for n in (1, 3, 10, 27)),
    Case("quartz", "0 0 12 L-3W * ?", "UTC", START, {"cron-utils": "not-read"}),
    Case("quartz", "0 0 12 L-2W 1,3,8 ?", "UTC", START, {"cron-utils": "not-read"}),
    *(Case("quartz", f"0 0 12 {days} * ?", "UTC", START, {"cron-utils": "last-dropped"}) for days in ("L,15", "LW,15")),
    *(Case("quartz", f"0 0 12 {d}W * ?", "UTC", START, {"cron-utils": "date-of-no-month"}) for d in (29, 30, 31)),
    Case("quartz", "0 0 12 1W,15W * ?", "UTC", START, {"cron-utils": "list-of-special"}),
    Case("quartz", "0 0 12 28W 2 ?", "UTC", START, {"cron-utils": "last-sunday"}),
    Case("quartz", "0 0 12 ? 2 MON#5", "UTC", START, {"quartz": "year-limit", "cron-utils": "year-limit"}),
    Case("quartz", "0 0 12 ? * MON#1,MON#3", "UTC", START, {"quartz": "list-of-special"}),
    Case("quartz", "0 0 12 ? * 6L,2L", "UTC", START, {"quartz": "list-of-special"}),
    Case("quartz", "0 0 12 ? * MON,6#3", "UTC", START, {"quartz": "list-of-special"}),
    *(
        Case("quartz", f"0 0 12 1 1 ? {years}", "UTC", START, {"quartz": "year-limit", "cron-utils": "year-limit"})
        for years in ("2150", "2199", "2098-2102", "2126,2127", "2100/33")
    ),
    Case("quartz", "0 0 12 29 2 ? 2096-2112", "UTC", START, {"cron-utils": "year-limit"}),
    Case("unix", "/20 9 * * *", "UTC", START, {"croniter": "not-read"}),
    Case("quartz", "0 /20 9 * * ?", "UTC", START),
    Case("unix", "0 9 * * 1/2", "UTC", START, {"croniter": "sunday-7"}),
    Case("unix", "0 9 * * 3/2", "UTC", START, {"croniter": "sunday-7"}),
    Case("unix", "0 9 * * 2/5", "UTC", START, {"croniter": "sunday-7"}),
    Case("unix", "0 0 29 2 *", "UTC", "2096-01-01T00:00", {"cron-utils": "year-limit"}),
    Case("unix", "0 0 29 2 *", "UTC", "2092-03-01T00:00", {"cron-utils": "year-limit"}, 3),
    Case("unix", "0 0 1 1 *", "UTC", "2195-06-01T00:00", {"croniter": "year-limit", "cron-utils": "year-limit"}),
    Case("unix", "0 0 1 1 *", "UTC", "1970-01-01T00:00"),
    Case("unix", "0 0 29 2 *", "UTC", "1970-01-01T00:00"),
)

# Expressions that are refused.
LENIENT: Final = {"croniter": "lenient", "quartz": "lenient", "cron-utils": "lenient"}
REFUSED: Final = (
    *(Case("unix", cron, "UTC", START, LENIENT) for cron in ("0 22-2 * * *", "0 0 25-5 * *", "*/70 * * * *")),
    *(Case("unix", cron, "UTC", START, LENIENT) for cron in ("0 0 L * *", "0 0 ? * *", "0 0 * 11-2 *", "0 9 * * 5#2")),
    *(
        Case("unix", cron, "UTC", START, LENIENT)
        for cron in ("60 * * * *", "0 24 * * *", "0 0 32 * *", "0 0 0 * *", "0 0 * 13 *")
    ),
    *(
        Case("unix", cron, "UTC", START, LENIENT)
        for cron in ("0 9 * * 8", "0 9 * * FOO", "*/0 * * * *", "a * * * *", "1,,2 * * * *")
    ),
    *(
        Case("quartz", f"0 0 12 {days}", "UTC", START, LENIENT)
        for days in ("* * *", "? * ?", "1 * MON", "1-31 * 2", "* * 1-7")
    ),
    *(
        Case("quartz", f"0 0 12 {days}", "UTC", START, LENIENT)
        for days in ("32 * ?", "? * 8", "? * 0", "? * 6#6", "0W * ?", "L-31 * ?")
    ),
    *(
        Case("quartz", cron, "UTC", START, LENIENT)
        for cron in ("60 0 12 * * ?", "0 60 12 * * ?", "0 0 24 * * ?", "0 0/70 12 * * ?")
    ),
    *(Case("quartz", f"0 0 12 1 1 ? {years}", "UTC", START, LENIENT) for years in ("2030-2026", "x")),
)

# Zones, a time that is skipped or shown twice, and an instant before it.
JUMPS: Final = (
    ("Europe/Berlin", "30 2", "2026-03-28T00:00"),
    ("Europe/London", "15 1", "2026-03-28T00:00"),
    ("America/New_York", "30 2", "2026-03-07T00:00"),
    ("America/Los_Angeles", "0 2", "2025-03-08T00:00"),
    ("Australia/Lord_Howe", "15 2", "2026-10-02T00:00"),
    ("Australia/Sydney", "45 2", "2026-10-02T00:00"),
    ("Africa/Cairo", "30 0", "2026-04-22T12:00"),
    ("Asia/Beirut", "0 0", "2026-03-27T12:00"),
    ("America/Havana", "30 0", "2026-03-07T00:00"),
    ("Pacific/Apia", "0 12", "2011-12-29T00:00"),
    ("America/Sao_Paulo", "0 0", "2018-11-03T00:00"),
    ("Asia/Kathmandu", "10 0", "1985-12-30T12:00"),
    ("Asia/Pyongyang", "45 23", "2018-05-03T12:00"),
    ("Antarctica/Troll", "30 2", "2026-03-28T00:00"),
    ("America/Santiago", "30 0", "2026-09-05T00:00"),
    ("Atlantic/Azores", "30 0", "2026-03-28T00:00"),
    ("America/St_Johns", "30 2", "2026-03-07T00:00"),
    ("Asia/Tehran", "30 0", "2021-03-20T12:00"),
)
FOLDS: Final = (
    ("Europe/Berlin", "30 2", "2026-10-24T00:00"),
    ("Europe/London", "15 1", "2026-10-24T00:00"),
    ("America/New_York", "30 1", "2026-10-31T00:00"),
    ("America/Los_Angeles", "0 1", "2025-11-01T00:00"),
    ("Australia/Lord_Howe", "45 1", "2026-04-03T00:00"),
    ("Australia/Sydney", "45 2", "2026-04-03T00:00"),
    ("Africa/Cairo", "30 23", "2026-10-28T12:00"),
    ("Asia/Beirut", "30 23", "2026-10-23T12:00"),
    ("America/Havana", "30 0", "2026-10-31T00:00"),
    ("America/Sao_Paulo", "30 23", "2018-02-16T12:00"),
    ("Asia/Pyongyang", "45 23", "2015-08-13T12:00"),
    ("Antarctica/Troll", "30 1", "2026-10-24T00:00"),
    ("America/Santiago", "30 23", "2026-04-03T12:00"),
    ("Atlantic/Azores", "30 0", "2026-10-24T00:00"),
    ("America/St_Johns", "30 1", "2026-10-31T00:00"),
    ("Asia/Tehran", "30 23", "2021-09-20T12:00"),
)
PLAIN_ZONES: Final = ("Asia/Kathmandu", "Asia/Tokyo", "America/Phoenix", "Pacific/Kiritimati", "Australia/Eucla", "UTC")
GAP: Final = {"quartz": "gap-lost", "cron-utils": "gap-lost"}
HOURLY_GAP: Final = {"quartz": "gap-loses-more"}
FOLD: Final = {"croniter": "fold-twice", "quartz": "fold-last", "cron-utils": "fold-twice"}
HOURLY_FOLD: Final = {"quartz": "fold-last"}


def _lines(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        yield from line.split("|")


def _of_zones() -> Iterator[Case]:
    for jumps, reasons, hourly in ((JUMPS, GAP, HOURLY_GAP), (FOLDS, FOLD, HOURLY_FOLD)):
        for zone, time, after in jumps:
            minute, hour = time.split()
            day, hours = _before(zone, after, 26), _before(zone, after, 4)
            yield Case("unix", f"{time} * * *", zone, day, reasons)
            yield Case("quartz", f"0 {time} ? * *", zone, day, reasons)
            yield Case("unix", f"*/20 {hour} * * *", zone, hours, reasons, 7)
            yield Case("unix", f"{minute} */2 * * *", zone, hours, reasons)
            yield Case("unix", f"{minute} * * * *", zone, hours, hourly, 7)
            yield Case("quartz", f"0 {minute} * * * ?", zone, hours, hourly, 7)
            yield Case("unix", "*/30 * * * *", zone, _before(zone, after, 1), hourly, 7)
    for zone in PLAIN_ZONES:
        yield Case("unix", "45 23 * * SUN", zone, START)
        yield Case("quartz", "0 5 0 L * ?", zone, START)


def _before(zone: str, after: str, hours: int) -> str:
    """Some hours before the next jump of a zone. Only the question depends on it, not the answer."""
    at = span_at(zone, round(datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp() * 1000))
    jump = datetime.fromtimestamp(at.end_ms / 1000, UTC) - timedelta(hours=hours)
    return jump.replace(tzinfo=None).isoformat(timespec="minutes")


CASES: Final = (
    *(Case("unix", cron, "UTC", START) for cron in _lines(UNIX)),
    *(Case("quartz", cron, "UTC", START) for cron in _lines(QUARTZ)),
    *SINGLE,
    *REFUSED,
    *_of_zones(),
)
