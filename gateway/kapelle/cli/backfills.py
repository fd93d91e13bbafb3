"""Following a backfill until it ends: a bar on a terminal, a line for each tenth elsewhere."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import output
from kapelle.cli.text.backfills import counts_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kapelle.client import BackfillRecord, Client

LINES: Final = 10  # how many lines tell of a whole backfill where there is no terminal

Show = "Callable[[BackfillRecord], None]"


class Interrupted(Exception):
    """Ctrl-C was pressed. The backfill continues."""


def follow(client: "Client", at: tuple[str, str], timeout_s: float | None) -> "BackfillRecord":
    """Show the progress of a backfill on stderr until it has ended."""
    try:
        with _progress() as show:
            for record in client.backfills.watch(*at, timeout_s=timeout_s):
                show(record)
    except KeyboardInterrupt:
        raise Interrupted from None
    return record


@contextmanager
def _progress() -> "Iterator[Callable[[BackfillRecord], None]]":
    console = output.stderr()
    if not console.is_terminal:
        yield Lines().show
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - slow to load

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        bar = bars.add_task("", total=None, counts="")
        yield lambda now: bars.update(
            bar, description=now.status, total=now.total, completed=now.ended, counts=counts_text(now)
        )


class Lines:
    """Says how far a backfill is when a tenth more is done, or when its status has changed."""

    def __init__(self) -> None:
        self._said: tuple[str, int] | None = None

    def show(self, now: "BackfillRecord") -> None:
        """One line, if it is due."""
        mark = now.status, now.ended * LINES // max(now.total, 1)
        if mark != self._said:
            self._said = mark
            output.say(f"{now.status} {now.ended:,} of {now.total:,}: {counts_text(now)}")
