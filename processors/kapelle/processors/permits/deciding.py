"""Decisions about a limit: it is set or removed, and attempts ask for permits and give them back.

| decided on | what comes of it |
|---|---|
| `RequestPermit` | the attempt gets a permit if there is room and nobody waits; else it is queued |
| `ReturnPermit` | the permit is free, and the next attempt gets it |
| `SetLimit`, `LimitWorkflow` | a higher limit admits at once; a lower one stops nobody |
| `RemoveLimit` | every attempt that waits is admitted |
| `AdmitWaiting` | the admissions that did not fit into one decision |

After each decision nobody waits while there is room, except for what `AdmitWaiting` has yet to admit.
"""

from typing import Final

import msgspec

from kapelle.processors.decisions import Done, unchanged
from kapelle.processors.keys import TAG
from kapelle.processors.permits.applying import NO_LIMIT
from kapelle.processors.permits.policy import has_room, is_waited_for, next_class, passed_over_after, turn_of
from kapelle.processors.permits.processor import PermitDraft, on_draft
from kapelle.processors.permits.tables import Limit, class_of, holder_key
from kapelle.processors.refusals import invalid
from kapelle.processors.wiring import PERMIT_INTERNAL, RUN_INTERNAL
from kapelle.schemas import contracts as c

ADMITTED_MAX: Final = 100  # of one decision
TAG_CHARS_MAX: Final = 256
EXTRA_CHARS_MAX: Final = 4_000
AUTHOR_CHARS_MAX: Final = 256


def _limit_of(draft: PermitDraft) -> Limit:
    return draft.state.limits.get((draft.key,)) or NO_LIMIT


# Attempts -----------------------------------------------------------------------------------------------------------


@on_draft.decides(c.RequestPermit)
def request_permit(request: c.RequestPermit, draft: PermitDraft, now_ms: int) -> None:
    """Admit an attempt, or queue it."""
    known = draft.state.permits.get(holder_key(draft.key, request.holder))
    if known is not None:
        return  # it has asked before, and has its answer or its place
    _take_limit(request, draft, now_ms)
    if request.watches and draft.state.watchers.get((draft.key, request.holder.key)) is None:
        draft.emit(c.TagWatched(limited=draft.key, key=request.holder.key, at_ms=now_ms))
    limit = _limit_of(draft)
    ticket = limit.ticket + 1
    if has_room(limit) and not is_waited_for(limit):
        draft.emit(
            c.PermitGranted(
                limited=draft.key,
                holder=request.holder,
                workflow_id=request.workflow_id,
                criticality=request.criticality,
                ticket=ticket,
                has_waited=False,
                at_ms=now_ms,
            )
        )
        _tell(draft, request.holder)
        return
    number = class_of(request.criticality)
    last = draft.state.turns.get((draft.key, number, request.workflow_id))
    draft.emit(
        c.PermitQueued(
            limited=draft.key,
            holder=request.holder,
            workflow_id=request.workflow_id,
            criticality=request.criticality,
            turn=turn_of(limit, number, None if last is None else last.turn),
            ticket=ticket,
            at_ms=now_ms,
        )
    )
    _admit(draft, now_ms)


def _take_limit(request: c.RequestPermit, draft: PermitDraft, now_ms: int) -> None:
    """The limit as the run knows it, unless a newer one is known."""
    limit = _limit_of(draft)
    if request.max is None or request.snapshot < limit.snapshot:
        return
    if (request.max, request.snapshot) != (limit.max, limit.snapshot):
        _set(draft, request.max, _Source(snapshot=request.snapshot), now_ms)


@on_draft.decides(c.ReturnPermit)
def return_permit(returned: c.ReturnPermit, draft: PermitDraft, now_ms: int) -> None:
    """Take a permit back, or the place in the queue, and admit the next attempt."""
    row = draft.state.permits.get(holder_key(draft.key, returned.holder))
    if row is None:
        return
    draft.emit(c.PermitReturned(limited=draft.key, holder=returned.holder, was_held=row.is_held, at_ms=now_ms))
    _admit(draft, now_ms)


@on_draft.decides(c.AdmitWaiting)
def admit_waiting(_: c.AdmitWaiting, draft: PermitDraft, now_ms: int) -> None:
    """Go on where a full decision has ended."""
    _admit(draft, now_ms)


def _admit(draft: PermitDraft, now_ms: int) -> None:
    for _ in range(ADMITTED_MAX):
        limit = _limit_of(draft)
        if not is_waited_for(limit) or not has_room(limit):
            return
        _admit_next(draft, limit, now_ms)
    limit = _limit_of(draft)
    if is_waited_for(limit) and has_room(limit):
        draft.send(PERMIT_INTERNAL, draft.key, c.AdmitWaiting())


def _admit_next(draft: PermitDraft, limit: Limit, now_ms: int) -> None:
    number = next_class(limit)
    found = draft.state.queue.first((draft.key, number))
    if found is None:
        raise ValueError(f"Expected an attempt that waits for {draft.key!r}, but there is none")
    (_, _, turn, ticket), waiting = found
    row = draft.state.permits.get(holder_key(draft.key, waiting.holder))
    if row is None:
        raise ValueError(f"Expected a row of ticket {ticket} of {draft.key!r}, but there is none")
    draft.emit(
        c.PermitGranted(
            limited=draft.key,
            holder=waiting.holder,
            workflow_id=waiting.workflow_id,
            criticality=row.criticality,
            ticket=ticket,
            has_waited=True,
            turn=turn,
            passed_over=passed_over_after(limit, number),
            at_ms=now_ms,
        )
    )
    _tell(draft, waiting.holder)


def _tell(draft: PermitDraft, holder: c.PermitHolder) -> None:
    limit = _limit_of(draft)
    grant = c.GrantPermit(holder=holder, limited=draft.key, is_limited=limit.max is not None, sequence=limit.sequence)
    draft.send(RUN_INTERNAL, holder.key, grant)


# Limits -------------------------------------------------------------------------------------------------------------


@on_draft.carries_out(c.SetLimit)
def set_limit(command: c.SetLimit, draft: PermitDraft, now_ms: int) -> Done:
    """Limit a tag, or change its limit."""
    _check(command, draft.key)
    if command.max < 0:
        raise invalid(f"Expected a limit of at least 0 for {draft.key}, but found {command.max}")
    if len(command.extra) > EXTRA_CHARS_MAX:
        raise invalid(
            f"Expected other keys of at most {EXTRA_CHARS_MAX:,} characters, but found {len(command.extra):,}"
        )
    if not isinstance(_decoded(command.extra), dict):
        raise invalid(f"Expected other keys as a JSON object, but found {command.extra[:80]!r}")
    limit = _limit_of(draft)
    if (limit.max, limit.extra) == (command.max, command.extra):
        return unchanged(f"The limit of {draft.key} is {command.max} already")
    source = _Source(request_id=command.request_id, author=command.author, extra=command.extra)
    _set(draft, command.max, source, now_ms)
    _admit(draft, now_ms)
    return Done(count=command.max)


@on_draft.carries_out(c.RemoveLimit)
def remove_limit(command: c.RemoveLimit, draft: PermitDraft, now_ms: int) -> Done:
    """Limit a tag no longer: every attempt that waits is admitted. Those that hold a permit stay counted."""
    _check(command, draft.key)
    limit = _limit_of(draft)
    if limit.max is None:
        return unchanged(f"There is no limit of {draft.key}")
    _remove(draft, _Source(request_id=command.request_id, author=command.author), now_ms)
    _admit(draft, now_ms)
    return Done()


@on_draft.decides(c.LimitWorkflow)
def limit_workflow(command: c.LimitWorkflow, draft: PermitDraft, now_ms: int) -> None:
    """The step concurrency of a workflow is another one."""
    limit = _limit_of(draft)
    if command.snapshot <= limit.snapshot:
        return
    source = _Source(author=command.author, snapshot=command.snapshot)
    if command.max is None:
        _remove(draft, source, now_ms)
    else:
        _set(draft, command.max, source, now_ms)
    _admit(draft, now_ms)


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _check(command: c.SetLimit | c.RemoveLimit, key: str) -> None:
    if not key.startswith(TAG):
        raise invalid(
            f"Expected the limit of a tag, but found {key!r}: change step_concurrency of the workflow's properties, "
            "or instance_step_concurrency of its definition"
        )
    for name, text, chars_max in (
        ("tag", key.removeprefix(TAG), TAG_CHARS_MAX),
        ("author", command.author, AUTHOR_CHARS_MAX),
        ("request_id", command.request_id, AUTHOR_CHARS_MAX),
    ):
        if len(text) > chars_max:
            raise invalid(f"Expected {name} of at most {chars_max} characters, but found {len(text):,}")


class _Source(msgspec.Struct, frozen=True):
    """Where a limit comes from."""

    request_id: str = ""
    author: str = ""
    extra: str = "{}"
    snapshot: int = 0


def _set(draft: PermitDraft, most: int, source: _Source, now_ms: int) -> None:
    before = _limit_of(draft)
    draft.emit(
        c.LimitSet(
            request_id=source.request_id,
            author=source.author,
            limited=draft.key,
            max=most,
            extra=source.extra,
            snapshot=source.snapshot,
            sequence=before.sequence + 1,
            at_ms=now_ms,
        )
    )
    if before.max is None:
        _tell_watchers(draft, is_limited=True)


def _remove(draft: PermitDraft, source: _Source, now_ms: int) -> None:
    draft.emit(
        c.LimitRemoved(
            request_id=source.request_id,
            author=source.author,
            limited=draft.key,
            snapshot=source.snapshot,
            sequence=_limit_of(draft).sequence + 1,
            at_ms=now_ms,
        )
    )
    _tell_watchers(draft, is_limited=False)


def _tell_watchers(draft: PermitDraft, *, is_limited: bool) -> None:
    """Tell the partitions of `runs` that have steps with this tag: at most one message for each of them."""
    sequence = _limit_of(draft).sequence
    for (_, key), _row in list(draft.state.watchers.prefix((draft.key,))):
        told = c.LearnLimit(limited=draft.key, is_limited=is_limited, sequence=sequence)
        draft.send(RUN_INTERNAL, key, told)
