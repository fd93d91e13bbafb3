"""The work of a cycle: what it folds, in which order, and when it ends.

The order: commands that must not be overtaken, all other records, timers, background timers. The limits: a cycle begins
no more records after `cycle_ms_max`, nor after one slow decision, so that what was decided before it becomes visible;
what records set off takes its topics after `cascade_ms_max`; background timers get `background_ms_max`, in fair turns,
and then rest for `REST_FACTOR` times as long as they took. Those who read the events need that time: they may share the
CPU, or the interpreter. Input does not end the rest, because the events of background work are input too.

Background work is alone if nothing else was folded for `ALONE_AFTER_S` (publishers do not count: they follow it), and
if it had a CPU for itself: work that had to wait for a CPU or for the interpreter shows that others need it. Alone, it
gets `alone_ms_max` and rests only for a small part of that (`ALONE_SHARE`). The next request of anybody ends this.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kapelle.topology.fold import Fold
from kapelle.topology.log import Run
from kapelle.topology.metrics import Counters
from kapelle.topology.settings import Limits
from kapelle.topology.shard import Shard
from kapelle.topology.turns import Timer, Turns, left_over

STRIDE_RECORDS: Final = 64  # folds between two looks at the limits
CASCADE_SHARE: Final = 10  # no more records are begun when so small a part of the folds is left for what they set off
REST_FACTOR: Final = 2
ALONE_SHARE: Final = 0.05  # of the rest, for work that is alone
ALONE_AFTER_S: Final = 0.25
CONTENDED_SHARE: Final = 0.25  # background work that waited for so large a part of its CPU time is not alone
SLOW_SHARE: Final = 4  # a decision that takes so large a part of the cycle's time is slow, and the cycle ends with it

Shards = Mapping[tuple[str, int], Shard]


class Work(NamedTuple):
    """What there is to do in a cycle."""

    runs: list[Run]
    timers: list[Timer]
    background: list[Timer]
    is_shared: bool = True  # there is more than background work, and what follows from it
    more: Callable[[], list[Timer]] = list  # the background timers that have come due since the cycle began


class Folding:
    """Folds the work of one cycle after the other."""

    def __init__(self, fold: Fold, counters: Counters) -> None:
        self._fold = fold
        self._counters = counters
        self._turns = Turns()
        self._limits = Limits()
        self._shards: Shards = {}
        self._is_careful = False
        self._folds_left = 0
        self._rests_until_s = 0.0
        self._alone_rests_until_s = 0.0
        self._shared_until_s = 0.0
        self._is_contended = False

    def rest_s(self, *, is_shared: bool = False) -> float:
        """How long background timers still rest; `is_shared`: if there is other work now."""
        now = time.perf_counter()
        until_s = self._rests_until_s if is_shared or not self._is_alone(now) else self._alone_rests_until_s
        return max(0.0, until_s - now)

    def _is_alone(self, now: float) -> bool:
        """Whether nobody else has needed the member lately, nor its CPU."""
        return now > self._shared_until_s and not self._is_contended

    def fold(self, work: Work, shards: Shards, limits: Limits, *, is_careful: bool) -> list[Run]:
        """Fold until there is no more, or the cycle is full. Returns the records that are left over.

        A command that is delivered directly must not overtake one that stands before the barrier of its target, so all
        of those that were read come first. From then on every stride of records is followed by all that it sets off: a
        full cycle leaves records for the next one, not half a cascade that would have to take its topics.

        `is_careful`: after an `apply` that failed, one message is committed by itself. So every failure is followed by
        progress, and any number of them in one batch ends in letters, not in a stop.
        """
        self._shards, self._limits, self._is_careful = shards, limits, is_careful
        began = time.perf_counter()
        if work.is_shared:
            self._shared_until_s = began + ALONE_AFTER_S
        until, cascade_until = (began + ms / 1000 for ms in (limits.cycle_ms_max, limits.cascade_ms_max))
        self._folds_left = limits.folds_max
        self._fold.is_slow = False
        self._fold.slow_s = limits.cycle_ms_max / 1000 / SLOW_SHARE if limits.cycle_ms_max > 0 else math.inf
        first, free = self._parted(work.runs)
        left = self._runs(first, cascade_until)
        if left:
            left += free
        else:
            self._queue(cascade_until)
            left = self._runs(free, until, cascade_until) if not self._fold.queue else free
            # Timers last: an answer that came in time for this cycle is there before the time-out that waits for it.
            self._counters.timers += len(work.timers)
            self._fold.queue.extend(timer.entry() for timer in work.timers)
            self._queue(cascade_until)
            self._background(work, cascade_until)
        if left or self._fold.queue:
            self._counters.early_commits += 1
            self._fold.overflow()
        self._fold.flush(is_last=True)
        return left

    def _parted(self, runs: list[Run]) -> tuple[list[Run], list[Run]]:
        """The runs with commands from before a barrier, which come first, and the others."""
        first: list[Run] = []
        free: list[Run] = []
        for run in runs:
            barrier = self._shards[run.processor, run.place.partition].inputs[run.place.topic].barrier
            (first if run.records[0].offset < barrier else free).append(run)
        return first, free

    def _runs(self, runs: list[Run], until: float, cascade_until: float | None = None) -> list[Run]:
        """Fold records, a stride at a time, with what each sets off if it may. Returns what is left over."""
        fold, size = self._fold, self.stride()
        for n, run in enumerate(runs):
            shard = self._shards[run.processor, run.place.partition]
            source = shard.inputs[run.place.topic]
            for at in range(0, len(run.records), size):
                stride = run.records[at : at + size]
                fold.records(shard, run.place, stride)
                self._counters.records += len(stride)
                if cascade_until is not None and fold.queue:
                    self._queue(cascade_until)
                fold.flush()
                if fold.is_slow or self.full(until) or (cascade_until is not None and self._cascade_full()):
                    left = left_over(runs[n:], source.next)
                    self._counters.records -= sum(record.offset >= source.next for record in stride)
                    return left
        return []

    def _queue(self, until: float) -> None:
        """Fold timers and commands, and the commands that these send in turn, up to the limit."""
        fold, queue, size = self._fold, self._fold.queue, self.stride()
        while queue and self._folds_left > 0:
            was_slow = fold.entry(queue.popleft())
            self._folds_left -= 1
            if was_slow or self._folds_left % size == 0:
                fold.flush()
                if self.full(until):
                    return

    def _background(self, work: Work, cascade_until: float) -> None:
        """Go on with what decisions left over, in fair turns, until their share of the cycle is used up."""
        began, cpu_began = time.perf_counter(), time.thread_time()
        limits = self._limits
        until = began + (limits.alone_ms_max if self._is_alone(began) else limits.background_ms_max) / 1000
        timers = work.background
        while timers:
            for timer in self._turns.taken(timers):
                if self._fold.queue or self._folds_left <= 0:
                    return
                self._counters.timers += 1
                self._fold.queue.append(timer.entry())
                self._queue(cascade_until)
                self._fold.flush()
                self._rest(began, cpu_began)
                if self.full(until):
                    return
            timers = work.more()

    def _rest(self, began: float, cpu_began: float) -> None:
        now = time.perf_counter()
        took_s, cpu_s = now - began, time.thread_time() - cpu_began
        self._is_contended = took_s - cpu_s > cpu_s * CONTENDED_SHARE
        self._rests_until_s = now + took_s * REST_FACTOR
        self._alone_rests_until_s = now + took_s * REST_FACTOR * ALONE_SHARE

    def stride(self) -> int:
        """How many messages are folded between two looks at the limits."""
        return 1 if self._is_careful else STRIDE_RECORDS

    def full(self, until: float) -> bool:
        """Whether the cycle has taken its time, or its overlays their memory, or must be small."""
        return time.perf_counter() > until or self._overlay_full() or self._is_careful

    def _cascade_full(self) -> bool:
        return bool(self._fold.queue) or self._folds_left * CASCADE_SHARE < self._limits.folds_max

    def _overlay_full(self) -> bool:
        return sum(s.state.size_bytes for s in self._fold.touched) > self._limits.overlay_bytes_max
