"""Decisions about permits. This module has those on attempts that ask for a permit or give it back.

| decided on | what comes of it |
|---|---|
| `RequestPermit` | the attempt gets a permit if there is room and nobody waits; else it is queued |
| `ReturnPermit` | the permit is free, and the next attempt gets it |
| a timer | the admissions that did not fit into one decision (`admission`) |
| `SetLimit`, `LimitWorkflow` | a higher limit admits at once; a lower one stops nobody (`limits`) |
| `RemoveLimit` | every attempt that waits is admitted (`limits`) |

After each decision nobody waits while there is room, except for those that the timer is about to admit.

Each command may come twice. An attempt that has asked has its permit or its place already; one that has none cannot
give it back. Requests and returns of an attempt have one sender, so they arrive in order: the return of an attempt that
is over follows its request, and takes back what was granted in between.
"""

from kapelle.processors.messages import TimerDue
from kapelle.processors.permits import limits
from kapelle.processors.permits.admission import admit_batch, admit_waiting, limit_of, send_grant
from kapelle.processors.permits.policy import has_room, is_waited_for, turn_of
from kapelle.processors.permits.processor import PermitDraft, on_draft
from kapelle.processors.permits.tables import Limit, class_of, holder_key
from kapelle.schemas import contracts as c


@on_draft.decides(c.RequestPermit)
def request_permit(request: c.RequestPermit, draft: PermitDraft, now_ms: int) -> None:
    """Admit an attempt, or queue it."""
    if draft.state.permits.get(holder_key(draft.key, request.holder)) is not None:
        return  # it has asked before
    limits.take_over(request, draft, now_ms)
    if request.watches and draft.state.watchers.get((draft.key, request.holder.key)) is None:
        draft.emit(c.TagWatched(limited=draft.key, key=request.holder.key, at_ms=now_ms))
    limit = limit_of(draft)
    if has_room(limit) and not is_waited_for(limit):
        _grant(request, draft, limit, now_ms)
    else:
        _queue(request, draft, limit, now_ms)


def _grant(request: c.RequestPermit, draft: PermitDraft, limit: Limit, now_ms: int) -> None:
    draft.emit(
        c.PermitGranted(
            limited=draft.key,
            holder=request.holder,
            workflow_id=request.workflow_id,
            criticality=request.criticality,
            ticket=limit.ticket + 1,
            has_waited=False,
            at_ms=now_ms,
        )
    )
    send_grant(draft, request.holder)


def _queue(request: c.RequestPermit, draft: PermitDraft, limit: Limit, now_ms: int) -> None:
    number = class_of(request.criticality)
    last = draft.state.turns.get((draft.key, number, request.workflow_id))
    draft.emit(
        c.PermitQueued(
            limited=draft.key,
            holder=request.holder,
            workflow_id=request.workflow_id,
            criticality=request.criticality,
            turn=turn_of(limit, number, None if last is None else last.turn),
            ticket=limit.ticket + 1,
            at_ms=now_ms,
        )
    )


@on_draft.decides(c.ReturnPermit)
def return_permit(returned: c.ReturnPermit, draft: PermitDraft, now_ms: int) -> None:
    """Take a permit back, or the place in the queue, and admit the next attempt."""
    row = draft.state.permits.get(holder_key(draft.key, returned.holder))
    if row is None:
        return
    draft.emit(c.PermitReturned(limited=draft.key, holder=returned.holder, was_held=row.is_held, at_ms=now_ms))
    admit_waiting(draft, now_ms)


@on_draft.decides(TimerDue)
def timer_due(_: TimerDue, draft: PermitDraft, now_ms: int) -> None:
    """Go on where a full decision has ended."""
    admit_batch(draft, now_ms)
