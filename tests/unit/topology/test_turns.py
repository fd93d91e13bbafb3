"""Whose turn it is: background timers go by workflow, partitions by cycle, and a slow decision ends its cycle."""

import time
from collections.abc import Iterable
from itertools import islice

import pytest

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.processor import Processor
from kapelle.topology import work
from kapelle.topology.log import Place, Record, Run
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.turns import Timer, Turns, left_over
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Counting, count, counted
from tests.unit.topology.world import World, processor_of, tick

ONE_A_CYCLE = MemberSettings(
    limits=Limits(cycle_ms_max=60_000, cascade_ms_max=60_000, background_ms_max=-1, alone_ms_max=-1)
)


def timers(world: World, *keys: str) -> list[Timer]:
    return [Timer(world.shard("counting"), key, "more/1", at) for at, key in enumerate(keys)]


def keys(found: Iterable[Timer], number: int) -> list[str]:
    return [timer.key for timer in islice(found, number)]


def test_a_workflow_with_many_runs_gets_as_many_turns_as_one_with_a_single_run() -> None:
    world, turns = World(processor_of()), Turns()
    world.run()
    waiting = timers(world, *(f"many/{number}" for number in range(5)), "one/1", "two/1")

    assert keys(turns.taken(waiting), 4) == ["many/0", "one/1", "two/1", "many/1"]


def test_who_had_no_turn_in_one_cycle_comes_first_in_the_next() -> None:
    world, turns = World(processor_of()), Turns()
    world.run()
    waiting = timers(world, "many/0", "many/1", "many/2", "one/1", "two/1")

    assert [keys(turns.taken(waiting), 1) for _ in range(4)] == [["many/0"], ["one/1"], ["two/1"], ["many/0"]]


def run_of(partition: int, *offsets: int) -> Run:
    return Run("counting", Place("w.ticks", partition), [Record(offset, b"a", b"") for offset in offsets])


def test_what_is_left_of_a_partition_comes_after_the_others_and_keeps_its_order() -> None:
    left = left_over([run_of(0, 1, 2, 3), run_of(1, 7), run_of(0, 4), run_of(2, 9)], 2)

    assert [(run.place.partition, [one.offset for one in run.records]) for run in left] == [
        (1, [7]),
        (2, [9]),
        (0, [2, 3]),
        (0, [4]),
    ]


# In a member --------------------------------------------------------------------------------------------------------


def going_on(rounds: int, *, turns_named: bool = False) -> Processor[Counting]:
    """Each tick sets a background timer, which goes on by itself for so many rounds.

    If names of timers tell whose turn it is, all keys that begin with the same letter share their turns.
    """

    def name_of(key: str, number: int) -> str:
        return f"more/{key[0]}/{number}" if turns_named else f"more/{number}"

    def more(message: Message[TimerDue], state: Counting, now_ms: int) -> Iterable[Effect]:
        return (Emit(Counted(f"more of {message.key}", "word", int(message.value.name.rpartition("/")[2]))),)

    def applied(message: Message[Counted], state: Counting) -> None:
        event = message.value
        begun = event.count if event.id.startswith("more") else 0
        if begun:
            state.timers.cancel(message.key, name_of(message.key, begun))
        if begun < rounds:
            state.timers.set(message.key, name_of(message.key, begun + 1), 1)

    def begin(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        return (Emit(Counted(message.value.id, "word", 0)),)

    processor = processor_of(begin, applied)
    processor.timer_due(more)
    processor.in_background("more", turns_named=turns_named)
    return processor


def told(world: World) -> list[str]:
    return [event.id for _, event in world.events("counting")]


def test_new_records_are_folded_before_work_that_goes_on() -> None:
    world = World(going_on(rounds=10), settings=ONE_A_CYCLE)
    world.run()
    world.publish("ticks", "long/1", tick("long"))
    world.step(4)
    assert told(world)[0] == "long"

    world.publish("ticks", "short/1", tick("short"))
    world.step()

    assert told(world)[-2] == "short"
    world.run()
    assert told(world).count("more of long/1") == 10
    assert told(world).count("more of short/1") == 10


def test_work_that_goes_on_takes_turns_by_workflow_and_all_of_it_is_done() -> None:
    world = World(going_on(rounds=3), settings=ONE_A_CYCLE)
    world.run()
    for key in ("many/1", "many/2", "many/3", "one/1"):
        world.publish("ticks", key, tick(key))

    world.run()

    more = [name.removeprefix("more of ").partition("/")[0] for name in told(world) if name.startswith("more")]
    assert (more.count("many"), more.count("one")) == (9, 3)
    assert more[:6] == ["many", "one"] * 3
    assert world.shard("counting").state.next_due_at_ms() is None
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


def test_work_that_goes_on_rests_and_new_records_do_not_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "REST_FACTOR", 1e9)
    world = World(going_on(rounds=10), settings=ONE_A_CYCLE)
    world.run()
    world.member.rests = True
    world.publish("ticks", "long/1", tick("long"))
    world.step(3)
    assert told(world) == ["long", "more of long/1"]

    for name in ("a", "b", "c"):
        world.publish("ticks", f"{name}/1", tick(name))
        world.step()

    assert told(world)[2:] == ["a", "b", "c"]
    world.member.rests = False
    world.run()
    assert told(world).count("more of long/1") == 10


def test_a_slow_decision_ends_its_cycle_so_that_what_came_before_it_is_seen() -> None:
    limits = Limits(cycle_ms_max=40, cascade_ms_max=60_000)

    def slow(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        until_s = time.perf_counter() + (0.05 if message.value.id == "slow" else 0)
        while time.perf_counter() < until_s:
            pass
        return count(message, state, now_ms)

    world = World(processor_of(slow, counted), settings=MemberSettings(limits=limits))
    world.run()
    for name in ("slow", "slow", "1"):
        world.publish("ticks", "a", tick(name))

    world.step()

    assert told(world) == ["slow"]
    world.run()
    assert told(world) == ["slow", "slow", "1"]
    assert world.member.counters.records == 3


def test_work_that_goes_on_alone_on_an_idle_machine_does_not_rest_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "REST_FACTOR", 1e9)
    monkeypatch.setattr(work, "ALONE_SHARE", 0.0)
    monkeypatch.setattr(work, "ALONE_AFTER_S", 0.0)
    monkeypatch.setattr(work, "CONTENDED_SHARE", 1e9)  # whatever else the machine does during the test
    world = World(going_on(rounds=10), settings=ONE_A_CYCLE)
    world.run()
    world.member.rests = True
    world.publish("ticks", "long/1", tick("long"))
    world.step(4)
    assert told(world) == ["long", *["more of long/1"] * 3]

    world.publish("ticks", "short/1", tick("short"))
    world.step()

    assert told(world)[-1] == "short"  # and nothing after it in the same cycle


AT_LENGTH = Limits(cycle_ms_max=60_000, cascade_ms_max=60_000, background_ms_max=-1, alone_ms_max=60_000)


@pytest.mark.parametrize(("alone_after_s", "in_a_cycle"), [(0.0, 10), (1e9, 1)], ids=["alone", "shared"])
def test_work_that_is_alone_goes_on_within_a_cycle_unless_somebody_else_was_there_lately(
    monkeypatch: pytest.MonkeyPatch, alone_after_s: float, in_a_cycle: int
) -> None:
    monkeypatch.setattr(work, "ALONE_AFTER_S", alone_after_s)
    monkeypatch.setattr(work, "CONTENDED_SHARE", 1e9)
    world = World(going_on(rounds=10), settings=MemberSettings(limits=AT_LENGTH))
    world.run()
    world.member.rests = True
    world.publish("ticks", "long/1", tick("long"))
    world.step()

    world.step()

    assert told(world) == ["long", *["more of long/1"] * in_a_cycle]


def test_publishers_that_follow_work_do_not_end_its_being_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "REST_FACTOR", 1e9)
    monkeypatch.setattr(work, "ALONE_SHARE", 0.0)
    monkeypatch.setattr(work, "ALONE_AFTER_S", 0.0)
    monkeypatch.setattr(work, "CONTENDED_SHARE", 1e9)
    processor = going_on(rounds=10)
    processor.is_patient = True
    world = World(processor, settings=ONE_A_CYCLE)
    world.run()
    world.member.rests = True
    world.publish("ticks", "long/1", tick("long"))
    world.step(2)

    for name in ("a", "b"):
        world.publish("ticks", f"{name}/1", tick(name))
        world.step()

    assert told(world) == ["long", "more of long/1", "a", "more of long/1", "b", "more of a/1"]


def test_work_that_had_to_wait_for_the_cpu_rests_as_long_as_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "REST_FACTOR", 1e9)
    monkeypatch.setattr(work, "ALONE_SHARE", 0.0)
    monkeypatch.setattr(work, "ALONE_AFTER_S", 0.0)
    monkeypatch.setattr(work, "CONTENDED_SHARE", -1.0)
    world = World(going_on(rounds=10), settings=ONE_A_CYCLE)
    world.run()
    world.member.rests = True
    world.publish("ticks", "long/1", tick("long"))

    world.step(4)

    assert told(world) == ["long", "more of long/1"]


def test_work_that_goes_on_takes_turns_by_the_names_of_its_timers_if_they_tell() -> None:
    world = World(going_on(rounds=3, turns_named=True), settings=ONE_A_CYCLE)
    world.run()
    for key in ("tree/1", "t-inner/1", "t-inner/2", "other/1"):
        world.publish("ticks", key, tick(key))

    world.run()

    more = [name.removeprefix("more of ")[0] for name in told(world) if name.startswith("more")]
    assert (more.count("t"), more.count("o")) == (9, 3)
    assert sorted(more[:6]) == ["o"] * 3 + ["t"] * 3
