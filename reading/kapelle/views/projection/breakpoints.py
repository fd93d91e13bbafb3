"""What the view makes of breakpoints: those of a workflow, and a line of its timeline for each change."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kapelle.schemas import contracts as c
from kapelle.views.projection.at import At
from kapelle.views.rows import Cells, Key, Rows

EVERY: Final = 0  # in place of a version, an instance, a run or an attempt


def breakpoint_key(workflow_id: str, breakpoint_: c.Breakpoint) -> Key:
    """The key of the row of a breakpoint: two with the same fields are one."""
    return (
        workflow_id,
        breakpoint_.step_id,
        breakpoint_.version or EVERY,
        breakpoint_.instance_id or EVERY,
        breakpoint_.run_id or EVERY,
        breakpoint_.attempt or EVERY,
    )


def where_text(breakpoint_: c.Breakpoint) -> str:
    """What a breakpoint matches, for people."""
    parts = [
        ("version", breakpoint_.version),
        ("instance", breakpoint_.instance_id),
        ("run", breakpoint_.run_id),
        ("attempt", breakpoint_.attempt),
    ]
    precision = ", ".join(f"{name} {number}" for name, number in parts if number is not None)
    return f"step {breakpoint_.step_id!r}{f' ({precision})' if precision else ''}"


def _note(rows: Rows, at: At, event: c.BreakpointSet | c.BreakpointDeleted, *, author: str, log: str) -> None:
    rows.put("notes", (at.workflow_id, at.offset), {"author": author, "log": log, "at_ms": event.at_ms})


def _breakpoint_set(rows: Rows, at: At, event: c.BreakpointSet) -> None:
    set_ = event.breakpoint
    rows.put("breakpoints", breakpoint_key(at.workflow_id, set_), {"author": set_.author, "at_ms": set_.at_ms})
    _note(rows, at, event, author=set_.author, log=f"Set a breakpoint on {where_text(set_)}")


def _breakpoint_deleted(rows: Rows, at: At, event: c.BreakpointDeleted) -> None:
    names = ("workflow_id", "step_id", "version", "instance_id", "run_id", "attempt")
    key = breakpoint_key(at.workflow_id, event.breakpoint)
    where: Cells = dict(zip(names, key, strict=True))
    rows.erase("breakpoints", where)
    stays = "" if event.resume else "; the attempts that it held stay paused"
    log = f"Deleted the breakpoint on {where_text(event.breakpoint)}{stays}"
    _note(rows, at, event, author=event.author, log=log)


OF_BREAKPOINTS: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
    c.BreakpointSet: _breakpoint_set,
    c.BreakpointDeleted: _breakpoint_deleted,
}
