"""How the events of a limit change its tables.

A timer admits what one decision has left over. It is set by `AdmissionsLeft`, and cancelled by the event after which
nobody waits or there is no room.
"""

from typing import Final

from msgspec.structs import replace

from kapelle.processors.keys import TREE
from kapelle.processors.messages import Message
from kapelle.processors.permits.policy import has_room, is_waited_for
from kapelle.processors.permits.processor import permits
from kapelle.processors.permits.tables import (
    NONE_OF_EACH,
    Answer,
    ByClass,
    Limit,
    Permit,
    PermitTables,
    Turn,
    Waiting,
    Watcher,
    class_of,
    holder_key,
)
from kapelle.schemas import contracts as c

NO_LIMIT: Final = Limit()
ADMIT: Final = "admit"


def timer_of(key: str, batch: int) -> str:
    """The name of the timer that admits a batch.

    Its second part says whose turn it is: that of the tag or the workflow. Each batch has another name: a timer that
    has fired cannot be set to the same moment again.
    """
    return f"{ADMIT}/{key.split('/')[1]}/{batch}"


# Limits -------------------------------------------------------------------------------------------------------------


@permits.applies(c.LimitSet)
def limit_set(message: Message[c.LimitSet], state: PermitTables) -> None:
    event, key = message.value, message.key
    after = replace(
        _limit_of(state, key),
        max=event.max,
        author=event.author,
        extra=event.extra,
        snapshot=event.snapshot,
        sequence=event.sequence,
    )
    _put(state, key, after)


@permits.applies(c.LimitRemoved)
def limit_removed(message: Message[c.LimitRemoved], state: PermitTables) -> None:
    event, key = message.value, message.key
    after = replace(
        _limit_of(state, key),
        max=None,
        author=event.author,
        extra="{}",
        snapshot=event.snapshot,
        sequence=event.sequence,
    )
    _put(state, key, after)


@permits.applies(c.TagWatched)
def tag_watched(message: Message[c.TagWatched], state: PermitTables) -> None:
    state.watchers.put((message.key, message.value.key), Watcher())
    limit = _limit_of(state, message.key)
    if limit.sequence == 0:  # the partition learns by number 1 that there is no limit: later changes have higher ones
        state.limits.put((message.key,), replace(limit, sequence=1))


# Attempts -----------------------------------------------------------------------------------------------------------


@permits.applies(c.PermitQueued)
def permit_queued(message: Message[c.PermitQueued], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit, number = _limit_of(state, key), class_of(event.criticality)
    row = Permit(event.workflow_id, event.criticality, is_held=False, turn=event.turn, ticket=event.ticket)
    state.permits.put(holder_key(key, event.holder), row)
    waiting = Waiting(event.holder, event.workflow_id, event.criticality)
    state.queue.put((key, number, event.turn, event.ticket), waiting)
    before = state.turns.get((key, number, event.workflow_id))
    others = 0 if before is None else before.waiting
    state.turns.put((key, number, event.workflow_id), Turn(event.turn, others + 1))
    after = replace(limit, waiting=_changed(limit.waiting, number, 1), ticket=max(limit.ticket, event.ticket))
    state.limits.put((key,), after)


@permits.applies(c.PermitGranted)
def permit_granted(message: Message[c.PermitGranted], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit, number = _limit_of(state, key), class_of(event.criticality)
    row = Permit(event.workflow_id, event.criticality, is_held=True, turn=event.turn, ticket=event.ticket)
    state.permits.put(holder_key(key, event.holder), row)
    after = replace(limit, held=limit.held + 1, ticket=max(limit.ticket, event.ticket))
    if event.has_waited:
        critical, high, medium, low = event.passed_over or NONE_OF_EACH
        after = replace(
            after,
            waiting=_changed(limit.waiting, number, -1),
            turn=_with(limit.turn, number, max(limit.turn[number], event.turn)),
            passed_over=(critical, high, medium, low),
        )
        _leave_queue(state, key, row, after.turn[number])
    _put(state, key, after)


@permits.applies(c.PermitReturned)
def permit_returned(message: Message[c.PermitReturned], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit, at = _limit_of(state, key), holder_key(key, event.holder)
    row = state.permits.get(at)
    if row is None:
        return
    state.permits.delete(at)
    if row.is_held:
        after = replace(limit, held=limit.held - 1)
    else:
        number = class_of(row.criticality)
        _leave_queue(state, key, row, limit.turn[number])
        after = replace(limit, waiting=_changed(limit.waiting, number, -1))
        if not after.waiting[number]:
            after = replace(after, passed_over=_with(limit.passed_over, number, 0))
    _put(state, key, after)
    if key.startswith(TREE) and not after.held and not is_waited_for(after):
        _forget(state, key)  # the next step of the tree brings the limit with it


@permits.applies(c.AdmissionsLeft)
def admissions_left(message: Message[c.AdmissionsLeft], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit = _limit_of(state, key)
    if limit.is_admitting:
        state.timers.cancel(key, timer_of(key, limit.batch))
    state.timers.set(key, timer_of(key, event.batch), event.at_ms)
    state.limits.put((key,), replace(limit, is_admitting=True, batch=event.batch))


@permits.applies(c.CommandSettled)
def command_settled(message: Message[c.CommandSettled], state: PermitTables) -> None:
    state.answers.put((message.key, message.value.request_id), Answer())


@permits.applies(c.CommandRefused)
def command_refused(_: Message[c.CommandRefused], __: PermitTables) -> None:
    """Nothing has changed."""


# Rows ---------------------------------------------------------------------------------------------------------------


def _limit_of(state: PermitTables, key: str) -> Limit:
    return state.limits.get((key,)) or NO_LIMIT


def _put(state: PermitTables, key: str, limit: Limit) -> None:
    """Change the row of a limit. The timer ends with what it was for."""
    if limit.is_admitting and not (is_waited_for(limit) and has_room(limit)):
        state.timers.cancel(key, timer_of(key, limit.batch))
        limit = replace(limit, is_admitting=False)
    state.limits.put((key,), limit)


def _leave_queue(state: PermitTables, key: str, row: Permit, turn: int) -> None:
    """An attempt waits no longer. `turn` is the current turn of its class.

    A workflow of which nobody waits any more has taken the current turn, not those that it left unused.
    """
    number = class_of(row.criticality)
    state.queue.delete((key, number, row.turn, row.ticket))
    last = state.turns.get((key, number, row.workflow_id))
    if last is not None:
        others = last.waiting - 1
        after = Turn(last.turn if others else min(last.turn, turn), others)
        state.turns.put((key, number, row.workflow_id), after)


def _forget(state: PermitTables, key: str) -> None:
    batch = _limit_of(state, key).batch
    if batch:  # few trees ever have a full decision; their numbers go on, because of the names of timers
        state.limits.put((key,), Limit(batch=batch))
    else:
        state.limits.delete((key,))
    for at, _ in list(state.turns.prefix((key,))):
        state.turns.delete(at)


def _changed(counts: ByClass, number: int, by: int) -> ByClass:
    return _with(counts, number, counts[number] + by)


def _with(numbers: ByClass, number: int, value: int) -> ByClass:
    critical, high, medium, low = (value if at == number else before for at, before in enumerate(numbers))
    return critical, high, medium, low
