"""A member's cycle: its limits, what it sends, how it comes and goes, and how it recovers from each failure."""

from typing import Any

import pytest

from kapelle.processors.messages import Message
from kapelle.testing.cluster import Outcome
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import BrokerRefused, CycleAborted, ProducerLost
from kapelle.topology.log import Place
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Counted, Hop, Hopped
from tests.proof.processors import STAGES, Count, Counting, counting, joining, reminding, stages
from tests.unit.topology.world import World, processor_of, tick

SLOW_MS = 60_000


def limited(**limits: Any) -> MemberSettings:
    return MemberSettings(limits=Limits(**{"cycle_ms_max": SLOW_MS, **limits}))


def counted(world: World) -> list[tuple[str, int]]:
    return [(event.id, event.count) for _, event in world.events("counting")]


def with_ticks(number: int, settings: MemberSettings | None = None, **how: Any) -> World:
    world = World(counting, settings=settings, **how)
    for n in range(number):
        world.publish("ticks", "a", tick(str(n)))
    return world


def all_ticks(number: int) -> list[tuple[str, int]]:
    return [(str(n), n + 1) for n in range(number)]


class Crashed(BaseException):
    """The process is gone."""


# Limits -------------------------------------------------------------------------------------------------------------


def test_a_cycle_takes_no_more_records_than_it_may() -> None:
    world = with_ticks(50, limited(records_max=20))

    world.run()

    assert {asked for asked, _ in world.log.asked} == {20}
    assert world.member.counters.cycles == 3
    assert counted(world) == all_ticks(50)


@pytest.mark.parametrize("limits", [{"overlay_bytes_max": 1}, {"cycle_ms_max": -1}], ids=["memory", "time"])
def test_a_cycle_that_is_full_commits_early_and_loses_nothing(limits: dict[str, int]) -> None:
    world = with_ticks(200, limited(**limits))

    world.run()

    assert world.member.counters.early_commits == 3
    assert world.member.counters.cycles == 4
    assert counted(world) == all_ticks(200)


def test_records_that_wait_leave_less_room_for_others() -> None:
    world = with_ticks(200, limited(overlay_bytes_max=1, records_max=200))
    world.step(3)

    (room, wait_s) = world.log.asked[-1]

    assert (room, wait_s) == (64, 0.0)


@pytest.mark.parametrize("folds_max", [1, 3, 7])
def test_commands_that_the_cycle_cannot_take_go_to_their_topics_in_order(folds_max: int) -> None:
    world = World(*stages, settings=limited(folds_max=folds_max, settle_again_ms=0))
    world.run()
    for number in range(1, 21):
        world.publish("stage-1", f"{number % 3}", Hop(f"{number % 3}", (number + 2) // 3))

    world.run()

    for stage in range(1, STAGES + 1):
        events = [event for _, event in world.events(f"stage-{stage}")]
        assert len(events) == 20
        assert all(isinstance(event, Hopped) and event.previous == event.number - 1 for event in events)
    assert world.member.counters.early_commits > 0
    assert world.read("stage-2") != []


def test_commands_within_a_cycle_never_reach_their_topics() -> None:
    world = World(*stages)
    world.run()
    for number in range(1, 11):
        world.publish("stage-1", "a", Hop("a", number))

    cycles = world.member.counters.cycles
    world.run()

    assert world.member.counters.cycles == cycles + 1
    assert [world.read(f"stage-{n}") for n in (2, 3, 4)] == [[], [], []]
    assert len(world.events("stage-4")) == 10
    assert (world.member.counters.delivered, world.member.counters.events) == (30, 40)


# Transactions -------------------------------------------------------------------------------------------------------


def test_outputs_offsets_and_rows_are_one_transaction() -> None:
    world = with_ticks(1)
    world.log.faults.commit_aborted = True
    world.step(2)

    assert (counted(world), world.committed("counting"), world.entries("w.counting.changelog")) == ([], {}, [])

    world.run()
    assert counted(world) == all_ticks(1)
    assert world.committed("counting") == {Place("w.ticks", 0): 1}
    assert changed_tables(world) == ["_time", "counts"]


def changed_tables(world: World) -> list[str]:
    """The tables whose rows went to the changelog, one name for each row."""
    entries = world.entries("w.counting.changelog")
    return sorted((entry.key or b"").partition(b"\0")[0].decode() for entry in entries)


def test_the_changelog_gets_the_last_value_of_each_key() -> None:
    world = with_ticks(10)

    world.run()

    assert changed_tables(world) == ["_time", "counts"]


def test_a_cycle_has_one_transaction_for_all_processors() -> None:
    world = World(counting, joining, *stages, reminding)
    world.run()
    world.publish("ticks", "a", tick("1"))
    world.publish("stage-1", "a", Hop("a", 1))

    cycles = world.member.counters.cycles
    world.run()

    assert world.member.counters.cycles == cycles + 1
    assert world.committed("counting") == {Place("w.ticks", 0): 1}
    assert world.committed("stage-1") == {Place("w.stage-1", 0): 1}
    assert world.committed("stage-4") == {Place("w.stage-4", 0): 0}


@pytest.mark.parametrize("point", [CrashPoint.AFTER_CONSUME, CrashPoint.AFTER_PRODUCE, CrashPoint.BEFORE_COMMIT])
def test_a_crash_before_the_commit_leaves_nothing(point: CrashPoint) -> None:
    world = with_ticks(3, crash=lambda at: crashing(at, point))
    with pytest.raises(Crashed):
        world.run()

    assert (counted(world), world.shard("counting").state.meta()) == ([], None)

    world.restart()
    world.run()
    assert counted(world) == all_ticks(3)


def test_a_crash_between_the_commit_and_the_tables_is_repaired_from_the_changelog() -> None:
    world = with_ticks(3, crash=lambda at: crashing(at, CrashPoint.AFTER_COMMIT))
    with pytest.raises(Crashed):
        world.run()
    assert world.shard("counting").state.meta() is None

    world.restart()
    world.run()

    assert counted(world) == all_ticks(3)
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")
    assert world.member.counters.restored_rows == 2  # the count, and how late it is


def crashing(at: CrashPoint, point: CrashPoint) -> None:
    if at is point:
        raise Crashed


# Coming and going ---------------------------------------------------------------------------------------------------


def test_records_that_wait_for_a_partition_that_is_taken_away_are_left_to_its_next_owner() -> None:
    world = with_ticks(200, limited(overlay_bytes_max=1))
    world.step(2)
    assert len(counted(world)) == 64

    world.start("two")
    world.share(among=["two"])
    world.run()

    assert counted(world) == all_ticks(200)
    assert world.member.shards == {}


def test_a_member_that_left_frees_its_partitions_and_keeps_its_tables() -> None:
    world = with_ticks(3)
    world.run()

    world.member.leave()
    world.members.pop("one")
    world.start("two")
    world.publish("ticks", "a", tick("3"))
    world.run()

    assert counted(world) == all_ticks(4)
    assert world.member.shards == {}
    assert world.store.get(b"counting\0\0\0\0\0_meta\0") is not None


def test_a_member_is_ready_when_all_its_shards_are_folding() -> None:
    world = World(counting, partitions=3)
    assert not world.member.ready

    world.step()
    assert (world.member.ready, len(world.member.shards)) == (False, 3)

    world.step()
    assert world.member.ready
    assert world.member.counters.shards_active == 3


def test_a_member_without_partitions_is_not_ready() -> None:
    world = World(counting)
    other = world.start("two")

    world.step(3)

    assert (world.member.ready, other.ready) == (True, False)


def test_partitions_that_come_back_are_taken_up_where_they_were_left() -> None:
    world = with_ticks(3)
    world.start("two")
    for owner in ("one", "two", "one", "two", "one"):
        world.share(among=[owner])
        world.run()
        world.publish("ticks", "a", tick(owner))
    world.run()

    assert [count for _, count in counted(world)] == list(range(1, 9))
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


def test_a_record_that_comes_twice_is_folded_once() -> None:
    world = with_ticks(3)
    world.run()
    world.log.faults.repeat_records = 2

    world.run()

    assert counted(world) == all_ticks(3)
    assert world.member.counters.repeats == 2


# Recovery -----------------------------------------------------------------------------------------------------------

METHODS = ["take", "begin", "send", "send_rows", "send_offsets", "commit"]
STARTING = ["committed", "ends", "start", "rows"]


def checked(world: World, number: int) -> None:
    """All is there once, in the outputs and in the tables."""
    assert counted(world) == all_ticks(number)
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")
    assert world.committed("counting") == {Place("w.ticks", 0): number}


@pytest.mark.parametrize("error", [CycleAborted, ProducerLost])
@pytest.mark.parametrize("method", METHODS)
def test_a_failure_anywhere_in_a_cycle_is_recovered_from(method: str, error: type[Exception]) -> None:
    world = with_ticks(3)
    world.run()
    world.publish("ticks", "a", tick("3"))
    world.log.errors[method] = [error("as told")]

    world.run()

    checked(world, 4)
    counters = world.member.counters
    assert (counters.aborts, counters.renewals) == ((1, 0) if error is CycleAborted else (0, 1))


@pytest.mark.parametrize("error", [CycleAborted, ProducerLost])
@pytest.mark.parametrize("method", STARTING)
def test_a_failure_anywhere_in_a_start_is_recovered_from(method: str, error: type[Exception]) -> None:
    world = with_ticks(3)
    world.run()
    world.store = MemoryStore()
    world.restart()
    world.publish("ticks", "a", tick("3"))
    world.log.errors[method] = [error("as told"), error("and again")]

    world.run()

    checked(world, 4)


def unsettled(steps: int) -> list[Exception]:
    return [CycleAborted("somebody's transaction is open") for _ in range(steps)]


def test_partitions_whose_offsets_are_not_final_hold_up_no_others() -> None:
    world = World(counting, joining)
    world.log.errors["committed of joining"] = unsettled(5)
    world.publish("ticks", "a", tick("0"))
    world.step(5)

    assert counted(world) == all_ticks(1)
    assert not world.shard("joining").active
    assert world.member.counters.aborts == 0

    world.run()
    assert world.shard("joining").active


@pytest.mark.parametrize("error", [CycleAborted, ProducerLost])
@pytest.mark.parametrize("method", ["committed", "ends", "start", "renew"])
def test_partitions_come_and_go_whatever_fails_again_and_again(method: str, error: type[Exception]) -> None:
    world = World(counting)
    world.log.errors["commit"] = [ProducerLost("as told")]
    world.publish("ticks", "a", tick("0"))
    world.log.errors[method] = [error("as told") for _ in range(100)]
    world.step(5)
    assert world.member.shards

    world.start("two")
    world.share(among=["two"])
    world.step(2)
    assert not world.member.shards

    world.abort_open()
    world.step(2)
    assert world.members["two"].ready


@pytest.mark.parametrize("outcome", [Outcome.COMMITTED, Outcome.ABORTED, Outcome.OPEN])
def test_a_commit_without_an_answer_is_settled_by_a_new_producer(outcome: Outcome) -> None:
    world = with_ticks(3)
    world.log.faults.commit_unanswered = outcome

    world.run()

    checked(world, 3)
    assert world.member.counters.renewals == 1


def test_what_repairs_a_cycle_may_fail_too_and_is_tried_again() -> None:
    world = with_ticks(3)
    world.step()
    world.log.errors["commit"] = [ProducerLost("fenced")]
    world.log.errors["renew"] = [ProducerLost("the broker is away")] * 3

    world.run()

    checked(world, 3)


def test_an_abort_that_fails_costs_a_new_producer() -> None:
    world = with_ticks(3)
    world.step()
    world.log.errors["commit"] = [CycleAborted("refused")]
    world.log.errors["abort"] = [ProducerLost("fenced meanwhile")]

    world.run()

    checked(world, 3)
    assert (world.member.counters.aborts, world.member.counters.renewals) == (1, 1)


def test_a_member_that_is_fenced_goes_on_with_a_new_producer() -> None:
    world = with_ticks(3)
    world.step()
    world.cluster.init_producer("one")

    world.run()

    checked(world, 3)
    assert world.member.counters.renewals == 1


def test_a_member_that_was_expelled_joins_again() -> None:
    world = with_ticks(3)
    world.run()
    world.cluster.expel("one")
    world.share()
    world.publish("ticks", "a", tick("3"))
    world.step()
    world.share()

    world.run()

    checked(world, 4)


def test_offsets_that_are_not_stable_are_waited_for() -> None:
    world = with_ticks(3)
    abandoned = world.cluster.begin("dead", world.cluster.init_producer("dead"))
    abandoned.offsets["counting"] = {Place("w.ticks", 0): 2}

    world.step(5)
    assert counted(world) == []

    world.abort_open()
    world.run()
    checked(world, 3)


def test_after_a_failure_the_overlays_are_forgotten() -> None:
    world = with_ticks(1)
    world.step()
    world.log.errors["commit"] = [CycleAborted("refused")]

    world.step()

    assert not world.shard("counting").state.changed
    assert not world.shard("counting").active


@pytest.mark.parametrize("method", METHODS)
def test_what_no_retry_mends_stops_the_member(method: str) -> None:
    world = with_ticks(1)
    world.step()
    world.log.errors[method] = [BrokerRefused("not authorised")]

    with pytest.raises(BrokerRefused):
        world.run()

    world.member.leave()
    assert counted(world) == []


# Counters -----------------------------------------------------------------------------------------------------------


def test_counters_tell_what_was_done() -> None:
    world = World(counting, *stages)
    world.run()
    world.publish("ticks", "a", tick("1"))
    world.publish("ticks", "a", b"?")
    world.publish("stage-1", "a", Hop("a", 1))

    world.run()

    found = world.member.counters.snapshot()
    assert {name: found[name] for name in ("records", "events", "sent", "delivered", "dead_letters", "cycles")} == {
        "records": 3,
        "events": 5,
        "sent": 6,
        "delivered": 3,
        "dead_letters": 1,
        "cycles": 2,  # in the first, where the inputs begin is committed
    }
    assert (found["shards_active"], found["shards_restoring"], found["restores"]) == (5, 0, 5)
    counters = world.member.counters
    assert counters.cycle_times.sum_ms >= counters.commit_times.sum_ms >= found["commit_ms_max"] > 0
    assert (sum(counters.cycle_times.counts), sum(counters.commit_times.counts)) == (2, 2)
    assert (found["shards"], found["groups_joined"], counters.letters["counting"]) == (5, 5, 1)


def test_shards_that_are_being_restored_after_a_failure_do_not_count_as_folding() -> None:
    world = with_ticks(3)
    world.run()
    world.publish("ticks", "a", tick("3"))
    world.log.errors["commit"] = [CycleAborted("as told")]

    world.step()

    counters = world.member.counters
    assert (counters.aborts, counters.shards, counters.shards_active) == (1, 1, 0)
    world.run()
    assert counters.shards_active == 1


def test_events_are_what_readers_see() -> None:
    world = with_ticks(1)

    world.run()

    assert world.events("counting") == [("a", Counted("0", "word", 1))]


def test_a_cycle_whose_rows_came_and_went_leaves_no_rows_behind() -> None:
    def fleeting(message: Message[Counted], state: Counting) -> None:
        state.counts.put((message.key,), Count(message.value.count))
        state.counts.delete((message.key,))

    world = World(processor_of(apply=fleeting))
    for n in range(3):
        world.publish("ticks", "a", tick(str(n)))
        world.run()

    assert len(world.events("counting")) == 3
    rows = [entry.key for entry in world.entries("w.counting.changelog")]
    assert rows == [b"_time\0"]  # how late it is, which is no row of the processor
    assert world.shard("counting").state.size_bytes == 0
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


def test_no_more_records_are_begun_when_few_folds_are_left_for_what_they_set_off() -> None:
    world = World(*stages, settings=limited(folds_max=400))
    world.run()
    for n in range(1, 1_001):
        world.publish("stage-1", "a", Hop("a", n))

    world.run()

    assert len(world.events("stage-4")) == 1_000
    assert world.member.counters.delivered == 3_000, "commands that overflow would have taken their topics"
