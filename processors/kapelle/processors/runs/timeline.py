"""The timeline of an instance: one entry for each event of the instance, as text for users.

    entries = timeline([*workflow_events, *run_events])
    entry = entry_of(event)          # None if the event belongs to no timeline

This module is the only place that words entries. The view stores them, and the test kit shows them.

| type | what the entry says |
|---|---|
| STATUS | the instance or the step has a new status |
| ACTION | a person did something |
| LOG | anything else: a message of a worker, a loop, a signal, a refused report, a child |
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, StepStatus

# The order of entries of the same millisecond that stand in different streams.
PHASE_BEFORE: Final = 0
PHASE_RUN: Final = 1
PHASE_AFTER: Final = 2
CHILDREN: Final = {ChildKind.FOREACH: "iteration", ChildKind.WHILE: "round"}
BODIES_CACHED: Final = 1_024  # most runs and steps have the same statuses and no reasons


class EntryType(StrEnum):
    """The kind of an entry."""

    STATUS = "STATUS"
    ACTION = "ACTION"
    LOG = "LOG"


class Body(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The content of an entry, without its time and its subject. An absent field is None, never empty."""

    status: InstanceStatus | StepStatus | None = None
    statuses: tuple[StepStatus, ...] | None = None
    action: Action | None = None
    author: str | None = None
    worker: str | None = None
    message: str | None = None
    signal_id: str | None = None
    restart: str | None = None
    children: int | None = None  # how many a composite step has launched

    @property
    def text(self) -> str:
        """The content on one line: status, action and author, message, worker."""
        action = f"{self.action} by {self.author}" if self.action and self.author else self.action
        worker = f"[{self.worker}]" if self.worker else None
        return "  ".join(str(part) for part in (self.status, action, self.message, worker) if part)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One line of a timeline. Its subject is a step if it has a `step_id`, else the instance."""

    at_ms: int
    type: EntryType
    body: Body
    run_id: int | None = None
    instance_id: int | None = None  # in events of workflows, whose key does not contain it
    step_id: str | None = None
    attempt: int | None = None
    iteration: int | None = None
    phase: int = PHASE_RUN


def timeline(events: Iterable[object]) -> list[Entry]:
    """The entries of the events of one instance, by time, run and phase; otherwise in the given order."""
    entries: list[tuple[tuple[int, int, int], Entry]] = []
    run_id = 0
    for event in events:
        entry = entry_of(event)
        if entry is not None:
            run_id = entry.run_id or run_id  # an entry without a run stays with the one before it
            entries.append(((entry.at_ms, run_id, entry.phase), entry))
    return [entry for _, entry in sorted(entries, key=lambda placed: placed[0])]


def entry_of(event: object) -> Entry | None:
    """The entry of an event, or None if the event belongs to no timeline."""
    word = WORDED.get(type(event))
    return None if word is None else word(event)


def signals_text(names: Sequence[str]) -> str:
    """Names of signals, as a sentence shows them."""
    return f"signal{'s' * (len(names) != 1)} {', '.join(repr(name) for name in names)}"


@lru_cache(BODIES_CACHED)
def _instance_body(status: InstanceStatus, message: str) -> Body:
    return Body(status=status, message=message or None)


@lru_cache(BODIES_CACHED)
def _step_body(statuses: tuple[StepStatus, ...], worker: str | None, message: str) -> Body:
    return Body(status=statuses[-1], statuses=statuses, worker=worker or None, message=message or None)


def _action_body(action: Action, author: str, reason: str) -> Body:
    return Body(action=action, author=author or None, message=reason or None)


# Events of workflows --------------------------------------------------------------------------------------------------

_LAUNCHED: Final = Body(message="The run left the queue")


def _created(event: c.InstanceCreated) -> Entry:
    message = event.reason or _started_by(event.parent)
    body = Body(status=event.status, author=event.author or None, message=message or None)
    return Entry(event.at_ms, EntryType.STATUS, body, event.run_id, event.instance_id, phase=PHASE_BEFORE)


def _started_by(parent: c.Parent | None) -> str:
    return "" if parent is None else f"Started by step {parent.step_id!r} of {parent.key}"


def _launched(event: c.InstanceLaunched) -> Entry:
    return Entry(event.at_ms, EntryType.LOG, _LAUNCHED, event.run_id, event.instance_id, phase=PHASE_BEFORE)


def _ended(event: c.InstanceEnded) -> Entry | None:
    if event.was_launched:
        return None  # `RunEnded` says so
    body = _instance_body(event.status, event.reason)
    return Entry(event.at_ms, EntryType.STATUS, body, event.run_id, event.instance_id, phase=PHASE_AFTER)


def _termination_requested(event: c.TerminationRequested) -> Entry:
    body = _action_body(event.action, event.author, event.reason)
    return Entry(event.at_ms, EntryType.ACTION, body, event.run_id, event.instance_id, phase=PHASE_BEFORE)


def _unblocked(event: c.InstanceUnblocked) -> Entry:
    body = _action_body(Action.UNBLOCK, event.author, event.reason)
    return Entry(event.at_ms, EntryType.ACTION, body, None, event.instance_id, phase=PHASE_AFTER)


# Events of runs -------------------------------------------------------------------------------------------------------


def _run_started(event: c.RunStarted) -> Entry:
    """An iteration or a round has no queue: its run is the first that is known of it."""
    is_inline = event.parent is not None and event.parent.kind in CHILDREN
    body = _instance_body(InstanceStatus.IN_PROGRESS, _started_by(event.parent) if is_inline else "")
    return Entry(event.at_ms, EntryType.STATUS, body, event.run_id)


def _run_ended(event: c.RunEnded) -> Entry:
    message = event.reason
    if event.run_status is not event.status:
        message = f"The status of this run alone is {event.run_status}" + (f": {message}" if message else "")
    return Entry(event.at_ms, EntryType.STATUS, _instance_body(event.status, message), event.run_id)


def _step_changed(event: c.StepChanged) -> Entry:
    message = event.reason if not event.permits else event.reason or f"The step needs {_permits_text(event.permits)}"
    body = _step_body(event.statuses, event.worker, message)
    return Entry(event.at_ms, EntryType.STATUS, body, event.run_id, None, event.step_id, event.attempt, event.iteration)


def _permits_text(keys: Sequence[str]) -> str:
    return f"a permit of {', then of '.join(keys)}"


def _permit_received(event: c.PermitReceived) -> Entry:
    body = Body(message=f"The step received a permit of {event.limited}")
    return Entry(event.at_ms, EntryType.LOG, body, event.run_id, None, event.step_id, event.attempt, event.iteration)


def _breakpoints_changed(event: c.BreakpointsChanged) -> Entry:
    steps = ", ".join(sorted({repr(each.step_id) for each in event.breakpoints}))
    text = f"The run has breakpoints on {steps} from now on" if steps else "The run has no breakpoints from now on"
    return Entry(event.at_ms, EntryType.LOG, Body(message=text), event.run_id)


def _of_step(event: c.DependenciesSet | c.DependencyMatched | c.StepLogged, body: Body) -> Entry:
    return Entry(event.at_ms, EntryType.LOG, body, event.run_id, None, event.step_id, event.attempt, event.iteration)


def _step_logged(event: c.StepLogged) -> Entry:
    return _of_step(event, Body(worker=event.worker or None, message=event.text or None))


def _dependencies_set(event: c.DependenciesSet) -> Entry:
    return _of_step(event, Body(message=f"The step waits for {signals_text(event.names)}"))


def _dependency_matched(event: c.DependencyMatched) -> Entry:
    what = "received" if event.signal_id else "no longer waits for"
    body = Body(message=f"The step {what} signal {event.name!r}", signal_id=event.signal_id or None)
    return _of_step(event, body)


def _loop_entered(event: c.LoopEntered) -> Entry:
    iteration = event.iterations[event.header]
    body = Body(message=f"The loop of {event.header!r} began iteration {iteration}")
    return Entry(event.at_ms, EntryType.LOG, body, event.run_id, step_id=event.header, iteration=iteration)


def _loop_ended(event: c.LoopEnded) -> Entry:
    body = Body(message=f"The loop of {event.header!r} ended after iteration {event.iteration}")
    return Entry(event.at_ms, EntryType.LOG, body, event.run_id, step_id=event.header, iteration=event.iteration)


def _report_refused(event: c.ReportRefused) -> Entry:
    body = Body(worker=event.worker or None, message=f"The report {event.report} was refused: {event.reason}")
    return Entry(event.at_ms, EntryType.LOG, body, step_id=event.step_id)


def _action_taken(event: c.ActionTaken) -> Entry:
    body = _action_body(event.action, event.author, event.reason)
    return Entry(event.at_ms, EntryType.ACTION, body, event.run_id, step_id=event.step_id)


def _restart_requested(event: c.RestartRequested) -> Entry:
    body = Body(action=Action.RESTART, author=event.author or None, restart=event.restart or None)
    return Entry(event.at_ms, EntryType.ACTION, body, event.run_id)


# Events of children ---------------------------------------------------------------------------------------------------
#
# Children of a step are counted, because there may be thousands. Each child has a timeline of its own.

OfAttempt = c.ChildrenPlanned | c.ChildrenLaunched | c.ChildStarted | c.ChildEnded | c.StepEnding


def _of_children(event: OfAttempt, message: str, children: int | None = None) -> Entry:
    body = Body(message=message, children=children)
    return Entry(event.at_ms, EntryType.LOG, body, event.run_id, None, event.step_id, event.attempt, event.iteration)


def _children_planned(event: c.ChildrenPlanned) -> Entry | None:
    """Not of a subworkflow, which always has one child."""
    what = CHILDREN.get(event.kind)
    if what is None:
        return None
    limit = "at most " if event.kind is ChildKind.WHILE else ""
    text = f"The step has {limit}{event.total:,} {what}{'s' * (event.total != 1)}"
    if event.kind is ChildKind.FOREACH and event.window:
        text += f", at most {event.window:,} at a time"
    if event.kept_since < event.fan_run:
        text += "; those that succeeded in an earlier run are kept"
    return _of_children(event, text)


def _children_launched(event: c.ChildrenLaunched) -> Entry | None:
    if event.child:
        return _of_children(event, f"The step requested an instance of {event.child!r}", children=1)
    numbers = event.numbers
    if not numbers:
        return None
    which = f"child {numbers[0]:,}" if len(numbers) == 1 else f"{len(numbers):,} children from {numbers[0]:,} on"
    return _of_children(event, f"The step launched {which}", children=len(numbers))


def _child_started(event: c.ChildStarted) -> Entry:
    return _of_children(event, f"{event.child} run {event.child_run_id:,} was created")


def _child_ended(event: c.ChildEnded) -> Entry | None:
    if event.status is InstanceStatus.SUCCEEDED:
        return None
    return _of_children(event, f"Child {event.number:,} {event.status}{_because(event.reason)}")


def _step_ending(event: c.StepEnding) -> Entry:
    text = f"The step will be {event.status} when its children have ended{_because(event.reason)}"
    return _of_children(event, text)


def _run_ending(event: c.RunEnding) -> Entry:
    text = f"The run will be {event.status} when the children of its steps have ended{_because(event.reason)}"
    return Entry(event.at_ms, EntryType.LOG, Body(message=text), event.run_id)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


WORDED: Final[Mapping[type[object], Callable[[Any], Entry | None]]] = {
    c.InstanceCreated: _created,
    c.InstanceLaunched: _launched,
    c.InstanceEnded: _ended,
    c.InstanceUnblocked: _unblocked,
    c.TerminationRequested: _termination_requested,
    c.RunStarted: _run_started,
    c.RunEnded: _run_ended,
    c.StepChanged: _step_changed,
    c.StepLogged: _step_logged,
    c.PermitReceived: _permit_received,
    c.BreakpointsChanged: _breakpoints_changed,
    c.DependenciesSet: _dependencies_set,
    c.DependencyMatched: _dependency_matched,
    c.ReportRefused: _report_refused,
    c.LoopEntered: _loop_entered,
    c.LoopEnded: _loop_ended,
    c.ActionTaken: _action_taken,
    c.RestartRequested: _restart_requested,
    c.ChildrenPlanned: _children_planned,
    c.ChildrenLaunched: _children_launched,
    c.ChildStarted: _child_started,
    c.ChildEnded: _child_ended,
    c.StepEnding: _step_ending,
    c.RunEnding: _run_ending,
}
