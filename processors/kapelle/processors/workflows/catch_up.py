"""Which ticks of a time trigger are due, and which of them the catch-up policy starts. All of it is pure.

A tick that starts within a minute of its due time is on time. Ticks that nobody decided on in time are missed, as after
a stop, or when the clock jumps ahead. The catch-up policy decides on them:

| policy | started | passed over, with their count |
|---|---|---|
| ALL | the latest 1,000, oldest first, ten in a batch | the ones before |
| LATEST | the latest | all before it |
| NONE | the latest if it is on time | all others |

The due time of a tick is its scheduled time and, if the trigger has one, a delay that depends on the tick alone. Ticks
of a trigger are decided on in the order of their scheduled times, whatever their delays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.processors.calendar import Schedule, Times, fuzz_ms, schedule_of, times_of
from kapelle.processors.moments import utc_text
from kapelle.processors.workflows.tables import ScheduleRow
from kapelle.schemas.contracts import CatchUp

ON_TIME_MS: Final = 60_000
CAUGHT_UP_MAX: Final = 1_000


class Window(msgspec.Struct, frozen=True):
    """The ticks of a trigger that are due and were not decided on: those after `after_ms`, up to `upto_ms`."""

    after_ms: int
    upto_ms: int
    count: int
    late_ms: int  # of the latest


class Fate(msgspec.Struct, frozen=True):
    """What becomes of a window: ticks up to a time are passed over, the next ones are started."""

    passed_over: int
    passed_upto_ms: int
    reason: str = ""


class Trigger(msgspec.Struct, frozen=True):
    """A time trigger of a workflow, and how it stands."""

    workflow_id: str
    id: str
    row: ScheduleRow

    @property
    def schedule(self) -> Schedule:
        """The times that it names."""
        return schedule_of(self.row.schedule)

    @property
    def times(self) -> Times:
        """The same, to ask for the next one."""
        return times_of(self.schedule)

    def due_at_ms(self, scheduled_at_ms: int) -> int:
        """When a tick starts."""
        return due_at_ms(self.workflow_id, self.id, scheduled_at_ms, self.row.fuzzy_max_delay_ms)


def due_at_ms(workflow_id: str, trigger_id: str, scheduled_at_ms: int, fuzzy_max_delay_ms: int) -> int:
    """When a tick starts: at its scheduled time, or a delay later that depends on the tick alone."""
    if not fuzzy_max_delay_ms:
        return scheduled_at_ms
    return scheduled_at_ms + fuzz_ms(workflow_id, trigger_id, scheduled_at_ms, fuzzy_max_delay_ms)


def due_window(trigger: Trigger, now_ms: int) -> Window | None:
    """The ticks that are due now; None if there are none."""
    times, after = trigger.times, trigger.row.after_ms
    upto = times.last_upto(now_ms)
    while upto is not None and upto > after:
        late_ms = now_ms - trigger.due_at_ms(upto)
        if late_ms >= 0:
            return Window(after, upto, times.count(after, upto), late_ms)
        upto = times.last_upto(upto - 1)
    return None


# Policies -----------------------------------------------------------------------------------------------------------


def _all(window: Window, times: Times) -> Fate:
    """Oldest first. Beyond the bound, the oldest are passed over."""
    if window.count <= CAUGHT_UP_MAX:
        return Fate(0, window.after_ms)
    passed_upto = window.upto_ms
    for _ in range(CAUGHT_UP_MAX):
        passed_upto = _before(passed_upto, times)
    reason = f"The catch-up policy ALL starts at most the latest {CAUGHT_UP_MAX:,} missed ticks"
    return Fate(window.count - CAUGHT_UP_MAX, passed_upto, reason)


def _latest(window: Window, times: Times) -> Fate:
    reason = "The catch-up policy LATEST starts only the latest of the missed ticks"
    return _only_latest(window, times, reason)


def _none(window: Window, times: Times) -> Fate:
    reason = "The catch-up policy NONE starts no missed ticks"
    if window.late_ms > ON_TIME_MS:
        return Fate(window.count, window.upto_ms, reason)
    return _only_latest(window, times, reason)


def _only_latest(window: Window, times: Times, reason: str) -> Fate:
    if window.count == 1:
        return Fate(0, window.after_ms)
    return Fate(window.count - 1, _before(window.upto_ms, times), reason)


def _before(tick_ms: int, times: Times) -> int:
    """The tick before one. There is one: it was counted."""
    before = times.last_upto(tick_ms - 1)
    if before is None:
        raise AssertionError(f"Expected a tick before {utc_text(tick_ms)}, but there is none")
    return before


POLICIES: Final[Mapping[CatchUp, Callable[[Window, Times], Fate]]] = {
    CatchUp.ALL: _all,
    CatchUp.LATEST: _latest,
    CatchUp.NONE: _none,
}


def fate_of(window: Window, trigger: Trigger) -> Fate:
    """What the catch-up policy makes of the ticks that are due. A policy of a newer release counts as the default."""
    return POLICIES.get(trigger.row.catch_up, _latest)(window, trigger.times)
