"""Decisions about limits: people limit tags, and workflows bring the limits that they are defined with.

The limit of a workflow comes with the number of its properties, by `LimitWorkflow` and with every request. The highest
number that was seen counts, whichever way it came. The limit of a tree comes with the requests alone.
"""

from typing import Final

import msgspec

from kapelle.processors.decisions import Done, unchanged
from kapelle.processors.keys import TAG
from kapelle.processors.permits.admission import admit_waiting, limit_of
from kapelle.processors.permits.processor import PermitDraft, on_draft
from kapelle.processors.refusals import invalid
from kapelle.processors.wiring import RUN_INTERNAL
from kapelle.schemas import contracts as c

TAG_CHARS_MAX: Final = 256
EXTRA_CHARS_MAX: Final = 4_000
AUTHOR_CHARS_MAX: Final = 256


class _Source(msgspec.Struct, frozen=True):
    """Where a limit comes from."""

    request_id: str = ""
    author: str = ""
    extra: str = "{}"
    snapshot: int = 0


# Requests of people -------------------------------------------------------------------------------------------------


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
    if not _is_object(command.extra):
        raise invalid(f"Expected other keys as a JSON object, but found {command.extra[:80]!r}")
    limit = limit_of(draft)
    if (limit.max, limit.extra) == (command.max, command.extra):
        return unchanged(f"The limit of {draft.key} is {command.max} already")
    source = _Source(request_id=command.request_id, author=command.author, extra=command.extra)
    _set(draft, command.max, source, now_ms)
    return Done()


@on_draft.carries_out(c.RemoveLimit)
def remove_limit(command: c.RemoveLimit, draft: PermitDraft, now_ms: int) -> Done:
    """Limit a tag no longer: every attempt that waits is admitted. Those that hold a permit stay counted."""
    _check(command, draft.key)
    if limit_of(draft).max is None:
        return unchanged(f"There is no limit of {draft.key}")
    _remove(draft, _Source(request_id=command.request_id, author=command.author), now_ms)
    return Done()


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


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


# Limits that workflows bring ----------------------------------------------------------------------------------------


@on_draft.decides(c.LimitWorkflow)
def limit_workflow(command: c.LimitWorkflow, draft: PermitDraft, now_ms: int) -> None:
    """The step concurrency of a workflow has changed."""
    if command.snapshot <= limit_of(draft).snapshot:
        return
    source = _Source(author=command.author, snapshot=command.snapshot)
    if command.max is None:
        _remove(draft, source, now_ms)
    else:
        _set(draft, command.max, source, now_ms)


def take_over(request: c.RequestPermit, draft: PermitDraft, now_ms: int) -> None:
    """Set the limit that comes with a request, unless a newer one is known."""
    limit = limit_of(draft)
    if request.max is None or request.snapshot < limit.snapshot:
        return
    if (request.max, request.snapshot) != (limit.max, limit.snapshot):
        _set(draft, request.max, _Source(snapshot=request.snapshot), now_ms)


# What follows from a change -----------------------------------------------------------------------------------------


def _set(draft: PermitDraft, most: int, source: _Source, now_ms: int) -> None:
    before = limit_of(draft)
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
    admit_waiting(draft, now_ms)


def _remove(draft: PermitDraft, source: _Source, now_ms: int) -> None:
    draft.emit(
        c.LimitRemoved(
            request_id=source.request_id,
            author=source.author,
            limited=draft.key,
            snapshot=source.snapshot,
            sequence=limit_of(draft).sequence + 1,
            at_ms=now_ms,
        )
    )
    _tell_watchers(draft, is_limited=False)
    admit_waiting(draft, now_ms)


def _tell_watchers(draft: PermitDraft, *, is_limited: bool) -> None:
    """Tell the partitions of `runs` that have steps with this tag: at most one message for each of them."""
    sequence = limit_of(draft).sequence
    for (_, key), _row in list(draft.state.watchers.prefix((draft.key,))):
        news = c.LearnLimit(limited=draft.key, is_limited=is_limited, sequence=sequence)
        draft.send(RUN_INTERNAL, key, news)
