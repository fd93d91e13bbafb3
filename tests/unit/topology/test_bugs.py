"""Bugs in a processor: `decide`, its effects or `apply` raise, and the policy says what becomes of the message."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.errors import BadDeclaration, WriteInDecide
from kapelle.processors.messages import Message
from kapelle.processors.streams import Stream
from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.schemas.errors import NotEncodable, RecordTooLarge
from kapelle.topology.errors import FoldError, HandlerFailed, KeyTooLarge
from kapelle.topology.log import KEY_BYTES_MAX, Place
from kapelle.topology.settings import MemberSettings, OnBug
from kapelle.topology.tables import MemoryStore, StoreCorrupt
from tests.proof.contracts import Counted, Hop, Tick
from tests.proof.processors import Count, Counting, count, counted
from tests.unit.topology.test_messages import Witness
from tests.unit.topology.world import LIMITS, Decided, World, processor_of, tick

STOP = MemberSettings(on_bug=OnBug.STOP, limits=LIMITS)
GO_ON = MemberSettings(on_bug=OnBug.DEAD_LETTER, limits=LIMITS)

hops = Stream("hops", (Hop,))


class Broken(Exception):
    """What the processors of these tests raise."""


def deciding(bad: Callable[[Message[Tick], Counting], Iterable[Effect]]) -> Decided:
    """Counts, except for the tick named `bad`."""

    def decide(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        return bad(message, state) if message.value.id == "bad" else count(message, state, now_ms)

    return decide


def raising(message: Message[Tick], state: Counting) -> Iterable[Effect]:
    raise Broken("no such word")


def raising_late(message: Message[Tick], state: Counting) -> Iterator[Effect]:
    yield Emit(Counted(message.value.id, "word", 100))
    raise Broken("no such word")


def failing_apply(message: Message[Counted], state: Counting) -> None:
    """Fails half-way: something has been written by then."""
    state.counts.put((message.key,), Count(-1))
    if message.value.id.startswith("bad"):
        raise Broken("cannot apply")
    counted(message, state)


def published(world: World, *names: str) -> World:
    for name in names:
        world.publish("ticks", "a", tick(name))
    return world


def counts(world: World) -> list[tuple[str, int]]:
    return [(event.id, event.count) for _, event in world.events("counting")]


# Deciding -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [raising, raising_late])
def test_a_decide_that_raises_stops_the_member_by_default(
    bad: Callable[[Message[Tick], Counting], Iterable[Effect]],
) -> None:
    world = published(World(processor_of(deciding(bad)), settings=STOP), "1", "bad", "2")

    with pytest.raises(HandlerFailed, match=r"decide on Tick w.ticks-0-1 of processor 'counting' raised Broken"):
        world.run()

    world.member.leave()
    assert (counts(world), world.letters(), world.committed("counting")) == ([], [], {})


def test_a_member_that_stopped_goes_on_where_it_was_once_it_is_mended() -> None:
    world = published(World(processor_of(deciding(raising)), settings=STOP), "1", "bad", "2")
    with pytest.raises(HandlerFailed):
        world.run()
    world.member.leave()

    world.member.topology.processors["counting"].deciders[Tick] = count
    world.restart()
    world.run()

    assert counts(world) == [("1", 1), ("bad", 2), ("2", 3)]


@pytest.mark.parametrize("bad", [raising, raising_late])
def test_a_decide_that_raises_puts_its_record_aside_if_told_to(
    bad: Callable[[Message[Tick], Counting], Iterable[Effect]],
) -> None:
    world = published(World(processor_of(deciding(bad)), settings=GO_ON), "1", "bad", "2")

    world.run()

    (letter,) = world.letters()
    assert (letter.stage, letter.error, letter.reason) == (Stage.DECIDE, "Broken", "no such word")
    assert (letter.topic, letter.offset, letter.key) == ("w.ticks", 1, b"a")
    assert letter.value == world.codec.encode(tick("bad"))
    assert counts(world) == [("1", 1), ("2", 2)]
    assert world.committed("counting") == {Place("w.ticks", 0): 3}


def test_a_decide_cannot_write_tables() -> None:
    def writing(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        state.counts.put((message.key,), Count(99))
        return ()

    world = published(World(processor_of(deciding(writing)), settings=STOP), "bad")

    with pytest.raises(HandlerFailed) as caught:
        world.run()

    assert isinstance(caught.value.__cause__, WriteInDecide)


def test_a_decide_cannot_set_timers() -> None:
    def arming(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        state.timers.set(message.key, "later", 0)
        return ()

    world = published(World(processor_of(deciding(arming)), settings=GO_ON), "bad", "1")

    world.run()

    assert [letter.error for letter in world.letters()] == ["WriteInDecide"]
    assert world.shard("counting").state.next_due_at_ms() is None


def test_a_reason_that_is_no_text_is_made_one() -> None:
    def unspeakable(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        raise Broken("half a character: \ud800")

    world = published(World(processor_of(deciding(unspeakable)), settings=GO_ON), "bad", "1")

    world.run()

    assert [letter.reason for letter in world.letters()] == ["half a character: ?"]
    assert counts(world) == [("1", 1)]


def test_a_long_reason_is_cut() -> None:
    def verbose(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        raise Broken("x" * 1_000_000)

    world = published(World(processor_of(deciding(verbose)), settings=GO_ON), "bad")

    world.run()

    assert len(world.letters()[0].reason) == 4_000


class DamagedStore(MemoryStore):
    """A store whose rows cannot be read."""

    damaged = False

    def get(self, key: bytes, /) -> bytes | None:
        if self.damaged and b"counts" in key:
            raise StoreCorrupt(Path("tables"), "checksum mismatch")
        return super().get(key)


@pytest.mark.parametrize("settings", [STOP, GO_ON])
def test_a_damaged_store_is_no_bug_of_the_processor_and_costs_no_record(settings: MemberSettings) -> None:
    store = DamagedStore()
    world = published(World(processor_of(), settings=settings, store=store), "1")
    world.run()
    published(world, "2")
    store.damaged = True

    with pytest.raises(StoreCorrupt):
        world.run()

    world.member.leave()
    assert (counts(world), world.letters()) == ([("1", 1)], [])


# Effects ------------------------------------------------------------------------------------------------------------


def effect_of(effect: object) -> Callable[[Message[Tick], Counting], Iterable[Effect]]:
    def decide(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        yield Emit(Counted(message.value.id, "word", 100))
        yield effect  # type: ignore[misc] # some are no effects

    return decide


BAD_EFFECTS: dict[str, tuple[object, type[Exception]]] = {
    "an undeclared stream": (Send(Stream("elsewhere", (Hop,)), "a", Hop("a", 1)), BadDeclaration),
    "a type that is not on its stream": (Send(hops, "a", Counted("1", "a", 1)), BadDeclaration),
    "a type that is no event here": (Emit(Hop("a", 1)), BadDeclaration),
    "an event that is no contract": (Emit("counted"), BadDeclaration),  # type: ignore[arg-type]
    "a message that is no contract": (Send(hops, "a", None), BadDeclaration),  # type: ignore[arg-type]
    "a value that does not fit": (Emit(Counted("1", "a", "one")), NotEncodable),  # type: ignore[arg-type]
    "a text that is none": (Emit(Counted("\ud800", "a", 1)), NotEncodable),
    "an event that is too large": (Emit(Counted("x" * 1_000_000, "a", 1)), RecordTooLarge),
    "a message that is too large": (Send(hops, "a", Hop("x" * 1_000_000, 1)), RecordTooLarge),
    "a key that is too large": (Send(hops, "é" * KEY_BYTES_MAX, Hop("a", 1)), KeyTooLarge),
    "a key that is no text": (Send(hops, "\ud800", Hop("a", 1)), UnicodeEncodeError),
    "no effect at all": ("counted", AttributeError),
}


@pytest.mark.parametrize("kind", BAD_EFFECTS)
def test_an_effect_that_cannot_be_carried_out_stops_the_member_by_default(kind: str) -> None:
    effect, cause = BAD_EFFECTS[kind]
    world = World(processor_of(deciding(effect_of(effect)), outputs=[hops]), settings=STOP)
    published(world, "1", "bad")

    with pytest.raises(HandlerFailed, match=r"encode on Tick w.ticks-0-1") as caught:
        world.run()

    assert isinstance(caught.value.__cause__, cause)


@pytest.mark.parametrize("kind", BAD_EFFECTS)
def test_an_effect_that_cannot_be_carried_out_leaves_nothing_of_its_message(kind: str) -> None:
    effect, cause = BAD_EFFECTS[kind]
    world = World(processor_of(deciding(effect_of(effect)), outputs=[hops]), settings=GO_ON)
    published(world, "1", "bad", "2")

    world.run()

    assert [(letter.stage, letter.error) for letter in world.letters()] == [(Stage.ENCODE, cause.__name__)]
    assert counts(world) == [("1", 1), ("2", 2)]
    assert world.read("hops") == []


def test_an_effect_that_cannot_be_carried_out_takes_back_the_commands_before_it_also_within_the_cycle() -> None:
    def bad(message: Message[Tick], state: Counting) -> Iterable[Effect]:
        yield Send(hops, "a", Hop("bad", 1))
        yield Emit(Hop("bad", 1))

    witness = Witness("witness", hops)
    world = World(processor_of(deciding(bad), outputs=[hops]), witness.processor, settings=GO_ON)
    published(world, "1", "bad", "2")

    world.run()

    assert (witness.seen, world.member.counters.delivered) == ([], 0)
    assert counts(world) == [("1", 1), ("2", 2)]


# Applying -----------------------------------------------------------------------------------------------------------


def test_an_apply_that_raises_stops_the_member_by_default() -> None:
    world = published(World(processor_of(count, failing_apply), settings=STOP), "1", "bad", "2")

    with pytest.raises(HandlerFailed, match="apply of Counted of processor 'counting' raised Broken: cannot apply"):
        world.run()

    world.member.leave()
    assert (counts(world), world.committed("counting")) == ([], {})


def test_an_apply_that_raises_puts_its_message_aside_if_told_to_and_leaves_no_half_written_row() -> None:
    world = published(World(processor_of(count, failing_apply), settings=GO_ON), "1", "bad", "2")

    world.run()

    (letter,) = world.letters()
    assert (letter.stage, letter.offset) == (Stage.APPLY, 1)
    assert letter.reason == "apply of Counted of processor 'counting' raised Broken: cannot apply"
    assert counts(world) == [("1", 1), ("2", 2)]
    assert world.shard("counting").reader.counts.get(("a",)) == Count(2)
    assert world.member.counters.aborts == 1


@pytest.mark.parametrize("bad", [1, 2, 10, 40])
def test_however_many_applies_raise_all_else_is_folded(bad: int) -> None:
    names = [name for n in range(bad) for name in (f"bad-{n}", f"good-{n}")]
    world = published(World(processor_of(count, failing_apply), settings=GO_ON), *names)

    world.run()

    assert [name for name, _ in counts(world)] == [f"good-{n}" for n in range(bad)]
    assert [letter.offset for letter in world.letters()] == list(range(0, 2 * bad, 2))


def test_what_was_put_aside_once_is_not_put_aside_again_after_an_abort() -> None:
    world = published(World(processor_of(count, failing_apply), settings=GO_ON), "bad", "1")
    world.run()
    published(world, "2")
    world.log.faults.commit_aborted = True

    world.run()

    assert [letter.offset for letter in world.letters()] == [0]
    assert counts(world) == [("1", 1), ("2", 2)]


def test_an_apply_that_fails_on_everything_still_ends_in_letters_not_in_a_loop() -> None:
    def hopeless(message: Message[Counted], state: Counting) -> None:
        raise Broken("never")

    world = published(World(processor_of(count, hopeless), settings=GO_ON), *(str(n) for n in range(20)))

    world.run()

    assert [letter.offset for letter in world.letters()] == list(range(20))
    assert counts(world) == []


def test_an_apply_that_failed_is_not_tried_again() -> None:
    tried = []

    def failing(message: Message[Counted], state: Counting) -> None:
        tried.append(message.value.id)
        raise Broken("again?")

    world = published(World(processor_of(count, failing), settings=GO_ON), "1", "2", "3")

    world.run()

    assert tried == ["1", "2", "3"]


def test_aborted_cycles_in_a_row_end_in_a_stop() -> None:
    world = published(World(processor_of(count, failing_apply), settings=GO_ON), "bad", "1")

    class Forgetful(dict[tuple[str, str], str]):
        def __contains__(self, key: object) -> bool:
            return False

    world.member._fold.poisoned = Forgetful()

    with pytest.raises(FoldError, match="6 cycles in a row failed in apply; the last: apply of Counted"):
        world.run()


# Letters about what never was a record ------------------------------------------------------------------------------


def letters_by_stage(letters: list[DeadLetter]) -> dict[Stage, int]:
    return {stage: sum(letter.stage is stage for letter in letters) for stage in Stage}


def test_a_row_that_is_too_large_is_a_bug_of_apply() -> None:
    class Text(msgspec.Struct, frozen=True):
        text: str

    def bloated(message: Message[Counted], state: Counting) -> None:
        state.counts.put(("x" * 2_000_000,), Count(1))
        state.counts.put((message.key,), Text("not a count"))  # type: ignore[arg-type]

    world = published(World(processor_of(count, bloated), settings=GO_ON), "1")

    world.run()

    assert letters_by_stage(world.letters())[Stage.APPLY] == 1
