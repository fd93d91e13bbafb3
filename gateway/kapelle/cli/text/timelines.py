"""Timelines for people: one line for each thing that happened."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from kapelle.cli.text.tables import STYLES, clock, stdout

if TYPE_CHECKING:
    from kapelle.client import TimelineEntry

STEP_WIDTH = 20


def show_timeline(entries: "Sequence[TimelineEntry]") -> None:
    """A whole timeline on stdout. A new run has a heading."""
    run_id: int | None = None
    width = max((len(_where(entry)) for entry in entries), default=0)
    for entry in entries:
        if entry.workflow_run_id != run_id and entry.workflow_run_id is not None:
            run_id = entry.workflow_run_id
            stdout().print(Text(f"run {run_id}", "bold"))
        show_entry(entry, width)


def show_entry(entry: "TimelineEntry", width: int = STEP_WIDTH) -> None:
    """When, where, what; further lines of a text stand below its first. Of states passed at once, the last."""
    text = Text.assemble((clock(entry.timestamp), "dim"), "  ", _where(entry).ljust(width), "  ")
    below = "\n" + " " * len(text)
    if entry.status:
        text.append(entry.status, STYLES.get(entry.status, ""))
    if entry.action:
        text.append(f"{entry.action} by {entry.author}" if entry.author else entry.action, "bold")
    details = ": ".join(part for part in (entry.reason, entry.message) if part).replace("\n", below)
    if details:
        text.append("  " + details if entry.status or entry.action else details, "dim")
    if entry.worker:
        text.append(f"  [{entry.worker}]", "dim")
    text.rstrip()
    stdout().print(text, soft_wrap=True)


def _where(entry: "TimelineEntry") -> str:
    """The step, and which attempt it is if it is not the first."""
    if not entry.step_id:
        return "·"
    attempt = entry.step_attempt_id
    again = f" #{attempt}" if attempt is not None and attempt > 1 else ""
    return f"{in_iteration(entry.step_id, entry.iteration)}{again}"


def in_iteration(step_id: str, iteration: int | None) -> str:
    """A step, and if a cyclic loop has led back to it, the number of the iteration."""
    return f"{step_id} iteration {iteration}" if iteration is not None and iteration > 1 else step_id
