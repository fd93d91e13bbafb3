"""The changes that events of triggers make to the view. All events of a trigger are on one partition, in order."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.projection.at import as_json
from kapelle.views.rows import Cells, Rows

KEPT: Final = "KEPT"
FIRED: Final = "FIRED"
SKIPPED: Final = "SKIPPED"
PASSED_OVER: Final = "PASSED_OVER"
EXPIRED: Final = "EXPIRED"
DROPPED: Final = "DROPPED"


def _trigger(entry: Entry) -> tuple[str, str]:
    """The key of a trigger: a workflow id holds no slash."""
    workflow_id, _, trigger_id = entry.key.partition("/")
    return workflow_id, trigger_id


class _Judged(Protocol):
    """An event about a signal that a trigger was offered."""

    @property
    def join_value(self) -> str | None: ...

    @property
    def at_ms(self) -> int: ...


def _verdict(rows: Rows, entry: Entry, event: _Judged, at: tuple[str, int], cells: Cells) -> None:
    cells |= {"join_value": event.join_value, "at_ms": event.at_ms, "position": entry.offset}
    rows.put("trigger_signals", (*_trigger(entry), *at), cells)


def _set(rows: Rows, entry: Entry, event: c.TriggerSet) -> None:
    cells: Cells = {
        "version": event.version,
        "definition": event.definition,
        "is_armed": 1,
        "armed_at_ms": event.at_ms,
    }
    rows.put("triggers", _trigger(entry), cells)


def _removed(rows: Rows, entry: Entry, event: c.TriggerRemoved) -> None:
    workflow_id, trigger_id = _trigger(entry)
    where: Cells = {"workflow_id": workflow_id, "trigger_id": trigger_id}
    rows.amend("triggers", where, {"is_armed": 0, "disarmed_at_ms": event.at_ms})
    # It forgets all that it has kept, and tells how much of it as it goes.
    reason = "The trigger was disarmed, and the signals that it kept were removed"
    dropped: Cells = {"verdict": DROPPED, "reason": reason, "at_ms": event.at_ms, "position": entry.offset}
    rows.amend("trigger_signals", {**where, "verdict": KEPT}, dropped)


def _dropped(_: Rows, __: Entry, ___: c.KeptDropped) -> None:
    """That it would be so was known when the trigger was removed."""


def _kept(rows: Rows, entry: Entry, event: c.SignalKept) -> None:
    cells: Cells = {"verdict": KEPT, "expires_at_ms": event.expires_at_ms, "reason": None}
    _verdict(rows, entry, event, (event.name, event.sequence), cells)


def _passed_over(rows: Rows, entry: Entry, event: c.SignalPassedOver) -> None:
    cells: Cells = {"verdict": PASSED_OVER, "reason": event.reason}
    _verdict(rows, entry, event, (event.name, event.sequence), cells)


def _expired(rows: Rows, entry: Entry, event: c.SignalExpired) -> None:
    cells: Cells = {"verdict": EXPIRED, "reason": "Its partners did not arrive in time"}
    _verdict(rows, entry, event, (event.name, event.sequence), cells)


def _fired(rows: Rows, entry: Entry, event: c.TriggerFired) -> None:
    _used(rows, entry, event, {"verdict": FIRED, "request_id": event.request_id, "reason": None})


def _skipped(rows: Rows, entry: Entry, event: c.FiringSkipped) -> None:
    _used(rows, entry, event, {"verdict": SKIPPED, "reason": event.reason})


def _used(rows: Rows, entry: Entry, event: c.TriggerFired | c.FiringSkipped, cells: Cells) -> None:
    used = {signal.name: signal.sequence for signal in event.signals}
    for at in used.items():
        partners = as_json({name: sequence for name, sequence in used.items() if name != at[0]})
        _verdict(rows, entry, event, at, {**cells, "partners": partners})


OF_TRIGGERS: Final[Mapping[type[object], Callable[[Rows, Entry, Any], None]]] = {
    c.TriggerSet: _set,
    c.TriggerRemoved: _removed,
    c.KeptDropped: _dropped,
    c.SignalKept: _kept,
    c.SignalPassedOver: _passed_over,
    c.SignalExpired: _expired,
    c.TriggerFired: _fired,
    c.FiringSkipped: _skipped,
}
