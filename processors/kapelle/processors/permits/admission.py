"""Admissions: who waits gets a permit while there is room, a batch in one decision.

A batch reads the head of each queue once and goes on from there. So each of its admissions costs the same, whatever
waits and whatever was admitted before. What is left over is admitted by a background timer: a raised limit may admit
100,000 attempts, and nobody else waits for them.
"""

from collections.abc import Iterator
from typing import Final

from kapelle.processors.permits.applying import ADMIT, NO_LIMIT
from kapelle.processors.permits.policy import has_room, is_waited_for, next_class, passed_over_after
from kapelle.processors.permits.processor import PermitDraft, permits
from kapelle.processors.permits.tables import Limit, Waiting
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c

ADMITTED_MAX: Final = 100  # in one decision

permits.in_background(ADMIT, turns_named=True)

QueueKey = tuple[str, int, int, int]
Queue = Iterator[tuple[QueueKey, Waiting]]


def limit_of(draft: PermitDraft) -> Limit:
    """The limit as the events of this decision have made it."""
    return draft.state.limits.get((draft.key,)) or NO_LIMIT


def admit_waiting(draft: PermitDraft, now_ms: int) -> None:
    """Admit those for whom there is room, unless a timer does it."""
    if not limit_of(draft).is_admitting:
        admit_batch(draft, now_ms)


def admit_batch(draft: PermitDraft, now_ms: int) -> None:
    """Admit a batch of those for whom there is room. If there is room for more, set the timer for the next batch."""
    queues: dict[int, Queue] = {}
    for _ in range(ADMITTED_MAX):
        limit = limit_of(draft)
        if not (is_waited_for(limit) and has_room(limit)):
            return
        number = next_class(limit)
        if number not in queues:
            queues[number] = draft.state.queue.prefix((draft.key, number))
        _admit_next(draft, queues[number], number, now_ms)
    limit = limit_of(draft)
    if is_waited_for(limit) and has_room(limit):
        draft.emit(c.AdmissionsLeft(limited=draft.key, batch=limit.batch + 1, at_ms=now_ms))


def _admit_next(draft: PermitDraft, queue: Queue, number: int, now_ms: int) -> None:
    head = next(queue, None)
    if head is None:
        raise ValueError(f"Expected an attempt that waits for {draft.key!r}, but the queue of class {number} is empty")
    (_, _, turn, ticket), waiting = head
    draft.emit(
        c.PermitGranted(
            limited=draft.key,
            holder=waiting.holder,
            workflow_id=waiting.workflow_id,
            criticality=waiting.criticality,
            ticket=ticket,
            has_waited=True,
            turn=turn,
            passed_over=passed_over_after(limit_of(draft), number),
            at_ms=now_ms,
        )
    )
    send_grant(draft, waiting.holder)


def send_grant(draft: PermitDraft, holder: c.PermitHolder) -> None:
    """Tell an attempt that it has its permit, and its partition whether there is a limit."""
    limit = limit_of(draft)
    grant = c.GrantPermit(holder=holder, limited=draft.key, is_limited=limit.max is not None, sequence=limit.sequence)
    draft.send(RUN_INTERNAL, holder.key, grant)
