"""A member: one process of a topology, one loop, one transaction per cycle.

A cycle:

    1. take what is there, of every processor; collect the timers that are due
    2. fold it into overlays over the tables, sending outputs as they are made
    3. send the changelog rows (the last value of each key), the offsets of every processor touched; commit
    4. write the overlays to the tables in one batch, with the changelog offsets that they stand for

The laws:

- Tables are written after the log's commit, never before: what they hold, the log holds.
- The offsets go into the transaction whenever anything does, also when only timers fired: the offsets carry the
  group's generation, and that is what stops a process that lost its partitions without noticing.
- After any failure the overlays are forgotten and the shards take the way of a start: committed offsets, then the
  changelog. There is no other repair.
- When the outcome of a commit is unknown, it is never tried again: a new producer settles it, and the committed
  offsets and the changelog say what happened.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable

from kapelle.schemas import Codec
from kapelle.schemas.headers import rfc3339
from kapelle.topology.build import Topology
from kapelle.topology.collector import at_rest
from kapelle.topology.crash import Crash, CrashPoint, never
from kapelle.topology.delivery import Delivery
from kapelle.topology.errors import ApplyFailed, CycleAborted, FoldError, ProducerLost
from kapelle.topology.fold import Fold
from kapelle.topology.inputs import Inputs
from kapelle.topology.log import Log, Place, Run
from kapelle.topology.metrics import Counters
from kapelle.topology.overtime import Overtime
from kapelle.topology.partition_time import SYSTEM_CLOCK, Clock, PartitionTimes
from kapelle.topology.restore import Progress, Restorer
from kapelle.topology.settings import MemberSettings
from kapelle.topology.shard import Shard
from kapelle.topology.tables import Batch, Store
from kapelle.topology.turns import Timer, all_due
from kapelle.topology.work import Folding, Work

HOLD_ROOM_RECORDS = 2_000  # what is taken at a time while a hold waits for commands, however much waits already
HOLD_WAIT_S = 0.002
REST_SLICE_S = 0.01  # other timers may become due while background timers rest
PATIENT_SHARE = 2  # patient processors get their turn at once when what waits for them is half of what a cycle takes

_log = logging.getLogger("kapelle.member")


class Member:
    """Runs the shards that the log assigns to it. Call `step` until done, then `leave`."""

    folding: type[Folding] = Folding  # tests put one in its place whose cycles are full sooner

    def __init__(  # noqa: PLR0913 - each by its name: what the loop stands on, and what tests put in its place
        self,
        topology: Topology,
        log: Log,
        store: Store,
        *,
        settings: MemberSettings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        crash: Crash = never,
    ) -> None:
        self.topology = topology
        self.settings = settings or MemberSettings()
        self.limits = self.settings.limits
        self.counters = Counters(letters=dict.fromkeys(topology.processors, 0))
        self.shards: dict[tuple[str, int], Shard] = {}
        self._log = log
        self._store = store
        self.times = PartitionTimes(clock, self.counters)
        self._crash = crash
        self._arrived: list[Shard] = []  # assigned, not yet admitted
        self._waiting: list[Run] = []  # taken, not yet folded
        self._runs: list[Run] = []  # to be folded in this cycle
        self._timers: list[Timer] = []  # due in this cycle
        self._background: list[Timer] = []  # likewise; what cannot fire in this cycle fires in the next one
        self._told: set[str] = set()  # processors whose groups have told us what is ours
        self._joined = True
        self._recovery: Callable[[], None] | None = None
        self._holding = False
        self.rests = False  # after background work. A loop that runs by itself does; a test that steps does not
        self._apply_failures = 0
        self._patient = frozenset(p.name for p in topology.processors.values() if p.is_patient)
        self._turn_from = 0.0  # of patient processors
        codec = Codec(topology.catalog(), self.settings.framing, record_bytes_max=self.limits.record_bytes_max)
        self.delivery = Delivery(topology, self.limits, enabled=self.settings.same_cycle)
        self._fold = Fold(topology, codec, log=log, delivery=self.delivery, counters=self.counters)
        self.overtime = self._fold.overtime = Overtime(self.limits.decision_ms_max)
        self._folding = self.folding(self._fold, self.counters)
        self._fold.on_bug, self._fold.set_aside = self.settings.on_bug, self.settings.set_aside
        self._inputs = Inputs(log, self.settings)
        self._restorer = Restorer(log, store, limits=self.limits, counters=self.counters, crash=crash)

    def join(self) -> None:
        """Ask the log for partitions. If it is away, the steps go on asking."""
        self._joined = False
        try:
            self._join()
        except (CycleAborted, ProducerLost) as error:
            _log.warning("cannot join yet: %s", error)

    def _join(self) -> None:
        self._log.join(self)
        self._joined = True

    def leave(self) -> None:
        """Stop in good order: nothing is in flight between two steps, so there is nothing to save."""
        self.overtime.close()
        self._log.leave()
        self.revoked_all()

    # What the log tells us ------------------------------------------------------------------------------------------

    def assigned(self, processor: str, partitions: Iterable[int]) -> None:
        """New partitions: their shards are admitted by the next step."""
        for partition in partitions:
            shard = Shard(self.topology.processors[processor], partition, topology=self.topology, store=self._store)
            self.shards[processor, partition] = shard
            self._arrived.append(shard)
        self._told.add(processor)
        self._owned()

    def revoked(self, processor: str, partitions: Iterable[int]) -> None:
        """Partitions that are no longer ours. Their tables stay on disk, in case they come back."""
        self._crash(CrashPoint.DURING_REVOKE)
        gone = [self.shards.pop((processor, p)) for p in partitions if (processor, p) in self.shards]
        self._restorer.drop(gone)
        self._arrived = [s for s in self._arrived if s not in gone]
        self._waiting = [r for r in self._waiting if (r.processor, r.place.partition) in self.shards]
        self._owned()

    def revoked_all(self) -> None:
        for processor in self.topology.processors:
            self.revoked(processor, [p for name, p in list(self.shards) if name == processor])

    def progress(self) -> list[Progress]:
        """How far the restoring shards have come."""
        return self._restorer.progress(self.times.steady())

    @property
    def ready(self) -> bool:
        """Every shard that we hold is folding."""
        return bool(self.shards) and all(s.active for s in self.shards.values())

    # The cycle ------------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one cycle, or the next part of a recovery. Returns whether there was anything to do."""
        try:
            if not self._joined:
                self._join()
            if self._recovery is not None:
                self._recover()
            if self._arrived:
                self._answer()
            self._admit()
            if self._restorer:
                self._activate(self._restorer.step(self.times.wall, self._restore_wait_s()))
            return self._turn()
        except CycleAborted as error:
            self._failed(error, self._log.abort)
            self.counters.aborts += 1
        except ProducerLost as error:
            self._failed(error, self._log.renew)
            self.counters.renewals += 1
        return True

    def _turn(self) -> bool:
        """Take what is there, or wait for it, and do a cycle. The collector rests all the while, except for the wait.

        Were it woken between taking and folding, it would look at all that was taken.
        """
        with at_rest():
            came = self._take(0.0)
            wait_s = 0.0 if came else self._wait_s()
            if not wait_s:
                return self._cycle()
        self._take(wait_s)
        with at_rest():
            return self._cycle()

    def _cycle(self) -> bool:
        began = time.perf_counter()
        if not self._fill():
            return self._holding
        self._log.begin()
        self._inputs.fold(self._fold)
        self._fold_all()
        self._commit()
        self._inputs.committed()
        self._runs = []
        self._apply_failures = 0
        self.counters.cycles += 1
        self.counters.cycle_times.add((time.perf_counter() - began) * 1000)
        return True

    def _take(self, wait_s: float) -> bool:
        """Take records, ends and partitions. Returns whether there were any."""
        taken = self._log.take(self._room(), wait_s)
        for run in taken.runs:
            shard = self.shards.get((run.processor, run.place.partition))
            if shard is not None and shard.active and run.records:
                source = shard.inputs[run.place.topic]
                source.reached = max(source.reached, run.records[-1].offset + 1)
                self._waiting.append(run)
        for processor, place, offset in taken.ends:
            shard = self.shards.get((processor, place.partition))
            if shard is not None and shard.active:
                source = shard.inputs[place.topic]
                source.reached = max(source.reached, offset)
        if taken.runs:
            self._crash(CrashPoint.AFTER_CONSUME)
        return bool(taken.runs or taken.ends or self._arrived)

    def _room(self) -> int:
        # Even a full member must hear of partitions coming and going, and of the commands that a hold waits for.
        waiting = sum([len(run.records) for run in self._waiting])
        return max(self.limits.records_max - waiting, HOLD_ROOM_RECORDS if self._holding else 0)

    def _wait_s(self) -> float:
        if self._holding:
            return HOLD_WAIT_S
        if self._restorer or self._recovery or any(run.processor not in self._patient for run in self._waiting):
            return 0.0
        if self.rests and (rest_s := self._folding.rest_s()):
            return min(rest_s, REST_SLICE_S)
        until_turn_s = max(0.0, self._turn_from - time.perf_counter()) if self._waiting else math.inf
        return min(self._idle_s(), until_turn_s)

    def _fill(self) -> bool:
        """Fill the queue of this cycle: what was taken, and the timers that are due. Nothing while commands settle."""
        fold = self._fold
        fold.now_ms, fold.steady_ms = self.times.tick(self.shards.values())
        fold.time = rfc3339(fold.now_ms)
        fold.forget()
        self._holding = self.delivery.hold(fold.steady_ms, self._log.ends)
        self.counters.settles += self._holding
        self._timers, self._background = [], []
        if self._holding:
            return False
        self._runs, self._waiting = self._divided()
        self._timers, self._background = all_due(self.shards.values(), self.limits.timers_max)
        if self._background and self.rests and self._folding.rest_s(is_shared=self._is_shared()):
            self._background = []
        is_due = self._inputs.due(self.shards.values(), self._runs + self._waiting, fold.steady_ms)
        return bool(self._runs or self._timers or self._background or is_due)

    def _is_shared(self) -> bool:
        """Whether there is more to fold than background timers, and what publishers make of their events."""
        return bool(self._timers) or any(run.processor not in self._patient for run in self._runs)

    def _more(self) -> list[Timer]:
        """The background timers that this cycle's own have set. A member that does not rest takes one turn each."""
        return all_due(self.shards.values(), self.limits.timers_max)[1] if self.rests else []

    def _divided(self) -> tuple[list[Run], list[Run]]:
        """What is folded in this cycle, and what waits: the records of patient processors, until their next turn."""
        patient = [run for run in self._waiting if run.processor in self._patient] if self._patient else []
        now = time.perf_counter()
        many = sum([len(run.records) for run in patient]) * PATIENT_SHARE > self.limits.records_max
        if not patient or many or now >= self._turn_from:
            self._turn_from = now + self.limits.patience_ms / 1000 if patient else self._turn_from
            return self._waiting, []
        return [run for run in self._waiting if run.processor not in self._patient], patient

    def _fold_all(self) -> None:
        work = Work(self._runs, self._timers, self._background, self._is_shared(), self._more)
        left = self._folding.fold(work, self.shards, self.limits, is_careful=self._apply_failures > 0)
        self._waiting = left + self._waiting

    # The transaction ------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        """Steps 3 and 4. Their order is the protocol; the mutation tests break it on purpose."""
        began = time.perf_counter()
        self._send_rows()
        self._crash(CrashPoint.AFTER_PRODUCE)
        self._send_offsets()
        self._crash(CrashPoint.BEFORE_COMMIT)
        self._log.commit()
        self._crash(CrashPoint.AFTER_COMMIT)
        self._write_tables()
        took_ms = (time.perf_counter() - began) * 1000
        self.counters.commit_times.add(took_ms)
        self.counters.commit_ms_max = max(self.counters.commit_ms_max, took_ms)

    def _send_rows(self) -> None:
        for shard in self._fold.touched:
            self.times.keep(shard)
            self.counters.swept_rows += shard.state.sweep(self.limits.sweep_rows_max)
            rows = shard.state.changes()
            if rows:
                self._log.send_rows(shard.changelog, rows)
            elif shard.state.size_bytes:
                shard.state.clear()  # all that was written has been deleted again

    def _send_offsets(self) -> None:
        offsets: dict[str, dict[Place, int]] = {}
        for shard in self._fold.touched:
            offsets.setdefault(shard.processor.name, {}).update(shard.offsets)
        for processor, places in offsets.items():
            self._log.send_offsets(processor, places)

    def _write_tables(self) -> None:
        batch = Batch()
        changed = [s for s in self._fold.touched if s.state.changed]
        now_ms = self._fold.now_ms
        for shard in changed:
            end = self._log.row_end(shard.changelog)
            shard.state.stage(batch, self._restorer.meta(shard.changelog, end, now_ms))
        self._store.write(batch)
        for shard in changed:
            shard.state.clear()

    # Coming and going -----------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """Take new shards in: final offsets first, then barriers and the changelog, whose ends must come after."""
        settled = self._settled()
        if not settled:
            return
        self.delivery.draw(self._log.ends)
        there = self._restorer.add(settled, self.times.wall)
        self._arrived = [s for s in self._arrived if s not in settled or self._restorer.doubts(s)]
        self._activate(there)

    def _settled(self) -> list[Shard]:
        """New shards whose offsets are final. Those that somebody's open transaction holds hold nobody else up."""
        by_processor: dict[str, list[Shard]] = {}
        for shard in self._arrived:
            by_processor.setdefault(shard.processor.name, []).append(shard)
        settled: list[Shard] = []
        for processor, shards in by_processor.items():
            try:
                if self._inputs.place(processor, shards, self.times.steady()):
                    settled += shards
            except CycleAborted as error:
                _log.info("%d partitions of %s wait for final offsets: %s", len(shards), processor, error)
        return settled

    def _activate(self, shards: Iterable[Shard]) -> None:
        for shard in shards:
            if self.shards.get((shard.processor.name, shard.partition)) is shard:
                self._log.start(shard.processor.name, shard.offsets)
                self.times.resume(shard)
                shard.active = True
                _log.info("shard %s is folding", shard)
        self._count_shards()

    def _failed(self, error: Exception, repair: Callable[[], None]) -> None:
        """Give the cycle up. What repairs it may fail too, and is then tried again by the next step."""
        _log.warning("cycle given up: %s", error)
        self._apply_failures += isinstance(error, ApplyFailed)
        if self._apply_failures > self.limits.apply_failures_max:
            raise FoldError(f"{self._apply_failures} cycles in a row failed in apply; the last: {error}") from error
        self._recovery = repair
        self._rewind()

    def _rewind(self) -> None:
        """Forget everything that is not committed."""
        self._waiting = []
        self._runs = []
        self._fold.forget()
        self._restorer.drop(list(self.shards.values()))
        self._arrived = list(self.shards.values())
        for shard in self._arrived:
            shard.rewind()
        self._count_shards()

    def _recover(self) -> None:
        try:
            if self._recovery is not None:
                self._recovery()
        except ProducerLost:
            self._recovery = self._log.renew
            self._answer()
            raise
        self._recovery = None

    def _answer(self) -> None:
        """Answer the groups before anything that may fail again and again: a silent member holds up all others."""
        self._take(0.0)

    def _owned(self) -> None:
        self.delivery.owned(self.shards.values())
        self._count_shards()

    def _count_shards(self) -> None:
        self.counters.groups_joined = len(self._told)
        self.counters.shards = len(self.shards)
        self.counters.shards_active = sum(s.active for s in self.shards.values())

    def _idle_s(self) -> float:
        """How long there is nothing to do: until the next timer, at most the idle wait."""
        wait_ms = self.limits.idle_wait_ms
        for shard in self.shards.values():
            due = shard.state.next_due_at_ms() if shard.active else None
            if due is not None and not shard.parked:
                wait_ms = min(wait_ms, max(due - self.times.now_ms(shard), 0))
        return wait_ms / 1000

    def _restore_wait_s(self) -> float:
        busy = any(s.active for s in self.shards.values())
        return 0.0 if busy else self.limits.restore_slice_ms / 1000
