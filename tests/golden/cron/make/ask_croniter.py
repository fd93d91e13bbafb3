"""What croniter says: reads cases, writes answers. It needs croniter, and nothing of Kapelle."""

import sys
from datetime import datetime, timedelta
from datetime import timezone as tz
from importlib import import_module
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=tz.utc)  # noqa: UP017 # any Python may run this


def ticks(cron: str, zone: str, from_ms: int, count: int) -> str:
    """The ticks after an instant in milliseconds, or why there are none."""
    module = import_module("croniter")
    at = (EPOCH + timedelta(milliseconds=from_ms)).astimezone(ZoneInfo(zone))
    found: list[datetime] = []
    try:
        source = module.croniter(cron, at)
        while len(found) < count:
            found.append(source.get_next(datetime))
    except module.CroniterBadDateError:
        pass  # no more ticks
    except module.CroniterError as error:
        return f"refused: {type(error).__name__}"
    return ",".join(str((tick - EPOCH) // timedelta(milliseconds=1)) for tick in found)


for line in sys.stdin:
    number, form, cron, zone, from_ms, count = line.rstrip("\n").split("\t")
    if form == "unix":
        sys.stdout.write(f"{number}\tcroniter\t{ticks(cron, zone, int(from_ms), int(count))}\n")
