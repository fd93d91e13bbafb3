"""What a running member says about itself: how restoring goes, metrics for a file, and what it did in the end."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kapelle.cli import metrics
from kapelle.topology.exposition import exposition
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.restore import Progress

PROGRESS_S: Final = 2.0
FILE_S: Final = 5.0

_log = logging.getLogger("kapelle.run")


class Every:
    """Says when it is time again. Asked in every cycle, so it does next to nothing."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock() + seconds

    def __call__(self) -> bool:
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


class Reporter:
    """Looks at a member between its cycles."""

    def __init__(self, running: KafkaMember, metrics_file: Path | None = None) -> None:
        self._running = running
        self._member = running.member
        self._file = metrics_file
        self._progress_due = Every(PROGRESS_S)
        self._file_due = Every(FILE_S)
        self._restored_rows = 0

    def text(self) -> str:
        """All metrics. May be called from another thread: it only reads."""
        return exposition(self._member.counters.snapshot(), self._running.log.statistics)

    def tick(self) -> None:
        """Called between two cycles."""
        counters = self._member.counters
        if counters.shards_restoring:
            if self._progress_due():
                _log.info("restoring", extra={"fields": progress_fields(self._member.progress())})
        elif counters.restored_rows > self._restored_rows:
            # Counted, not watched: a small table is restored between two looks.
            self._restored_rows = counters.restored_rows
            _log.info("restored", extra={"fields": {"rows": counters.restored_rows, "shards": counters.restores}})
        if self._file is not None and self._file_due():
            metrics.write(self._file, self.text())

    def end(self) -> None:
        """Called when the member has left."""
        told = ("cycles", "records", "events", "sent", "delivered", "timers", "dead_letters", "aborts", "renewals")
        counted = self._member.counters.snapshot()
        _log.info("stopped", extra={"fields": {name: int(counted[name]) for name in told}})
        if self._file is not None:
            metrics.write(self._file, self.text())


def progress_fields(found: Sequence[Progress]) -> dict[str, Any]:
    """How far all restoring shards have come together. They are read at once, so their rates add up."""
    rows_left = sum(p.rows_left for p in found)
    rows_per_s = sum(p.rows_per_s for p in found)
    return {
        "shards": len(found),
        "rows": sum(p.rows for p in found),
        "rows_left": rows_left,
        "rows_per_s": round(rows_per_s),
        "seconds_left": round(rows_left / rows_per_s) if rows_per_s else "unknown",
    }
