"""Events for people: one line each, with the time, the position, the type and the key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from kapelle.cli.text.tables import STYLES, at, clock, stdout

if TYPE_CHECKING:
    from kapelle.client import EventRecord
    from kapelle.client.results import Object

# What of an event is worth a place in its line, in this order.
TOLD: Final = (
    "run_id",
    "step_id",
    "attempt",
    "version",
    "name",
    "sequence",
    "trigger_id",
    "report",
    "action",
    "worker",
)
SHOWN_CHARS_MAX: Final = 120
PLACE_WIDTH: Final = 22
TYPE_WIDTH: Final = 20


def show_events(events: "Sequence[EventRecord]") -> None:
    """A whole history on stdout."""
    place = max((len(_place(event)) for event in events), default=0)
    kind = max((len(event.type) for event in events), default=0)
    for event in events:
        show_event(event, (place, kind))


def show_event(
    event: "EventRecord", widths: tuple[int, int] = (PLACE_WIDTH, TYPE_WIDTH), *, whose: bool = False
) -> None:
    """One event. `whose`: with the workflow and the instance that it is about, or the key."""
    place, kind = widths
    text = Text.assemble(
        (at(event.time)[:11] + clock(event.time), "dim"),
        "  ",
        (_place(event).ljust(place), "dim"),
        "  ",
        (event.type.ljust(kind), "bold"),
    )
    if whose:
        text.append(f"  {event.key}")
    ids = " ".join(f"{name.removesuffix('_id')} {event.event[name]}" for name in TOLD if event.event.get(name))
    if ids:
        text.append(f"  {ids}")
    status = _status(event.event)
    if status:
        text.append(f"  {status}", STYLES.get(status.split()[-1], ""))
    reason = str(event.event.get("reason") or event.event.get("message") or "").replace("\n", " ")
    if reason:
        text.append(f"  {reason[:SHOWN_CHARS_MAX]}", "dim")
    text.rstrip()
    stdout().print(text, soft_wrap=True)


def _place(event: "EventRecord") -> str:
    return f"{event.stream}-{event.partition}@{event.offset}"


def _status(fields: "Object") -> str:
    passed = fields.get("statuses")
    return " ".join(passed) if passed else str(fields.get("status") or "")
