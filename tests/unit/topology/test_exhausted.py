"""Decisions that run out of time, memory or stack are given up with a reason, and the member goes on."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Stream
from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.topology.overtime import Overtime
from kapelle.topology.settings import Limits, MemberSettings, OnBug
from kapelle.topology.tables import MemoryStore, StoreFailed
from tests.proof.contracts import Counted, Hop, Tick
from tests.proof.processors import Counting, count, counted
from tests.unit.topology.test_bugs import counts, deciding, published
from tests.unit.topology.world import World, processor_of, tick

STOP = MemberSettings(on_bug=OnBug.STOP, limits=Limits(cycle_ms_max=60_000, decision_ms_max=60))
FOR_EVER = 10**12
Bad = Callable[[Message[Tick], Counting], Iterable[Effect]]


def spinning(message: Message[Tick], state: Counting) -> Iterable[Effect]:
    for _ in range(FOR_EVER):
        state.counts.get((message.key,))
    return ()


def spinning_in_a_generator(message: Message[Tick], state: Counting) -> Iterator[Effect]:
    yield Emit(Counted("half", "word", 1))
    yield from spinning(message, state)


def stubborn(message: Message[Tick], state: Counting) -> Iterable[Effect]:
    """Catches every error of Python code that there is."""
    for _ in range(FOR_EVER):
        try:
            spinning(message, state)
        except Exception:  # noqa: BLE001, S112 - that is what is tested
            continue
    return ()


def out_of_memory(message: Message[Tick], state: Counting) -> Iterable[Effect]:
    raise MemoryError


def out_of_stack(message: Message[Tick], state: Counting) -> Iterable[Effect]:
    return out_of_stack(message, state)


def watched(*names: str, bad: Bad, settings: MemberSettings = STOP) -> World:
    world = published(World(processor_of(deciding(bad)), settings=settings), *names)
    world.member.overtime.watch()
    return world


def letter_of(world: World) -> DeadLetter:
    (letter,) = world.letters()
    return letter


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (spinning, "time (60 ms)"),
        (spinning_in_a_generator, "time (60 ms)"),
        (stubborn, "time (60 ms)"),
        (out_of_memory, "memory"),
        (out_of_stack, "stack"),
    ],
)
def test_a_decision_that_does_not_end_is_given_up_although_bugs_stop_the_member(bad: Bad, what: str) -> None:
    world = watched("1", "bad", "2", bad=bad)

    world.run()
    world.member.overtime.close()

    letter = letter_of(world)
    assert (letter.stage, letter.error, letter.offset) == (Stage.DECIDE, "DecisionExhausted", 1)
    assert letter.reason == (
        "Expected the decision of counting on Tick to end within its limits, but it ran out of " + what
    )
    assert counts(world) == [("1", 1), ("2", 2)]
    assert world.member.counters.given_up == 1


def test_every_decision_that_does_not_end_is_given_up_by_itself() -> None:
    world = watched("1", "bad", "bad", "2", "bad", "3", bad=spinning)

    world.run()
    world.member.overtime.close()

    assert [letter.offset for letter in world.letters()] == [1, 2, 4]
    assert counts(world) == [("1", 1), ("2", 2), ("3", 3)]
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


def test_without_a_watch_no_decision_has_a_limit_of_time() -> None:
    seen: list[int] = []

    def slow(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        seen.append(sum(range(5_000_000)))
        return ()

    world = published(World(processor_of(deciding(slow)), settings=STOP), "1", "bad", "2")

    world.run()

    assert (len(seen), world.letters(), counts(world)) == (1, [], [("1", 1), ("2", 2)])


def test_a_decision_that_ends_just_as_it_is_given_up_harms_no_other() -> None:
    """Whenever the exception comes, it ends the decision that it is meant for, or nothing at all."""
    limit_ms, total = 3, 150

    def about_as_long_as_it_may(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        until_s = time.thread_time() + limit_ms / 1000 * (0.9 + int(message.value.id) % 7 / 20)
        while time.thread_time() < until_s:
            pass
        return count(message, state, now_ms)

    settings = MemberSettings(on_bug=OnBug.STOP, limits=Limits(cycle_ms_max=60_000, decision_ms_max=limit_ms))
    world = published(World(processor_of(about_as_long_as_it_may), settings=settings), *map(str, range(total)))
    world.member.overtime.watch()

    world.run()
    world.member.overtime.close()

    assert [number for _, number in counts(world)] == list(range(1, len(counts(world)) + 1))
    assert len(counts(world)) + len(world.letters()) == total
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


# What is decided instead --------------------------------------------------------------------------------------------


def giving_up(
    bad: Bad, instead: Callable[[Message[Tick], str, Counting, int], Iterable[Effect]]
) -> Processor[Counting]:
    processor = processor_of(deciding(bad))
    processor.gives_up(Tick)(instead)
    return processor


def counted_instead(message: Message[Tick], reason: str, state: Counting, now_ms: int) -> Iterable[Effect]:
    return (Emit(Counted(reason, "word", 50)),)


def test_what_a_processor_decides_instead_is_an_event_like_others_and_the_letter_is_there_too() -> None:
    world = published(World(giving_up(out_of_memory, counted_instead), settings=STOP), "1", "bad", "2")

    world.run()

    assert counts(world) == [("1", 1), (letter_of(world).reason, 50), ("2", 51)]
    assert world.shard("counting").state.fingerprint() == world.fold_of("counting")


@pytest.mark.parametrize("error", [MemoryError, ValueError, RecursionError])
def test_if_that_fails_too_the_letter_is_all_that_remains(error: type[Exception]) -> None:
    def instead(message: Message[Tick], reason: str, state: Counting, now_ms: int) -> Iterator[Effect]:
        yield Emit(Counted("half", "word", 50))
        raise error

    world = published(World(giving_up(out_of_memory, instead), settings=STOP), "1", "bad", "2")

    world.run()

    assert letter_of(world).error == "DecisionExhausted"
    assert counts(world) == [("1", 1), ("2", 2)]


def test_effects_that_run_out_of_memory_when_they_are_encoded_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    hops = Stream("hops", (Hop,))
    hop = Hop("b", 1)

    def sending(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        return (Emit(Counted("bad", "word", 9)), Send(hops, "b", hop))

    def failing(self: Hop, *_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(Hop, "to_avro", failing)
    world = published(World(processor_of(deciding(sending), outputs=[hops]), settings=STOP), "1", "bad", "2")

    world.run()

    assert (letter_of(world).stage, letter_of(world).error) == (Stage.ENCODE, "DecisionExhausted")
    assert counts(world) == [("1", 1), ("2", 2)]


def test_a_store_that_fails_because_the_stack_is_full_is_not_taken_for_a_broken_disk() -> None:
    class DeepStore(MemoryStore):
        is_deep = False

        def get(self, key: bytes, /) -> bytes | None:
            if self.is_deep:
                self.is_deep = False
                raise StoreFailed(Path("here"), "too deep") from RecursionError()
            return super().get(key)

    def deep(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        store.is_deep = True
        state.counts.get(("another",))
        return ()

    store = DeepStore()
    world = published(World(processor_of(deciding(deep)), settings=STOP, store=store), "1", "bad", "2")

    world.run()

    assert "ran out of stack" in letter_of(world).reason
    assert counts(world) == [("1", 1), ("2", 2)]


def test_a_timer_that_is_given_up_fires_no_more_if_its_processor_settles_it() -> None:
    def remind(message: Message[TimerDue], state: Counting, now_ms: int) -> Iterable[Effect]:
        raise MemoryError

    def settle(message: Message[TimerDue], reason: str, state: Counting, now_ms: int) -> Iterable[Effect]:
        return (Emit(Counted("settled", "word", 1)),)

    def setting(message: Message[Counted], state: Counting) -> None:
        counted(message, state)
        if message.value.id == "settled":
            state.timers.cancel(message.key, "t")
        else:
            state.timers.set(message.key, "t", message.value.count)

    processor = processor_of(apply=setting)
    processor.timer_due(remind)
    processor.gives_up(TimerDue)(settle)
    world = World(processor, settings=STOP)
    world.publish("ticks", "a", tick("1"))

    world.run()

    assert [name for name, _ in counts(world)] == ["1", "settled"]
    assert world.shard("counting").parked == set()
    assert letter_of(world).key == b"a"


@pytest.mark.timeout(30, method="thread")
def test_code_can_be_profiled_after_an_exception_that_came_too_late() -> None:
    overtime = Overtime(limit_ms=60)
    overtime.watch()
    overtime.fired = True  # as if the decision had ended in the moment in which its time was over
    overtime.settle()
    overtime.close()
    seen: list[str] = []

    sys.setprofile(lambda _frame, event, _arg: seen.append(event))
    try:
        tick("1")
    finally:
        sys.setprofile(None)

    assert "call" in seen
    assert not overtime.fired
