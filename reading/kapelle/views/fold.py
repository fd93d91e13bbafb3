"""Folds the log into the database, in a thread of its own: a batch, its offsets, one transaction; then the news."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from kapelle.topology.collector import at_rest
from kapelle.topology.errors import CycleAborted
from kapelle.topology.journal import Entry, Journal, JournalError, Point
from kapelle.views.database import Database, is_damage, save_offsets
from kapelle.views.news import Noticeboard
from kapelle.views.progress import Progress, ends_of
from kapelle.views.projection import FOLLOWED
from kapelle.views.projection.news import ANYTHING
from kapelle.views.retention import Retention
from kapelle.views.unreadable import FAULTS, fold_entries, fold_one_by_one

BATCH_RECORDS: Final = 20_000  # of what is far behind: a row that many of them touch is written once
WAIT_S: Final = 0.25
STOP_S: Final = 10.0
PROGRESS_S: Final = 5.0
AGAIN_S: Final = 0.5
REMAKES_MAX: Final = 3  # a file that is damaged again and again lies on a disk that is

Fold = Callable[[sqlite3.Connection, Sequence[Entry]], set[str]]

_log = logging.getLogger("kapelle.views")


class Folding:
    """Follows the log from where the database stands, until it is stopped or fails."""

    def __init__(
        self,
        journal: Journal,
        database: Database,
        board: Noticeboard,
        *,
        batch_records: int = BATCH_RECORDS,
        retention: Retention | None = None,
    ) -> None:
        self.failure: BaseException | None = None
        self._journal = journal
        self._database = database
        self._board = board
        self._batch_records = batch_records
        self._retention = retention
        self._follower = journal.follow(FOLLOWED, database.offsets())
        self._positions: Mapping[Point, int] = dict(self._follower.positions)
        self._horizon: Mapping[Point, int] = self._positions
        self._is_far_behind = False
        self._remakes = 0
        self._damage: sqlite3.DatabaseError | None = None  # what a reader has met
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_supervised, name="kapelle-views", daemon=True)
        self._told_at_s = time.monotonic()
        self._progress = Progress(sum(self._positions.values()))

    @property
    def positions(self) -> Mapping[Point, int]:
        """How far the view has come: for each partition the offset that comes next."""
        return self._positions

    @property
    def horizon(self) -> Mapping[Point, int]:
        """The same, with the batch that is being written: some may have read it before we know that it is there."""
        return self._horizon

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the batch, then end."""
        self._stop.set()
        self._follower.close()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)
        self._board.tell_all()

    def step(self, wait_s: float = 0.0) -> int:
        """Fold one batch in this thread. Returns how many records that were."""
        # Who is far behind waits for nothing, so that the collector can rest from the reading on.
        with at_rest() if self._is_far_behind else nullcontext():
            count = self._take(wait_s)
        self._is_far_behind = count == self._batch_records
        return count

    def _take(self, wait_s: float) -> int:
        entries = self._follower.take(self._batch_records, wait_s)
        positions = dict(self._follower.positions)
        if positions != self._positions:
            with at_rest():
                self._fold(entries, positions)
        return len(entries)

    def _fold(self, entries: Sequence[Entry], positions: Mapping[Point, int]) -> None:
        self._horizon = positions
        news: set[str] = set()
        if entries:
            try:
                news = self._written(entries, positions, fold_entries)
            except FAULTS as error:
                _log.warning("retrying a batch one record at a time, because a record failed: %s", error)
                news = self._written(entries, positions, fold_one_by_one)
        self._positions = positions
        # Who waits has said so before looking: so now it is known whether anybody wants to hear of it.
        if self._board.is_looked_at:
            self._board.tell({ANYTHING, *news})

    def _written(self, entries: Sequence[Entry], positions: Mapping[Point, int], fold: Fold) -> set[str]:
        with self._database.writing() as connection:
            news = fold(connection, entries)
            save_offsets(connection, positions)
        return news

    def _run_supervised(self) -> None:
        wait_s = WAIT_S
        try:
            while not self._stop.is_set():
                try:
                    self._look_at_damage()
                    self.step(wait_s)
                    if self._is_far_behind:
                        self._tell_progress()
                    wait_s = 0.0 if self._take_turn() else WAIT_S
                except (JournalError, CycleAborted) as error:
                    self._begin_again(error)
                except sqlite3.DatabaseError as error:
                    self._remake(error)
        except BaseException as error:  # noqa: BLE001  supervised: `failure` holds it, and health tells it
            if not self._stop.is_set():
                self.failure = error
                _log.exception("the view stopped")
                self._board.tell_all()

    def _take_turn(self) -> bool:
        """Whether anything has left the view: then more may be about to."""
        if self._retention is None or not self._retention.turn(self._positions):
            return False
        self._board.tell([ANYTHING])
        return True

    def tell_damage(self, error: sqlite3.DatabaseError) -> None:
        """A reader has met damage. From any thread; the view is made again by the one that writes it."""
        self._damage = error

    def _look_at_damage(self) -> None:
        damage, self._damage = self._damage, None
        if damage is not None:
            raise damage

    def _remake(self, error: sqlite3.DatabaseError) -> None:
        """The file is damaged: fold everything again into a new one."""
        if not is_damage(error) or self._remakes == REMAKES_MAX:
            raise error
        self._remakes += 1
        _log.warning("the view is damaged and is rebuilt from the log: %s", error)
        self._follower.close()
        self._database.remake()
        self._follower = self._journal.follow(FOLLOWED, {})
        self._positions = self._horizon = dict(self._follower.positions)
        self._damage = None  # what was met meanwhile was met in the old file
        self._progress = Progress(0)
        self._board.tell([ANYTHING])

    def _begin_again(self, error: Exception) -> None:
        """The log was away for a moment. What was read and not written is read again."""
        _log.warning("the view continues to read the log at its position: %s", error)
        self._follower.close()
        self._stop.wait(AGAIN_S)
        self._follower = self._journal.follow(FOLLOWED, self._positions)
        if self._stop.is_set():
            self._follower.close()

    def _tell_progress(self) -> None:
        """A view that is far behind says from time to time how far it is."""
        if time.monotonic() - self._told_at_s < PROGRESS_S:
            return
        self._told_at_s = time.monotonic()
        try:
            ends = ends_of(self._journal)
        except JournalError:
            return
        _log.info("folding", extra={"fields": self._progress.fields(self._positions, ends)})
