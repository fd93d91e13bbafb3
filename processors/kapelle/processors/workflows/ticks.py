"""Ticks: the scheduled times of a time trigger, decided on when they come.

1. A tick is decided on once: `after_ms` of the schedule moves past it in the same event that tells what became of it.
   Its start has a request id made from workflow, trigger and time, which is the second lock.
2. Of several that are due, `catch_up` says which start. What is passed over is in the event, with its count.
3. A tick computes with its scheduled time (`RUN_TS`), however late it starts.
4. A start that is refused is the end of that tick. The reason is kept, and the other ticks of the batch start.
5. A tick comes when the wall clock shows its time. The time of a partition may be ahead of it, if a clock was wrong
   once. Then the timer comes early, and is set again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from kapelle.processors.calendar import Times
from kapelle.processors.refusals import Refused
from kapelle.processors.workflows.arrivals import Arrival, arrive
from kapelle.processors.workflows.catch_up import Fate, Trigger, Window, due_window, fate_of
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.requests import BY_TRIGGERS
from kapelle.processors.workflows.slots import tick_request_id
from kapelle.processors.workflows.starts import STARTS_MAX, Batch
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Start

AUTHOR: Final = "schedule"
SLOWED_BY: Final = 100  # as `topology` slows a partition that is ahead


def decide_on_ticks(draft: WorkflowDraft, trigger: Trigger, now_ms: int) -> None:
    """Start or pass over the ticks that are due. More than a batch is left to the next decision."""
    wall_ms = now_ms - draft.state.timers.ahead_ms()
    window = due_window(trigger, wall_ms)
    if window is None:
        _note(draft, trigger, _Decided(trigger.row.after_ms), now_ms=now_ms)
        return
    fate = fate_of(window, trigger)
    scheduled = _batch(fate.passed_upto_ms, window.upto_ms, trigger.times)
    starts = tuple(start_of(trigger, tick) for tick in scheduled)
    outcomes = Batch(c.StartTriggered(AUTHOR, starts), draft, now_ms, started_by=BY_TRIGGERS).outcomes()
    ticks = tuple(
        replace(tick_of(*decided), late_ms=max(0, wall_ms - trigger.due_at_ms(decided[0])))
        for decided in zip(scheduled, starts, outcomes, strict=True)
    )
    after = scheduled[-1] if scheduled else fate.passed_upto_ms
    _note(draft, trigger, _Decided(after, ticks, fate, window), now_ms=now_ms)
    arrive(draft, arrivals_in(outcomes), now_ms=now_ms)


def pass_over(draft: WorkflowDraft, trigger: Trigger, reason: str, now_ms: int) -> None:
    """Start none of the ticks that are due: a decision on them ran out of time."""
    window = due_window(trigger, now_ms - draft.state.timers.ahead_ms())
    if window is not None:
        fate = Fate(window.count, window.upto_ms, reason)
        _note(draft, trigger, _Decided(window.upto_ms, (), fate, window), now_ms=now_ms)


def _batch(after_ms: int, upto_ms: int, times: Times) -> list[int]:
    ticks: list[int] = []
    tick = times.next_after(after_ms)
    while tick is not None and tick <= upto_ms and len(ticks) < STARTS_MAX:
        ticks.append(tick)
        tick = times.next_after(tick)
    return ticks


class _Decided(msgspec.Struct, frozen=True):
    """What was decided, and up to which time."""

    after_ms: int
    ticks: tuple[c.Tick, ...] = ()
    fate: Fate = Fate(0, 0)
    window: Window | None = None


def _note(draft: WorkflowDraft, trigger: Trigger, decided: _Decided, *, now_ms: int) -> None:
    fate, window = decided.fate, decided.window
    next_at_ms = trigger.times.next_after(decided.after_ms)
    next_due_ms = None if next_at_ms is None else _timer_at_ms(draft, trigger.due_at_ms(next_at_ms), now_ms)
    draft.emit(
        c.ScheduleTicked(
            workflow_id=trigger.workflow_id,
            trigger_id=trigger.id,
            ticks=decided.ticks,
            passed_over=fate.passed_over,
            passed_after_ms=window.after_ms if fate.passed_over and window is not None else None,
            passed_upto_ms=fate.passed_upto_ms if fate.passed_over else None,
            reason=fate.reason,
            after_ms=decided.after_ms,
            next_at_ms=next_at_ms,
            next_due_ms=next_due_ms,
            at_ms=now_ms,
        )
    )


def _timer_at_ms(draft: WorkflowDraft, due_at_ms: int, now_ms: int) -> int:
    """When to set the timer of a tick, in the time of the partition. One that is ahead runs a hundredth slower."""
    if due_at_ms > now_ms:
        return due_at_ms
    left_ms = due_at_ms - (now_ms - draft.state.timers.ahead_ms())
    return now_ms + max(0, left_ms - left_ms // SLOWED_BY)


def start_of(trigger: Trigger, scheduled_at_ms: int) -> Start:
    """The start of a tick."""
    initiator = {
        "type": "TIME",
        "trigger_uuid": trigger.id,
        "trigger_time": scheduled_at_ms,
        "timezone": trigger.schedule.timezone,
    }
    return Start(
        request_id=tick_request_id(trigger.workflow_id, trigger.id, scheduled_at_ms),
        initiator=msgspec.json.encode(initiator).decode(),
        run_params=scheduled_params(scheduled_at_ms),
        persist_failed_run=True,
    )


def scheduled_params(scheduled_at_ms: int, given: str = "{}") -> str:
    """What is given to an instance of a tick or a slot. Its time is the scheduled one, unless another is given."""
    time = f'"RUN_TS":{{"type":"LONG","value":{scheduled_at_ms}}}'
    rest = given.strip()[1:].lstrip()
    # Of two members with one name the later counts.
    return f"{{{time}}}" if rest == "}" else f"{{{time},{rest}"


def tick_of(scheduled_at_ms: int, start: Start, outcome: Arrival | Refused) -> c.Tick:
    """What became of a tick or a slot."""
    if isinstance(outcome, Refused):
        reason = "; ".join((outcome.message, *outcome.errors))
        return c.Tick(scheduled_at_ms, start.request_id, None, is_new=False, reason=reason)
    is_new = isinstance(outcome, c.InstanceCreated)
    return c.Tick(scheduled_at_ms, start.request_id, outcome.instance_id, is_new=is_new)


def arrivals_in(outcomes: Iterable[Arrival | Refused]) -> list[Arrival]:
    """The outcomes that are no refusals."""
    return [outcome for outcome in outcomes if not isinstance(outcome, Refused)]
