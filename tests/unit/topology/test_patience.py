"""Patient processors get turns: what waits for them is folded now and then, in order, and holds up nobody else."""

import msgspec

from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.topology.settings import MemberSettings
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Counting, count, counted
from tests.unit.topology.world import LIMITS, World, processor_of, tick, ticks

FOR_EVER_MS = 3_600_000
LATER = 10  # steps in which everything that may be folded is


def limited(patience_ms: int = 0, records_max: int = LIMITS.records_max) -> MemberSettings:
    return MemberSettings(limits=msgspec.structs.replace(LIMITS, patience_ms=patience_ms, records_max=records_max))


def patient() -> Processor[Counting]:
    """A processor that reads the same ticks, and is in no hurry."""
    events = Stream("patient.events", (Counted,), Keep.FOR_EVER)
    processor = Processor("patient", tables=Counting, inputs=[ticks], events=events)
    processor.decides(Tick)(count)
    processor.applies(Counted)(counted)
    processor.is_patient = True
    return processor


def with_first_turn(settings: MemberSettings) -> World:
    """A world in which the patient processor has just had a turn."""
    world = World(processor_of(), patient(), settings=settings)
    world.publish("ticks", "a", tick("1"))
    world.step(LATER)
    assert len(world.events("patient")) == 1
    return world


def test_between_two_turns_only_the_others_fold() -> None:
    world = with_first_turn(limited(patience_ms=FOR_EVER_MS))

    world.publish("ticks", "a", tick("2"))
    world.step(LATER)

    assert (len(world.events("counting")), len(world.events("patient"))) == (2, 1)


def test_nothing_is_committed_of_what_waits() -> None:
    world = with_first_turn(limited(patience_ms=FOR_EVER_MS))
    before = world.committed("patient")

    world.publish("ticks", "a", tick("2"))
    world.step(LATER)

    assert world.committed("patient") == before


def test_what_waits_survives_a_restart_in_order() -> None:
    world = with_first_turn(limited(patience_ms=FOR_EVER_MS))
    for number in range(2, 6):
        world.publish("ticks", "a", tick(str(number)))
    world.step(LATER)

    world.restart()
    world.step(LATER)

    assert [event.id for _, event in world.events("patient")] == ["1", "2", "3", "4", "5"]


def test_when_much_waits_the_turn_comes_at_once() -> None:
    world = with_first_turn(limited(patience_ms=FOR_EVER_MS, records_max=100))

    for number in range(60):
        world.publish("ticks", "a", tick(f"more-{number}"))
    world.step(LATER)

    assert len(world.events("patient")) == 61


def test_while_only_patience_is_left_the_member_waits_for_the_log_and_does_not_spin() -> None:
    world = with_first_turn(limited(patience_ms=FOR_EVER_MS))
    world.publish("ticks", "a", tick("2"))
    world.step(LATER)

    (_, wait_s) = world.log.asked[-1]

    assert wait_s == LIMITS.idle_wait_ms / 1000


def test_without_patience_everything_is_folded_at_once() -> None:
    world = with_first_turn(limited())

    world.publish("ticks", "a", tick("2"))
    world.step(LATER)

    assert len(world.events("patient")) == 2
