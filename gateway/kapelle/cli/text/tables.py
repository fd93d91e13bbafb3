"""Tables for people: columns as wide as what is in them, statuses in colour where there is a terminal."""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from rich.console import Console
from rich.text import Text

from kapelle.cli.text import output
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client.results import Page

STYLES: Final = {
    "SUCCEEDED": "green",
    "COMPLETED_WITH_ERROR": "yellow",
    "FAILED": "red",
    "FATALLY_FAILED": "red",
    "INTERNALLY_FAILED": "red",
    "USER_FAILED": "yellow",
    "PLATFORM_FAILED": "yellow",
    "TIMEOUT_FAILED": "yellow",
    "TIMED_OUT": "red",
    "STOPPED": "magenta",
    "IN_PROGRESS": "cyan",
    "RUNNING": "cyan",
}
GAP: Final = "  "

Cell = str | int | None
T = TypeVar("T")


def show(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    names: Sequence[str] = (),
    below: Mapping[int, Sequence[Text]] = MappingProxyType({}),
) -> None:
    """A table on stdout. `names` are further heads, which stay as they are written. A cell has one line of its text.

    `below` has lines that stand below a row, by its place.
    """
    titles = [*(head.upper() for head in heads), *names]
    texts = [[first_line(_text(cell)) for cell in row] for row in rows]
    widths = [
        max(len(head), *(len(row[at]) for row in texts)) if texts else len(head) for at, head in enumerate(titles)
    ]
    line([Text(head, "bold") for head in titles], widths)
    for place, row in enumerate(texts):
        line([Text(cell, STYLES.get(cell.split(" ")[-1], "")) for cell in row], widths)
        for text in below.get(place, ()):
            stdout().print(text, soft_wrap=True)


def show_page(page: "Page[T]", form: Form, heads: Sequence[str], row: Callable[[T], Sequence[Cell]]) -> None:
    """A page of a list, as a table or as JSON, and how to get the next page."""

    def written(page: "Page[T]") -> None:
        show(heads, [row(element) for element in page.elements])
        if page.page_info.has_next_page:
            output.say(f"more results: --cursor {page.page_info.end_cursor}")

    output.show(page, form, written)


def line(cells: Sequence[Text], widths: Sequence[int]) -> None:
    """One line of a table."""
    whole = Text()
    for cell, width in zip(cells, widths, strict=True):
        cell.pad_right(max(width - len(cell), 0))
        whole.append_text(cell).append(GAP)
    whole.rstrip()
    stdout().print(whole, soft_wrap=True)


def pairs(rows: Sequence[tuple[str, Cell]]) -> None:
    """Names and values, one a line; those without a value are left out."""
    texts = [(name, _text(value)) for name, value in rows if value not in (None, "")]
    width = max((len(name) for name, _ in texts), default=0)
    below = "\n" + " " * width + GAP
    for name, value in texts:
        text = Text.assemble((name.ljust(width), "bold"), GAP, (value.replace("\n", below), STYLES.get(value, "")))
        stdout().print(text, soft_wrap=True)


def at(time_ms: int | None) -> str:
    """A moment in the time zone of whoever looks."""
    if time_ms is None:
        return ""
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def clock(time_ms: int) -> str:
    """The time of day, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]


def lasted(start_ms: int | None, end_ms: int | None) -> str:
    """How long something took."""
    if start_ms is None or end_ms is None:
        return ""
    seconds = (end_ms - start_ms) / 1000
    if seconds < 1:
        return f"{end_ms - start_ms} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def first_line(text: str) -> str:
    """The first line of a text, with a mark if there are more."""
    first, broken, _ = text.partition("\n")
    return f"{first} …" if broken else first


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def stdout() -> Console:
    """Made when it is needed: tests and shells put other files in place of stdout."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
