"""Reports of a running member: restore progress, health, metrics, and a summary at the end."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from kapelle.cli import metrics
from kapelle.topology.exposition import member_exposition
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.metrics import Counters
from kapelle.topology.restore import Progress
from kapelle.topology.table_sizes import Weighing
from kapelle.topology.tables import StoreError

PROGRESS_S: Final = 2.0
FILE_S: Final = 5.0
STAND_BY_MS: Final = 10_000  # two heartbeats: whoever has no partitions by then gets none for now
STUCK_S: Final = 60.0  # a cycle that waits for a broker that is away takes a fraction of this

Statistics: TypeAlias = Mapping[str, Any]  # the JSON that librdkafka writes

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
        self.weighing = Weighing(running.store, lambda: list(running.member.shards.values()))
        self._file = metrics_file
        self._progress_due = Every(PROGRESS_S)
        self._file_due = Every(FILE_S)
        self._restored_rows = 0
        self._looked_at_s = time.monotonic()

    def text(self) -> str:
        """All metrics. May be called from another thread: it only reads."""
        log = self._running.log
        return member_exposition(
            self._member.counters,
            log.statistics,
            log.consumer_statistics,
            sizes=self._running_sizes(),
            tables=self.weighing.found.copy(),
        )

    def _running_sizes(self) -> dict[str, float]:
        try:
            return dict(self._running.store.sizes()._asdict())
        except StoreError:  # it has been closed: we are leaving
            return {}

    def stuck(self) -> str:
        """Why a restart would help; empty while it would not. From another thread, as `unready`."""
        silent_s = time.monotonic() - self._looked_at_s
        return f"the main loop has been stuck for {silent_s:.0f} s" if silent_s > STUCK_S else ""

    def unready(self) -> str:
        """Why this process does not do its part; empty when it does."""
        log, groups = self._running.log, len(self._running.hosted)
        return self.stuck() or unready(self._member.counters, log.statistics, log.consumer_statistics, groups=groups)

    def tick(self) -> None:
        """Called between two cycles."""
        self._looked_at_s = time.monotonic()
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
        names = ("cycles", "records", "events", "sent", "delivered", "timers", "dead_letters", "aborts", "renewals")
        counted = self._member.counters.snapshot()
        _log.info("stopped", extra={"fields": {name: int(counted[name]) for name in names}})
        if self._file is not None:
            metrics.write(self._file, self.text())


def unready(counters: Counters, producer: Statistics, consumers: Mapping[str, Statistics], *, groups: int) -> str:
    """Why a member does not do its part. One that got no partitions stands by, once it is in all of its groups."""
    if counters.shards_restoring:
        return f"{counters.shards_restoring} shards are being restored, {counters.restore_rows_left} rows left"
    if counters.shards_active < counters.shards:
        return f"{counters.shards - counters.shards_active} of {counters.shards} shards are not active"
    joined = max(
        counters.groups_joined, sum(_has_joined(statistics.get("cgrp", {})) for statistics in consumers.values())
    )
    if not counters.shards and joined < groups:
        return f"{joined} of {groups} groups have been joined"
    brokers = producer.get("brokers", {}).values()  # one that has left the cluster is no longer among them
    if brokers and all(broker.get("state") != "UP" for broker in brokers):
        return "no broker is connected"
    return ""


def _has_joined(group: Statistics) -> bool:
    """Whether a consumer is in its group. By KIP-848 it is not told that there is nothing for it: then time tells."""
    if group.get("join_state") == "init":
        return bool(group.get("state") == "up" and group.get("stateage", 0) >= STAND_BY_MS)
    return bool(group.get("join_state") == "steady")


def progress_fields(shards: Sequence[Progress]) -> dict[str, object]:
    """How far all restoring shards have come together. They are read at once, so their rates add up."""
    rows_left = sum(p.rows_left for p in shards)
    rows_per_s = sum(p.rows_per_s for p in shards)
    return {
        "shards": len(shards),
        "rows": sum(p.rows for p in shards),
        "rows_left": rows_left,
        "rows_per_s": round(rows_per_s),
        "seconds_left": round(rows_left / rows_per_s) if rows_per_s else "unknown",
    }
