"""The view as others use it: open it on a journal, read it, and wait for what one has written.

with Views(journal, Path("views")) as views:
    views.wait_for("request-1", timeout_s=5)
    views.read(instance, "etl", 1)
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

from kapelle.topology.journal import Journal, Point
from kapelle.views.database import Database, is_damage
from kapelle.views.errors import ViewDamaged, ViewFailed
from kapelle.views.fold import BATCH_RECORDS, Folding
from kapelle.views.news import Noticeboard
from kapelle.views.progress import ends_of
from kapelle.views.projection.news import ANYTHING, request_news
from kapelle.views.queries.requests import Outcome, outcomes
from kapelle.views.retention import Retention

P = ParamSpec("P")
T = TypeVar("T")

CATCH_UP_S: Final = 30.0


class Views:
    """A view of one log, in a directory of its own or, without one, in memory."""

    def __init__(
        self,
        journal: Journal,
        directory: Path | None = None,
        *,
        batch_records: int = BATCH_RECORDS,
        keep_ms: int | None = None,
        anew: bool = False,
    ) -> None:
        """`keep_ms`: what ended longer ago leaves the view; None keeps all. `anew`: begin with nothing."""
        self.journal = journal
        self.board = Noticeboard()
        self.database = Database(directory, journal.identity, anew=anew)
        retention = None if keep_ms is None else Retention(journal, self.database, keep_ms)
        try:
            self.folding = Folding(journal, self.database, self.board, batch_records=batch_records, retention=retention)
        except BaseException:
            self.database.close()
            raise

    def start(self) -> Self:
        """Follow the log in a thread, until `close`."""
        self.folding.start()
        return self

    def close(self) -> None:
        """Stop folding and close the database."""
        self.folding.stop()
        self.database.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # Reading ----------------------------------------------------------------------------------------------------------

    def read(self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask a query of `kapelle.views.queries`, in one state of the view."""
        try:
            with self.database.reading() as connection:
                return query(connection, *args, **kwargs)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.folding.tell_damage(error)
            raise ViewDamaged(error) from error

    @property
    def failure(self) -> BaseException | None:
        """Why the view does not move on; None while it does."""
        return self.folding.failure

    @property
    def watermark(self) -> Mapping[Point, int]:
        """How far the view has come."""
        return self.folding.positions

    @property
    def horizon(self) -> Mapping[Point, int]:
        """How far the view may have come: nobody has read anything of it that lies beyond."""
        return self.folding.horizon

    def lag(self) -> int:
        """How many records of the log the view has not folded yet. Asks the log."""
        ends = ends_of(self.journal)
        return sum(max(end - self.watermark.get(point, 0), 0) for point, end in ends.items())

    # Waiting ----------------------------------------------------------------------------------------------------------

    def wait(self, news: Iterable[str], look: Callable[[], T | None], timeout_s: float) -> T | None:
        """What `look` finds, as soon as it finds something; it looks again whenever one of the news is told."""
        woken = threading.Event()
        until = time.monotonic() + timeout_s
        with self.board.subscribed(news, woken.set):
            while True:
                woken.clear()
                value = look()
                if value is not None:
                    return value
                if self.failure is not None:
                    raise ViewFailed(self.failure)
                if not woken.wait(max(until - time.monotonic(), 0)):
                    return None

    def wait_for(self, request_id: str, timeout_s: float = CATCH_UP_S) -> list[Outcome] | None:
        """What came of a request, as soon as the view knows anything of it; None if that takes too long."""
        return self.wait([request_news(request_id)], lambda: self.read(outcomes, request_id) or None, timeout_s)

    def wait_until(self, offsets: Mapping[Point, int], timeout_s: float = CATCH_UP_S) -> bool:
        """Whether the view came that far in time."""

        def look() -> bool | None:
            return all(self.watermark.get(point, 0) >= offset for point, offset in offsets.items()) or None

        return bool(self.wait([ANYTHING], look, timeout_s))

    def catch_up(self, timeout_s: float = CATCH_UP_S) -> bool:
        """Whether the view came in time to where the log ends now."""
        ends = ends_of(self.journal)
        return self.wait_until(ends, timeout_s)
