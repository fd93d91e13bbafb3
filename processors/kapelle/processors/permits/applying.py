"""How the events of a limit change its tables."""

from typing import Final

from msgspec.structs import replace

from kapelle.processors.keys import TREE
from kapelle.processors.messages import Message
from kapelle.processors.permits.processor import permits
from kapelle.processors.permits.tables import (
    CLASSES,
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


def _limit_of(state: PermitTables, key: str) -> Limit:
    return state.limits.get((key,)) or NO_LIMIT


def _changed(counts: ByClass, number: int, by: int) -> ByClass:
    critical, high, medium, low = (count + by * (at == number) for at, count in enumerate(counts))
    return critical, high, medium, low


def _with_turn(turns: ByClass, number: int, turn: int) -> ByClass:
    critical, high, medium, low = (max(now, turn) if at == number else now for at, now in enumerate(turns))
    return critical, high, medium, low


@permits.applies(c.LimitSet)
def limit_set(message: Message[c.LimitSet], state: PermitTables) -> None:
    event, key = message.value, message.key
    state.limits.put(
        (key,),
        replace(
            _limit_of(state, key),
            max=event.max,
            author=event.author,
            extra=event.extra,
            snapshot=event.snapshot,
            sequence=event.sequence,
        ),
    )


@permits.applies(c.LimitRemoved)
def limit_removed(message: Message[c.LimitRemoved], state: PermitTables) -> None:
    event, key = message.value, message.key
    state.limits.put(
        (key,),
        replace(
            _limit_of(state, key),
            max=None,
            author=event.author,
            extra="{}",
            snapshot=event.snapshot,
            sequence=event.sequence,
        ),
    )


@permits.applies(c.PermitQueued)
def permit_queued(message: Message[c.PermitQueued], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit, number = _limit_of(state, key), class_of(event.criticality)
    at = holder_key(key, event.holder)
    row = Permit(event.workflow_id, event.criticality, is_held=False, turn=event.turn, ticket=event.ticket)
    state.permits.put(at, row)
    state.queue.put((key, number, event.turn, event.ticket), Waiting(event.holder, event.workflow_id))
    state.turns.put((key, number, event.workflow_id), Turn(event.turn))
    waiting = _changed(limit.waiting, number, 1)
    state.limits.put((key,), replace(limit, waiting=waiting, ticket=max(limit.ticket, event.ticket)))


@permits.applies(c.PermitGranted)
def permit_granted(message: Message[c.PermitGranted], state: PermitTables) -> None:
    event, key = message.value, message.key
    limit, number = _limit_of(state, key), class_of(event.criticality)
    at = holder_key(key, event.holder)
    held = Permit(event.workflow_id, event.criticality, is_held=True, turn=event.turn, ticket=event.ticket)
    state.permits.put(at, held)
    after = replace(limit, held=limit.held + 1, ticket=max(limit.ticket, event.ticket))
    if event.has_waited:
        state.queue.delete((key, number, event.turn, event.ticket))
        critical, high, medium, low = event.passed_over or NONE_OF_EACH
        after = replace(
            after,
            waiting=_changed(limit.waiting, number, -1),
            turn=_with_turn(limit.turn, number, event.turn),
            passed_over=(critical, high, medium, low),
        )
    state.limits.put((key,), after)


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
        state.queue.delete((key, number, row.turn, row.ticket))
        after = replace(limit, waiting=_changed(limit.waiting, number, -1))
    if key.startswith(TREE) and not after.held and not any(after.waiting):
        _forget(state, key)  # a tree that has ended never asks again, unless it is restarted: then its limit comes anew
    else:
        state.limits.put((key,), after)


def _forget(state: PermitTables, key: str) -> None:
    state.limits.delete((key,))
    for number in range(len(CLASSES)):
        for at, _ in list(state.turns.prefix((key, number))):
            state.turns.delete(at)


@permits.applies(c.TagWatched)
def tag_watched(message: Message[c.TagWatched], state: PermitTables) -> None:
    state.watchers.put((message.key, message.value.key), Watcher())
    limit = _limit_of(state, message.key)
    if limit.sequence == 0:  # who asks is told that there is no limit, and takes later changes for newer ones
        state.limits.put((message.key,), replace(limit, sequence=1))


@permits.applies(c.CommandSettled)
def command_settled(message: Message[c.CommandSettled], state: PermitTables) -> None:
    state.answers.put((message.key, message.value.request_id), Answer())


@permits.applies(c.CommandRefused)
def command_refused(_: Message[c.CommandRefused], __: PermitTables) -> None:
    """Nothing has changed."""
