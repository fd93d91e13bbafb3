"""A seeded schedule: several members on one simulated cluster, and all faults that can happen to them.

Each seed is one history. At every turn it chooses what happens next: a member does a step, records are published,
a member dies (anywhere, or at a named moment of its cycle), is thrown out while it is in the middle of a cycle and
learns of it too late, loses its disk or finds an old one, gets no answer to a commit or to a question about offsets,
sees records twice, or records that cannot be read. Then the faults end, every member is started again, and what was
begun must come to its end. The same seed gives the same history.
"""

import random
from collections.abc import Callable, Iterable

from kapelle.schemas import Codec, Contract
from kapelle.testing.clock_jumps import Jumping
from kapelle.testing.cluster import Cluster, Outcome
from kapelle.testing.garbage import Garbage
from kapelle.testing.simulated_log import SimulatedLog
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.crash import CrashPoint
from kapelle.topology.log import Place
from kapelle.topology.member import Member
from kapelle.topology.partition_time import Clock
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import MemoryStore

DRAIN_STEPS_MAX = 3_000
LIMITS = Limits(settle_ms_max=40, settle_again_ms=100, restore_stuck_ms=30, records_max=20, cycle_ms_max=60_000)


FULL_CHANCE = 0.1


class Crashed(BaseException):
    """The process is gone. Not an `Exception`: no code of ours may catch it."""


class NotDrained(AssertionError):
    """After the faults ended, work was left undone."""


class Process:
    """One member with its disk. The disk outlives the member."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.disk = MemoryStore()
        self.backup: MemoryStore | None = None
        self.member: Member | None = None
        self.log: SimulatedLog | None = None
        self.fate: tuple[CrashPoint, Callable[[], None]] | None = None

    def end(self) -> None:
        """The member is gone. It goes without leaving circles behind: thousands of schedules are run in a row."""
        if self.log is not None:
            self.log.forget_listener()
        self.member = self.log = None


class Schedule:
    """One history of a topology under faults."""

    round_ms = 10  # how much time passes in a round after the faults

    def __init__(  # noqa: PLR0913 - what varies between schedules, each by its name
        self,
        topology: Topology,
        seed: int,
        *,
        processes: int = 3,
        member: type[Member] = Member,
        same_cycle: bool | None = True,
        limits: Limits = LIMITS,
        jumping: Jumping | None = None,
    ) -> None:
        self.topology = topology
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311 - it must be repeatable
        self.cluster = Cluster()
        self.codec = Codec(topology.catalog())
        self.garbage = Garbage(topology, self.cluster, self.chance)
        self.now_ms = 1_000_000
        self.processes = [Process(f"member-{n}", self._clock(jumping)) for n in range(processes)]
        self.faults = 0
        self._member_type = _hurried(jumping.watched(member) if jumping else member, self.chance)
        self._jumping = jumping
        self._same_cycle = same_cycle  # None: switch it now and then
        self._limits = limits
        self._unpublished: list[tuple[Place, bytes, bytes]] = []
        self._nested = False
        self.turns = TURNS  # what can happen, and how often

    # Driving --------------------------------------------------------------------------------------------------------

    def publish_later(self, messages: Iterable[tuple[str, str, Contract]]) -> None:
        """Messages as (stream, key, value), published bit by bit while the schedule runs, in order."""
        for name, key, value in messages:
            stream = self.topology.streams[name]
            place = Place(self.topology.topic(stream), partition_of(key, self.topology.partitions(stream)))
            self._unpublished.append((place, key.encode(), self.codec.encode(value)))
        self._unpublished.reverse()

    def run(self, turns: int) -> None:
        """Run the schedule with faults, then heal and drain."""
        self._start(self.processes[0])
        names = [name for name, weight in self.turns.items() for _ in range(weight)]
        for _ in range(turns):
            if self._jumping is not None:
                self._jumping.turn()
            getattr(self, f"_{self.chance.choice(names)}")()
        self.heal()
        self.drain()

    def _clock(self, jumping: Jumping | None) -> Clock:
        def passed() -> int:
            return self.now_ms

        return passed if jumping is None else jumping.clock(passed)

    def close(self) -> None:
        """Let everything go, disks included."""
        for process in self.processes:
            process.end()
        self.processes = []

    def heal(self) -> None:
        """Everyone is alive, and nothing goes wrong any more."""
        for process in self.processes:
            process.fate = None
            if process.log is not None:
                process.log.faults.__init__()  # type: ignore[misc] # a fresh sheet
            if process.member is None:
                self._start(process)
        self._publish_all()

    def drain(self) -> None:
        """Continue until every record is folded and every timer has fired."""
        for _ in range(DRAIN_STEPS_MAX):
            for process in self.processes:
                self._step_of(process)
            for transaction in list(self.cluster.open):
                self.cluster.finish(transaction, Outcome.ABORTED)
            self.now_ms += self.round_ms
            if self._idle():
                return
        raise NotDrained(f"seed {self.seed}: not drained after {DRAIN_STEPS_MAX} rounds")

    def _idle(self) -> bool:
        if any(p.member is None or (p.member.shards and not p.member.ready) for p in self.processes):
            return False
        for name, processor in self.topology.processors.items():
            group = self.cluster.groups[name]
            for partition in range(self.topology.processor_partitions(name)):
                if group.owner.get(partition) is None:
                    return False
                for stream in processor.inputs:
                    place = Place(self.topology.topic(stream), partition)
                    offset = group.offsets.get(place, 0)
                    if offset < self.cluster.end(place) and self.cluster.committed_entries(place, offset):
                        return False
        shards = [s for p in self.processes if p.member for s in p.member.shards.values()]
        return all(self._rests(s.state.next_due_at_ms()) for s in shards)

    def _rests(self, due_at_ms: int | None) -> bool:
        """Whether a shard with this next timer has nothing left to do."""
        return due_at_ms is None

    # What can happen ------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        process = self.chance.choice(self.processes)
        self._step_of(process)
        self.now_ms += self.chance.randrange(5)

    def _publish(self) -> None:
        for _ in range(min(self.chance.randrange(1, 6), len(self._unpublished))):
            self.cluster.publish(*self._unpublished.pop())

    def _start_or_stop(self) -> None:
        process = self.chance.choice(self.processes)
        if process.member is None:
            self._start(process)
        elif self.chance.random() < 0.5:
            self._leave(process)
        else:
            self._die(process)

    def _doom(self) -> None:
        """A member will die at a named moment."""
        process = self.chance.choice(self.processes)
        process.fate = (self.chance.choice(list(CrashPoint)), self._crash)

    def _stall(self) -> None:
        """A member will stand still at a named moment, while the others think it dead and go on."""
        process = self.chance.choice(self.processes)
        point = self.chance.choice(
            [CrashPoint.AFTER_CONSUME, CrashPoint.AFTER_PRODUCE, CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT]
        )
        process.fate = (point, lambda: self._stalled(process))

    def _unanswered(self) -> None:
        log = self.chance.choice(self.processes).log
        if log is not None:
            log.faults.commit_unanswered = self.chance.choice(list(Outcome))
            self.faults += 1

    def _silent(self) -> None:
        """No broker answers the next questions about offsets."""
        log = self.chance.choice(self.processes).log
        if log is not None:
            log.faults.unanswered = self.chance.randrange(1, 6)
            self.faults += 1

    def _refused(self) -> None:
        log = self.chance.choice(self.processes).log
        if log is not None:
            log.faults.commit_aborted = True
            self.faults += 1

    def _repeat(self) -> None:
        log = self.chance.choice(self.processes).log
        if log is not None:
            log.faults.repeat_records = self.chance.randrange(1, 4)
            self.faults += 1

    def _shuffle(self) -> None:
        self._share()

    def _expire(self) -> None:
        """The cluster notices: a dead member is thrown out, an abandoned transaction is aborted."""
        for process in self.processes:
            if process.member is None:
                self.cluster.expel(process.name)
        for transaction in list(self.cluster.open):
            if self.chance.random() < 0.7:
                self.cluster.finish(transaction, Outcome.ABORTED)
        self._share()

    def _backup(self) -> None:
        process = self.chance.choice(self.processes)
        process.backup = process.disk.copy()

    def _switch(self) -> None:
        for process in self.processes:
            if process.member is not None and self._same_cycle is None:
                process.member.delivery.enabled = self.chance.random() < 0.5

    def _litter(self) -> None:
        """Somebody publishes a record that cannot be read."""
        self.garbage.publish()
        self.faults += 1

    # How it happens -------------------------------------------------------------------------------------------------

    def _step_of(self, process: Process) -> None:
        if process.member is None:
            return
        try:
            process.member.step()
        except Crashed:
            self._die(process)

    def _leave(self, process: Process) -> None:
        try:
            if process.member is not None:
                process.member.leave()
        except Crashed:
            self._die(process)
        process.end()
        self._share()

    def _start(self, process: Process) -> None:
        self.cluster.expel(process.name)
        process.log = SimulatedLog(self.cluster, self.topology, process.name, choose=self.chance.randrange)
        process.member = self._member_type(
            self.topology,
            process.log,
            process.disk,
            settings=self.settings(process),
            clock=process.clock,
            crash=lambda point: self._reached(process, point),
        )
        process.member.join()
        self._share()

    def settings(self, process: Process) -> MemberSettings:
        """How the member of a process behaves."""
        return MemberSettings(instance=process.name, same_cycle=self._same_cycle is not False, limits=self._limits)

    def _die(self, process: Process) -> None:
        """The process is gone; its transaction stays open and its session lives on for a while."""
        self.faults += 1
        process.end()
        process.fate = None
        lot = self.chance.random()
        if lot < 0.1:
            process.disk = MemoryStore()
        elif lot < 0.2 and process.backup is not None:
            process.disk = process.backup.copy()
        else:
            process.disk = process.disk.copy()

    def _reached(self, process: Process, point: CrashPoint) -> None:
        if process.fate is not None and process.fate[0] is point:
            fate = process.fate[1]
            process.fate = None
            fate()

    @staticmethod
    def _crash() -> None:
        raise Crashed

    def _stalled(self, process: Process) -> None:
        """The others take over while this one is in the middle of its cycle."""
        if self._nested:
            return
        self._nested = True
        self.faults += 1
        self.cluster.expel(process.name)
        self._share(without=process)
        if self.chance.random() < 0.3:
            for transaction in [t for t in self.cluster.open if t.producer == process.name]:
                self.cluster.finish(transaction, Outcome.ABORTED)
        for _ in range(self.chance.randrange(12)):
            other = self.chance.choice(self.processes)
            if other is not process:
                self._step_of(other)
        self._nested = False

    def _share(self, without: Process | None = None) -> None:
        """Partitions go to those who are members, in an order that chance decides."""
        for name in self.topology.processors:
            group = self.cluster.groups.get(name)
            if group is None:
                continue
            members = [p.name for p in self.processes if p.name in group.members and p is not without]
            self.chance.shuffle(members)
            self.cluster.share(name, range(self.topology.processor_partitions(name)), members)

    def _publish_all(self) -> None:
        while self._unpublished:
            self.cluster.publish(*self._unpublished.pop())
        self._share()


TURNS = {
    "step": 60,
    "publish": 14,
    "start_or_stop": 4,
    "doom": 5,
    "stall": 5,
    "unanswered": 2,
    "silent": 3,
    "refused": 2,
    "repeat": 3,
    "shuffle": 2,
    "expire": 6,
    "backup": 1,
    "switch": 2,
    "litter": 2,
}


def _hurried(member: type[Member], chance: random.Random) -> type[Member]:
    """A member whose cycles are full at any moment, whatever the clock says."""

    class HurriedFolding(member.folding):  # type: ignore[misc, name-defined] # as it is, or broken on purpose
        def stride(self) -> int:
            return min(int(super().stride()), chance.randrange(1, 6))

        def full(self, until: float) -> bool:
            return chance.random() < FULL_CHANCE or bool(super().full(until))

    class Hurried(member):  # type: ignore[misc, valid-type] # as above
        folding = HurriedFolding

    return Hurried
