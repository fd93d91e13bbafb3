"""The timeline of an instance: what happened to it and to its steps, in order, told for people.

    entries = timeline([*workflow_events, *run_events])
    entries = timeline(events, newest=32)          # of each subject the newest ones

| type | what it tells |
|---|---|
| STATUS | the subject is in this state now |
| DETAILS | why, or something else that is good to know: a refusal, what a step logs, a loop, a restart in the queue |
| ACTION | somebody did something |

A subject is the instance, or an attempt at a step in an iteration. Of neighbours that tell the same only the first is
kept, so what repeats itself does not push the rest out. Events of other instances are passed over.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus

NEWEST: Final = 32


class EntryType(StrEnum):
    """What an entry tells."""

    STATUS = "STATUS"
    DETAILS = "DETAILS"
    ACTION = "ACTION"


class Subject(msgspec.Struct, frozen=True, order=True):
    """Whom an entry is about: an attempt at a step, or, without a step, the instance."""

    run_id: int
    step_id: str | None = None
    iteration: int = 0
    attempt: int = 0


class Entry(msgspec.Struct, frozen=True):
    """One line of a timeline."""

    at_ms: int
    type: EntryType
    subject: Subject
    text: str
    status: str | None = None
    author: str | None = None


def timeline(events: Iterable[Any], *, newest: int | None = None) -> list[Entry]:
    """The entries of the events of one instance, by time; events of the same time stay in the order that they have."""
    attempts: dict[str, Subject] = {}  # the attempt at each step that is told of: words and actions do not name it
    found: list[Entry] = []
    for event in events:
        if isinstance(event, c.StepChanged):
            attempts[event.step_id] = _attempt(event)
        tell = TOLD.get(type(event))
        if tell is not None:
            found.extend(tell(event, attempts))
    found.sort(key=lambda entry: entry.at_ms)
    kept = _without_echoes(found)
    return kept if newest is None else _newest(kept, newest)


def _without_echoes(entries: list[Entry]) -> list[Entry]:
    """Of entries about one subject that tell the same one after the other, the first."""
    last: dict[Subject, Entry] = {}
    kept = []
    for entry in entries:
        before = last.get(entry.subject)
        if before is None or msgspec.structs.replace(before, at_ms=entry.at_ms) != entry:
            kept.append(entry)
        last[entry.subject] = entry
    return kept


def _newest(entries: list[Entry], count: int) -> list[Entry]:
    left: dict[Subject, int] = defaultdict(lambda: count)
    kept = []
    for entry in reversed(entries):
        left[entry.subject] -= 1
        if left[entry.subject] >= 0:
            kept.append(entry)
    return kept[::-1]


Attempts = Mapping[str, Subject]


def _attempt(event: c.StepChanged) -> Subject:
    return Subject(event.run_id, event.step_id, event.iteration, event.attempt)


def _status(at_ms: int, subject: Subject, status: StepStatus | InstanceStatus, reason: str = "") -> Iterator[Entry]:
    yield Entry(at_ms, EntryType.STATUS, subject, str(status), status=str(status))
    if reason:
        yield Entry(at_ms, EntryType.DETAILS, subject, reason, status=str(status))


def _created(event: c.InstanceCreated, _: Attempts) -> Iterator[Entry]:
    subject = Subject(event.run_id)
    what = "started" if event.restart is None else "restarted"
    yield Entry(event.at_ms, EntryType.ACTION, subject, f"{event.author} {what} it", author=event.author)
    yield from _status(event.at_ms, subject, event.status, event.reason)


def _launched(event: c.InstanceLaunched, _: Attempts) -> Iterator[Entry]:
    yield Entry(event.at_ms, EntryType.DETAILS, Subject(event.run_id), "It left the queue")


def _run_started(event: c.RunStarted, _: Attempts) -> Iterator[Entry]:
    yield from _status(event.at_ms, Subject(event.run_id), InstanceStatus.IN_PROGRESS)


def _run_ended(event: c.RunEnded, _: Attempts) -> Iterator[Entry]:
    yield from _status(event.at_ms, Subject(event.run_id), event.status, event.reason)
    if event.run_status is not event.status:
        text = f"The run {event.run_status}, but of all runs together the instance is {event.status}"
        yield Entry(event.at_ms, EntryType.DETAILS, Subject(event.run_id), text, status=str(event.status))


def _ended(event: c.InstanceEnded, _: Attempts) -> Iterator[Entry]:
    """Only of runs that never left the queue: the others have told of their end themselves."""
    if not event.was_launched:
        yield from _status(event.at_ms, Subject(event.run_id), event.status, event.reason)


def _step_changed(event: c.StepChanged, _: Attempts) -> Iterator[Entry]:
    subject = _attempt(event)
    for status in event.statuses:
        yield from _status(event.at_ms, subject, status)
    if event.reason:
        yield Entry(event.at_ms, EntryType.DETAILS, subject, event.reason, status=str(event.statuses[-1]))
    if event.worker is not None and event.statuses[-1] is StepStatus.RUNNING:
        yield Entry(event.at_ms, EntryType.DETAILS, subject, f"The worker {event.worker!r} has it")


def _step_logged(event: c.StepLogged, _: Attempts) -> Iterator[Entry]:
    subject = Subject(event.run_id, event.step_id, event.iteration, event.attempt)
    yield Entry(event.at_ms, EntryType.DETAILS, subject, event.text)


def _report_refused(event: c.ReportRefused, attempts: Attempts) -> Iterator[Entry]:
    subject = attempts.get(event.step_id)
    if subject is not None:
        text = f"{event.report} of {event.worker!r} was refused: {event.reason}"
        yield Entry(event.at_ms, EntryType.DETAILS, subject, text)


def _loop_entered(event: c.LoopEntered, _: Attempts) -> Iterator[Entry]:
    text = f"The loop of {event.header!r} began iteration {event.iterations[event.header]:,}"
    yield Entry(event.at_ms, EntryType.DETAILS, Subject(event.run_id), text)


def _loop_ended(event: c.LoopEnded, _: Attempts) -> Iterator[Entry]:
    text = f"The loop of {event.header!r} ended with iteration {event.iteration:,}"
    yield Entry(event.at_ms, EntryType.DETAILS, Subject(event.run_id), text)


def _action_taken(event: c.ActionTaken, attempts: Attempts) -> Iterator[Entry]:
    """Only of steps: what is done to an instance has been told when it was asked for."""
    if event.step_id is not None:
        subject = attempts.get(event.step_id, Subject(event.run_id))
        yield _action(event.at_ms, subject, (event.author, str(event.action)), event.reason)


def _action(at_ms: int, subject: Subject, who_and_what: tuple[str, str], reason: str) -> Entry:
    author, action = who_and_what
    text = f"{author} asked for {action}" + (f": {reason}" if reason else "")
    return Entry(at_ms, EntryType.ACTION, subject, text, author=author)


def _termination_requested(event: c.TerminationRequested, _: Attempts) -> Iterator[Entry]:
    yield _action(event.at_ms, Subject(event.run_id), (event.author, str(event.action)), event.reason)


def _unblocked(event: c.InstanceUnblocked, attempts: Attempts) -> Iterator[Entry]:
    latest = max((one.run_id for one in attempts.values()), default=1)
    yield _action(event.at_ms, Subject(latest), (event.author, "UNBLOCK"), event.reason)


def _restart_requested(event: c.RestartRequested, _: Attempts) -> Iterator[Entry]:
    yield _action(event.at_ms, Subject(event.run_id), (event.author, "RESTART"), "")


TOLD: Final[Mapping[type[Any], Callable[[Any, Attempts], Iterator[Entry]]]] = {
    c.InstanceCreated: _created,
    c.InstanceLaunched: _launched,
    c.InstanceEnded: _ended,
    c.InstanceUnblocked: _unblocked,
    c.TerminationRequested: _termination_requested,
    c.RunStarted: _run_started,
    c.RunEnded: _run_ended,
    c.StepChanged: _step_changed,
    c.StepLogged: _step_logged,
    c.ReportRefused: _report_refused,
    c.LoopEntered: _loop_entered,
    c.LoopEnded: _loop_ended,
    c.ActionTaken: _action_taken,
    c.RestartRequested: _restart_requested,
}
