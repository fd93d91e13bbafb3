"""Every number that bounds a schedule."""

from typing import Final

DAY_MS: Final = 86_400_000
# A workflow that starts more often is a stream: its queue, not its schedule, would tell when it runs.
APART_MS_MIN: Final = 120_000
# The years that Quartz reads begin with 1970. Quartz ends 100 years from now, cron-utils with 2099: 2199 is a constant.
YEAR_FIRST: Final = 1970
YEAR_LAST: Final = 2199
# All instants of these years, in any zone.
FIRST_MS: Final = -DAY_MS
LAST_MS: Final = 84_006 * DAY_MS  # 2200-01-02
SCHEDULES_CACHED: Final = 4_096
