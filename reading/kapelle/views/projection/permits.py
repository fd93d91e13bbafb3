"""The changes that events of permits make to the view. All events of a limit are on one partition, in order."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kapelle.processors.permits.tables import class_of
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.projection.at import At
from kapelle.views.projection.workflows import command_refused, command_settled
from kapelle.views.rows import Cell, Cells, Key, Rows
from kapelle.views.schema_gates import GONE, HOLDS, TREES, WAITS

ENGINE: Final = "kapelle"  # the author of a limit that a definition contains
PermitEvent = c.PermitQueued | c.PermitGranted | c.PermitReturned


def kind_of(limited: str) -> str:
    """What is limited: tag, workflow or tree."""
    return limited.partition("/")[0]


def _limit(rows: Rows, limited: str, **cells: Cell) -> None:
    rows.put("limits", (limited,), cells, {"kind": kind_of(limited)})


def _note(rows: Rows, entry: Entry, event: c.LimitSet | c.LimitRemoved, log: str) -> None:
    """Trees come and go with their instances: nobody changes their limits."""
    if kind_of(event.limited) != TREES:
        cells: Cells = {"author": event.author or ENGINE, "log": log, "at_ms": event.at_ms}
        rows.put("limit_notes", (event.limited, entry.offset), cells)


def _limit_set(rows: Rows, entry: Entry, event: c.LimitSet) -> None:
    _limit(rows, event.limited, max=event.max, author=event.author, extra=event.extra, set_at_ms=event.at_ms)
    _note(rows, entry, event, f"Set the limit to {event.max}")


def _limit_removed(rows: Rows, entry: Entry, event: c.LimitRemoved) -> None:
    _limit(rows, event.limited, max=None, author=event.author, extra=None, set_at_ms=event.at_ms)
    _note(rows, entry, event, "Removed the limit")


def _permit_key(event: PermitEvent) -> Key:
    holder = event.holder
    return (event.limited, holder.key, holder.step_id, holder.run_id, holder.iteration, holder.attempt)


def _asked(event: c.PermitQueued | c.PermitGranted) -> Cells:
    return {
        "kind": kind_of(event.limited),
        "workflow_id": event.workflow_id,
        "class": class_of(event.criticality),
        "turn": event.turn,
        "ticket": event.ticket,
    }


def _permit_queued(rows: Rows, _: Entry, event: c.PermitQueued) -> None:
    _limit(rows, event.limited)
    cells: Cells = {**_asked(event), "state": WAITS, "queued_at_ms": event.at_ms, "granted_at_ms": None}
    rows.put("permits", _permit_key(event), cells)


def _permit_granted(rows: Rows, _: Entry, event: c.PermitGranted) -> None:
    _limit(rows, event.limited)
    cells: Cells = {**_asked(event), "state": HOLDS, "granted_at_ms": event.at_ms}
    if not event.has_waited:
        cells["queued_at_ms"] = None
    rows.put("permits", _permit_key(event), cells)


def _permit_returned(rows: Rows, _: Entry, event: c.PermitReturned) -> None:
    _limit(rows, event.limited)
    rows.put("permits", _permit_key(event), {"state": GONE})


def _tag_watched(_: Rows, __: Entry, ___: c.TagWatched) -> None:
    """Which partitions of `runs` are told of limits is of no interest to people."""


def _admissions_left(_: Rows, __: Entry, ___: c.AdmissionsLeft) -> None:
    """Those that are still to be admitted wait until then."""


def _at(entry: Entry) -> At:
    """What is limited stands in place of a workflow. No workflow can have such an id."""
    return At(entry.stream, entry.partition, entry.offset, entry.key, None)


def _settled(rows: Rows, entry: Entry, event: c.CommandSettled) -> None:
    command_settled(rows, _at(entry), event)


def _refused(rows: Rows, entry: Entry, event: c.CommandRefused) -> None:
    command_refused(rows, _at(entry), event)


OF_PERMITS: Final[Mapping[type[object], Callable[[Rows, Entry, Any], None]]] = {
    c.LimitSet: _limit_set,
    c.LimitRemoved: _limit_removed,
    c.PermitQueued: _permit_queued,
    c.PermitGranted: _permit_granted,
    c.PermitReturned: _permit_returned,
    c.TagWatched: _tag_watched,
    c.AdmissionsLeft: _admissions_left,
    c.CommandSettled: _settled,
    c.CommandRefused: _refused,
}
