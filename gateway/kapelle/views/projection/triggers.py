"""What the events of triggers do to the view. All events of a trigger stand on one partition, in order."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.changes import Amend, Cell, Change, Put
from kapelle.views.projection.at import as_json

Changes = Iterator[Change]

KEPT: Final = "KEPT"
FIRED: Final = "FIRED"
SKIPPED: Final = "SKIPPED"
PASSED_OVER: Final = "PASSED_OVER"
EXPIRED: Final = "EXPIRED"
DROPPED: Final = "DROPPED"


def _trigger(entry: Entry) -> dict[str, Cell]:
    """The key of a trigger: a workflow id holds no slash."""
    workflow_id, _, trigger_id = entry.key.partition("/")
    return {"workflow_id": workflow_id, "trigger_id": trigger_id}


def _verdict(entry: Entry, event: Any, at: tuple[str, int], verdict: str, **cells: Cell) -> Put:
    name, sequence = at
    key: dict[str, Cell] = {**_trigger(entry), "name": name, "sequence": sequence}
    return Put("trigger_signals", key, {"verdict": verdict, **cells, "at_ms": event.at_ms, "position": entry.offset})


def _set(entry: Entry, event: c.TriggerSet) -> Changes:
    cells: dict[str, Cell] = {
        "version": event.version,
        "definition": event.definition,
        "is_armed": 1,
        "armed_at_ms": event.at_ms,
    }
    yield Put("triggers", _trigger(entry), cells)


def _removed(entry: Entry, event: c.TriggerRemoved) -> Changes:
    yield Amend("triggers", _trigger(entry), {"is_armed": 0, "disarmed_at_ms": event.at_ms})
    # It forgets all that it has kept, and tells how much of it as it goes.
    reason = "The trigger was disarmed, and has forgotten what it had kept"
    yield Amend(
        "trigger_signals",
        {**_trigger(entry), "verdict": KEPT},
        {"verdict": DROPPED, "reason": reason, "at_ms": event.at_ms, "position": entry.offset},
    )


def _dropped(_: Entry, __: c.KeptDropped) -> Changes:
    """That it would be so was known when the trigger was removed."""
    yield from ()


def _kept(entry: Entry, event: c.SignalKept) -> Changes:
    at = (event.name, event.sequence)
    yield _verdict(entry, event, at, KEPT, join_value=event.join_value, expires_at_ms=event.expires_at_ms, reason=None)


def _passed_over(entry: Entry, event: c.SignalPassedOver) -> Changes:
    at = (event.name, event.sequence)
    yield _verdict(entry, event, at, PASSED_OVER, join_value=event.join_value, reason=event.reason)


def _expired(entry: Entry, event: c.SignalExpired) -> Changes:
    at = (event.name, event.sequence)
    reason = "Its partners did not come in time"
    yield _verdict(entry, event, at, EXPIRED, join_value=event.join_value, reason=reason)


def _fired(entry: Entry, event: c.TriggerFired) -> Changes:
    yield from _used(entry, event, FIRED, request_id=event.request_id, reason=None)


def _skipped(entry: Entry, event: c.FiringSkipped) -> Changes:
    yield from _used(entry, event, SKIPPED, reason=event.reason)


def _used(entry: Entry, event: c.TriggerFired | c.FiringSkipped, verdict: str, **cells: Cell) -> Changes:
    used = {one.name: one.sequence for one in event.signals}
    for at in used.items():
        partners = as_json({name: sequence for name, sequence in used.items() if name != at[0]})
        yield _verdict(entry, event, at, verdict, join_value=event.join_value, partners=partners, **cells)


OF_TRIGGERS: Final[Mapping[type[Any], Callable[[Entry, Any], Changes]]] = {
    c.TriggerSet: _set,
    c.TriggerRemoved: _removed,
    c.KeptDropped: _dropped,
    c.SignalKept: _kept,
    c.SignalPassedOver: _passed_over,
    c.SignalExpired: _expired,
    c.TriggerFired: _fired,
    c.FiringSkipped: _skipped,
}
