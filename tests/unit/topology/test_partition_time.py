"""The time of a partition: it never goes back, whoever owns it and whatever clocks do, and it always goes on."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.processor import Processor
from kapelle.testing.clock import VirtualClock
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import CycleAborted
from kapelle.topology.member import Member
from kapelle.topology.partition_time import SYSTEM_CLOCK, steady_of
from kapelle.topology.shard_time import LEASE_MS, SLOWED_BY, ShardTime
from kapelle.topology.tables import Batch, MemoryStore, ShardState
from tests.proof.contracts import Reminded, Reminder, ReminderSet
from tests.proof.processors import counting, reminding
from tests.unit.topology.test_learning import newer
from tests.unit.topology.world import NOW_MS, WatchedLog, World

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Clocked(World):
    """A world whose members have clocks of their own, which can be set."""

    def __init__(self, *processors: Processor[Any]) -> None:
        self.clocks = {"one": VirtualClock(NOW_MS)}
        super().__init__(*(processors or (reminding,)))

    def start(self, name: str, **more: object) -> Member:
        """Start a member on its own clock."""
        clock = self.clocks.setdefault(name, VirtualClock(NOW_MS))
        log = self.logs[name] = WatchedLog(self.cluster, self.topology, name)
        crash = more.get("crash", lambda _: None)
        made = Member(self.topology, log, MemoryStore(), settings=self.settings, clock=clock, crash=crash)  # type: ignore[arg-type]
        self.members[name] = made
        made.join()
        self.share()
        return made

    def remind(self, name: str, after_ms: int) -> None:
        self.publish("reminders", "a", Reminder(name, after_ms))
        self.run()

    def pass_by(self, ms: int) -> None:
        for clock in self.clocks.values():
            clock.advance(ms)
        self.run()

    def bounds(self) -> list[bytes | None]:
        """The bounds that went to the changelog."""
        return [entry.value for entry in self.entries("w.reminding.changelog") if entry.key == b"_time\0"]

    def reminded(self) -> list[str]:
        return [event.id for _, event in self.events("reminding") if isinstance(event, Reminded)]

    def set_at(self) -> list[int]:
        """When the reminders were set, if they were for no time later."""
        return [event.due_at_ms for _, event in self.events("reminding") if isinstance(event, ReminderSet)]


def almost(ms: int) -> int:
    """So long takes a duration, at most, in a shard that is ahead of its clock."""
    return ms * SLOWED_BY // (SLOWED_BY - 1) + 2


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, -DAY_MS * 400, HOUR_MS, DAY_MS * 10])
def test_a_timer_that_was_set_before_a_jump_ends_after_its_duration(jump_ms: int) -> None:
    world = Clocked()
    world.remind("nap", 6_000)

    world.clocks["one"].jump(jump_ms)
    world.pass_by(almost(6_000))

    assert world.reminded() == ["nap"]


@pytest.mark.parametrize("jumps_ms", [(-HOUR_MS,), (DAY_MS * 10, -DAY_MS * 10), (DAY_MS * 80_000, -DAY_MS * 80_000)])
def test_a_timer_that_is_set_after_jumps_ends_after_its_duration_and_not_before(jumps_ms: tuple[int, ...]) -> None:
    world = Clocked()
    world.remind("now", 0)
    for jump_ms in jumps_ms:
        world.clocks["one"].jump(jump_ms)
        world.remind(f"after {jump_ms}", 0)

    world.remind("nap", 6_000)
    world.pass_by(5_900)
    before = world.reminded()
    world.pass_by(almost(6_000) - 5_900)

    assert "nap" not in before
    assert "nap" in world.reminded()


def test_a_successor_whose_clock_is_behind_begins_where_its_predecessor_ended() -> None:
    world = Clocked()
    world.clocks["one"].jump(HOUR_MS)
    world.remind("now", 0)
    world.remind("nap", 6_000)

    world.clocks["two"] = VirtualClock(NOW_MS)
    world.start("two")
    world.share(among=["two"])
    world.run()
    world.remind("then", 0)
    world.pass_by(almost(6_000))

    assert world.set_at()[0] <= world.set_at()[2] <= world.set_at()[0] + LEASE_MS
    assert sorted(world.reminded()) == ["nap", "now", "then"]


def test_a_bound_is_written_once_a_second_at_most() -> None:
    world = Clocked()

    for number in range(30):
        world.remind(f"r{number}", 0)
        world.pass_by(100)

    assert len(world.bounds()) == 3


def test_a_bound_that_was_given_up_with_its_cycle_is_written_by_the_next() -> None:
    world = Clocked()
    world.logs["one"].errors["commit"] = [CycleAborted("refused")]

    world.remind("now", 0)

    assert len(world.bounds()) == 1


def test_a_restart_between_the_commit_and_the_tables_does_not_take_time_back() -> None:
    def crash(at: CrashPoint) -> None:
        if at is CrashPoint.AFTER_COMMIT:
            raise RuntimeError("gone")

    world = Clocked()
    world.cluster.expel("one")
    world.clocks["one"].jump(DAY_MS)
    world.start("one", crash=crash)
    with pytest.raises(RuntimeError, match="gone"):
        world.remind("now", 0)

    world.cluster.expel("one")
    world.clocks["one"] = VirtualClock(NOW_MS)
    world.start("one")
    world.remind("then", 0)

    first, second = world.set_at()
    assert first <= second <= first + LEASE_MS


def test_history_knows_nothing_of_bounds() -> None:
    world = Clocked()
    world.remind("now", 0)

    state = world.member.shards["reminding", 0].state
    assert state.time_bound_ms() == NOW_MS + LEASE_MS
    assert "_time" not in {name for name, _, _ in state.rows()}
    assert not [key for key, _ in state.encoded() if key.startswith(b"_time")]
    assert state.fingerprint() == world.fold_of("reminding")


def test_a_bound_is_restored_from_the_changelog() -> None:
    world = Clocked()
    world.remind("now", 0)
    rows = [(entry.key or b"", entry.value) for entry in world.entries("w.reminding.changelog")]

    store, batch = MemoryStore(), Batch()
    state = ShardState(reminding, 0, store)
    state.restore(rows, batch)
    store.write(batch)
    state.clear()

    assert state.time_bound_ms() == NOW_MS + LEASE_MS


def test_a_small_difference_disappears_again() -> None:
    time = ShardTime()
    time.resume(NOW_MS + LEASE_MS, 0)

    ahead = [time.move(NOW_MS + passed, passed) - NOW_MS - passed for passed in range(0, 120_000, 10_000)]

    assert ahead[:3] == [1_000, 900, 800]
    assert ahead[10:] == [0, 0]


@given(st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(0, 10**7)), max_size=30))
def test_time_never_goes_back_and_never_stands_still(moves: list[tuple[int, int]]) -> None:
    time, wall_ms, steady_ms = ShardTime(), NOW_MS, 0
    last_ms = time.move(wall_ms, steady_ms)

    for jump_ms, passed_ms in moves:
        wall_ms, steady_ms = wall_ms + jump_ms + passed_ms, steady_ms + passed_ms
        now_ms = time.move(wall_ms, steady_ms)
        assert now_ms - last_ms >= passed_ms - passed_ms // SLOWED_BY - 1
        assert now_ms >= wall_ms
        last_ms = now_ms


def test_jumps_are_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    world = Clocked()
    world.remind("now", 0)

    with caplog.at_level(logging.WARNING, "kapelle.clock"):
        for jump_ms in (500, HOUR_MS, -HOUR_MS):
            world.clocks["one"].jump(jump_ms)
            world.remind(f"after {jump_ms}", 0)

    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "The wall clock has jumped forward by 3600.0 s",
        "The wall clock has jumped back by 3600.0 s",
    ]
    assert world.member.counters.clock_jumps == 2
    assert HOUR_MS - 1 <= world.member.counters.clock_ahead_ms <= HOUR_MS


def test_a_schema_is_looked_for_again_in_time_after_the_clock_went_back() -> None:
    world = Clocked(counting)
    data, schemas = newer("colour")
    world.publish("ticks", "a", data)
    world.run()

    world.log.published_schemas = schemas
    world.clocks["one"].jump(-HOUR_MS)
    world.clocks["one"].advance(1_001)
    world.publish("ticks", "a", data)
    world.run()

    assert world.log.schemas_asked == 2
    assert len(world.events("counting")) == 1


def test_how_much_time_has_passed_does_not_depend_on_how_a_clock_was_set() -> None:
    clock = VirtualClock(NOW_MS)
    steady = steady_of(clock)
    began_ms = steady()

    clock.jump(-HOUR_MS)
    clock.advance(5)

    assert steady() - began_ms == 5


def test_the_clock_of_this_machine_tells_both() -> None:
    steady = steady_of(SYSTEM_CLOCK)

    assert SYSTEM_CLOCK() > 1_600_000_000_000
    assert steady() <= steady()
