"""Bringing a shard's tables to where the log stands: the one path for starts, rebalances, crashes and aborts.

Local tables are written after the log's commit, together with the changelog offset that they stand for, so they are
never ahead of the log and at most a little behind. Restoring reads the changelog from the stored offset to its end.
Local tables that cannot be trusted are wiped and read from the beginning:

    no stored offset, or none that can be read          never written, or written by another layout
    another topic id                                    made anew, and the log has seen to it that somebody said so
    last written longer ago than tombstones are kept    a deletion may have been compacted away unseen
    last written in the future                          the clock has gone back, and nobody knows how long ago that was

A changelog that ends before the stored offset has lost records that these tables may be the last to have: nobody goes
on with it unasked. The end is asked for twice, with a pause: a leader that was elected a moment ago may not know yet
how far its partition reaches. While in doubt, a shard waits; the others go on.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from kapelle.topology.crash import Crash, CrashPoint
from kapelle.topology.doubts import Doubts
from kapelle.topology.errors import ChangelogShortened, CycleAborted
from kapelle.topology.log import Log, Place
from kapelle.topology.metrics import Counters
from kapelle.topology.partition_time import Clock, steady_of
from kapelle.topology.settings import Limits
from kapelle.topology.shard import Shard
from kapelle.topology.tables import Batch, RowCorrupt, RowVersionUnknown, ShardMeta, Store

FUTURE_SHARE = 168  # an hour of a week: tables may bear a time that lies so far ahead, as clocks are set by a little

_log = logging.getLogger("kapelle.restore")


class Progress(NamedTuple):
    """How far a restore has come."""

    shard: str
    rows: int
    rows_left: int
    rows_per_s: float

    @property
    def seconds_left(self) -> float:
        return self.rows_left / self.rows_per_s if self.rows_per_s else float("inf")


class Restoring:
    """One shard on its way."""

    def __init__(self, shard: Shard, *, offset: int, end: int, started_at_ms: int) -> None:
        self.shard = shard
        self.offset = offset
        self.end = end
        self.rows = 0
        self.started_at_ms = started_at_ms
        self.moved_at_ms = started_at_ms  # when it last came forward

    def progress(self, now_ms: int) -> Progress:
        seconds = max(now_ms - self.started_at_ms, 1) / 1000
        return Progress(str(self.shard), self.rows, max(self.end - self.offset, 0), self.rows / seconds)


class Restorer:
    """Restores shards a slice at a time, so that live ones go on meanwhile."""

    def __init__(self, log: Log, store: Store, *, limits: Limits, counters: Counters, crash: Crash) -> None:
        self._log = log
        self._store = store
        self._limits = limits
        self._counters = counters
        self._crash = crash
        self._restoring: dict[Place, Restoring] = {}
        self._doubts = Doubts(limits.doubt_ms)

    def doubts(self, shard: Shard) -> bool:
        """Whether the changelog of this shard seems too short, and must be asked about again."""
        return shard.changelog in self._doubts

    def __bool__(self) -> bool:
        return bool(self._restoring)

    def add(self, shards: Iterable[Shard], clock: Clock) -> list[Shard]:
        """Begin with these shards; their committed offsets must be final by now. Returns those that need nothing."""
        added = {shard.changelog: shard for shard in shards}
        ends = self._log.ends(list(added)) if added else {}
        now_ms, steady_ms = clock(), steady_of(clock)()
        for place, shard in added.items():
            offset = self._trusted_offset(shard, ends[place], now_ms, steady_ms=steady_ms)
            if offset is None:
                continue
            self._restoring[place] = Restoring(shard, offset=offset, end=ends[place], started_at_ms=steady_ms)
        done = self._finished()
        if added:
            self._log.watch({p: r.offset for p, r in self._restoring.items()})
        self._count()
        return done

    def drop(self, shards: list[Shard]) -> None:
        """Forget these shards: they are no longer ours."""
        for shard in shards:
            self._doubts.clear(shard.changelog)
        dropped = [self._restoring.pop(shard.changelog, None) for shard in shards]
        if any(dropped):
            self._log.watch({p: r.offset for p, r in self._restoring.items()})
            self._count()

    def step(self, clock: Clock, wait_s: float) -> list[Shard]:
        """Read for a slice of time. Returns the shards that are there."""
        steady = steady_of(clock)
        until_ms = steady() + self._limits.restore_slice_ms
        done: list[Shard] = []
        while self._restoring:
            read, reached = self._log.rows(self._limits.restore_rows_max, wait_s)
            batch = Batch()
            moved = False
            for place, offset in reached.items():
                rows = [(r.key, r.value) for r in read.get(place, ())]
                moved |= self._take(place, offset, rows, (batch, clock))
            self._crash(CrashPoint.DURING_RESTORE)
            self._store.write(batch)
            done += self._finished()
            self._count()
            if steady() >= until_ms or not moved:
                break
        self._free_if_stuck(steady())
        if done:
            self._log.watch({p: r.offset for p, r in self._restoring.items()})
        return done

    def _free_if_stuck(self, now_ms: int) -> None:
        """A dead member's transaction may stand in the way for as long as its time-out: end it instead of waiting."""
        for restoring in self._restoring.values():
            if now_ms - restoring.moved_at_ms > self._limits.restore_stuck_ms:
                restoring.moved_at_ms = now_ms
                shard = restoring.shard
                with suppress(CycleAborted):  # whoever cannot be found now is looked for again after as long
                    self._log.free(shard.processor.name, [i.place for i in shard.inputs.values()])

    def progress(self, now_ms: int) -> list[Progress]:
        return [r.progress(now_ms) for r in self._restoring.values()]

    def _take(
        self, place: Place, offset: int, rows: list[tuple[bytes, bytes | None]], into: tuple[Batch, Clock]
    ) -> bool:
        """Put the rows into the batch. Returns whether this brought the shard forward."""
        restoring = self._restoring.get(place)
        if restoring is None or offset <= restoring.offset:
            return False
        batch, clock = into
        restoring.shard.state.restore(rows, batch)
        restoring.shard.state.stage(batch, self.meta(place, offset, clock()))
        restoring.offset = offset
        restoring.moved_at_ms = steady_of(clock)()
        restoring.rows += len(rows)
        self._counters.restored_rows += len(rows)
        return True

    def meta(self, changelog: Place, offset: int, now_ms: int) -> ShardMeta:
        """What to store with tables that stand for the changelog up to this offset."""
        return ShardMeta(
            changelog_offset=offset, saved_at_ms=now_ms, changelog_id=self._log.identity(changelog.topic), positions={}
        )

    def _trusted_offset(self, shard: Shard, end: int, now_ms: int, *, steady_ms: int) -> int | None:
        """From where the changelog is to be read; None while it is in doubt whether it has lost records."""
        try:
            meta = shard.state.meta()
        except (RowCorrupt, RowVersionUnknown) as error:
            _log.warning("tables of %s are restored from the beginning: %s", shard, error)
            meta = None
        if meta is not None and (
            meta.changelog_id == self._log.identity(shard.changelog.topic)
            and -self._limits.tombstone_ms // FUTURE_SHARE <= now_ms - meta.saved_at_ms < self._limits.tombstone_ms
        ):
            if meta.changelog_offset <= end:
                self._doubts.clear(shard.changelog)
                return meta.changelog_offset
            answer = f"it ends at {end}, before the offset {meta.changelog_offset} of our tables"
            if self._doubts.is_certain(shard.changelog, answer, steady_ms):
                raise ChangelogShortened(shard.changelog, expected=meta.changelog_offset, found=end)
            return None
        self._doubts.clear(shard.changelog)
        batch = Batch()
        shard.state.wipe(batch)
        self._store.write(batch)
        shard.state.clear()
        self._counters.wipes += meta is not None
        return 0

    def _finished(self) -> list[Shard]:
        done = [r for r in self._restoring.values() if r.offset >= r.end]
        for restoring in done:
            del self._restoring[restoring.shard.changelog]
            # What was read went around the overlay: forget anything cached from before.
            restoring.shard.state.clear()
            self._counters.restores += 1
        return [r.shard for r in done]

    def _count(self) -> None:
        self._counters.shards_restoring = len(self._restoring)
        self._counters.restore_rows_left = sum(max(r.end - r.offset, 0) for r in self._restoring.values())
