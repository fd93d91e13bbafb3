"""Timers on their way through the fold: each fires once, in time, unless it was cancelled or moved."""

from collections.abc import Callable, Iterable, Iterator

import pytest

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas.contracts import Stage
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import HandlerFailed, TimerNotSettled
from kapelle.topology.log import Place
from kapelle.topology.settings import MemberSettings, OnBug
from tests.proof.contracts import Hopped, Reminded, Reminder, ReminderSet
from tests.proof.processors import Last, Reminding, armed, remind, reminded, reminding
from tests.unit.topology.world import LIMITS, NOW_MS, World

STOP = MemberSettings(on_bug=OnBug.STOP, limits=LIMITS)
GO_ON = MemberSettings(on_bug=OnBug.DEAD_LETTER, limits=LIMITS)

CANCEL_MS = -1_000  # a reminder after so long is an order to cancel the one of its name

Due = Callable[[Message[TimerDue], Reminding, int], Iterable[Effect]]
Applied = Callable[[Message[Reminded], Reminding], None]


def fire(message: Message[TimerDue], state: Reminding, now_ms: int) -> Iterable[Effect]:
    return (Emit(Reminded(message.value.name)),)


def processor(due: Due = fire, apply: Applied = reminded) -> Processor[Reminding]:
    """A processor like `reminding`, with a timer handler of one's own, and a way to cancel."""
    made = Processor(
        "reminding",
        tables=Reminding,
        inputs=[Stream("reminders", (Reminder,))],
        events=Stream("reminding.events", (ReminderSet, Reminded, Hopped), Keep.FOR_EVER),
    )

    @made.decides(Reminder)
    def set_or_cancel(message: Message[Reminder], state: Reminding, now_ms: int) -> Iterator[Effect]:
        if message.value.after_ms == CANCEL_MS:
            yield Emit(Hopped(message.value.id, 0, 0))
        else:
            yield from remind(message, state, now_ms)

    @made.applies(Hopped)
    def cancelled(message: Message[Hopped], state: Reminding) -> None:
        state.timers.cancel(message.key, message.value.source)

    made.timer_due(due)
    made.applies(ReminderSet)(armed)
    made.applies(Reminded)(apply)
    return made


def world_of(*names: str, due: Due = fire, apply: Applied = reminded, settings: MemberSettings = STOP) -> World:
    """A world in which these timers are set, for ten milliseconds later."""
    world = World(processor(due, apply), settings=settings)
    for name in names:
        world.publish("reminders", "k", Reminder(name, 10))
    world.run()
    return world


def fired(world: World) -> list[str]:
    return [event.id for _, event in world.events("reminding") if isinstance(event, Reminded)]


def test_a_timer_fires_when_it_is_due_and_not_before() -> None:
    world = world_of("a")

    world.now_ms += 9
    world.run()
    assert fired(world) == []

    world.now_ms += 1
    world.run()
    assert fired(world) == ["a"]


def test_a_timer_fires_once() -> None:
    world = world_of("a")
    world.now_ms += 10

    world.run()
    world.run()

    assert fired(world) == ["a"]


def test_timers_fire_in_the_order_in_which_they_are_due() -> None:
    world = World(reminding)
    for name, after_ms in (("late", 30), ("early", 10), ("middle", 20)):
        world.publish("reminders", "k", Reminder(name, after_ms))
    world.run()
    world.now_ms += 100

    world.run()

    assert fired(world) == ["early", "middle", "late"]


@pytest.mark.parametrize("due_at_ms", [0, -5, 1])
def test_a_timer_due_at_the_beginning_of_time_fires_at_once(due_at_ms: int) -> None:
    world = World(reminding)
    world.publish("reminders", "k", Reminder("a", due_at_ms - NOW_MS))

    world.run()

    assert fired(world) == ["a"]


def test_more_timers_than_a_cycle_takes_fire_in_later_cycles() -> None:
    world = world_of(*(f"{n:02}" for n in range(25)))
    world.member.limits = MemberSettings().limits.__class__(timers_max=10, cycle_ms_max=60_000)
    world.now_ms += 10

    cycles = world.member.counters.cycles
    world.run()

    assert fired(world) == [f"{n:02}" for n in range(25)]
    assert world.member.counters.cycles == cycles + 3


def test_a_cycle_of_timers_alone_sends_the_offsets_of_its_shard() -> None:
    world = world_of("a")
    before = dict(world.committed("reminding"))
    world.cluster.groups["reminding"].offsets.clear()
    world.now_ms += 10

    world.run()

    assert world.committed("reminding") == before == {Place("w.reminders", 0): 1}


def test_a_member_that_was_expelled_cannot_fire_timers() -> None:
    def expelled(point: CrashPoint) -> None:
        """The group takes the partition away while the member is about to commit, and another fires the timer."""
        if point is CrashPoint.AFTER_PRODUCE and world.now_ms > NOW_MS and "two" not in world.members:
            world.cluster.expel("one")
            other = world.start("two")
            world.share(among=["two"])
            for _ in range(5):
                other.step()

    world = World(processor(), crash=expelled)
    world.publish("reminders", "k", Reminder("a", 10))
    world.run()
    world.now_ms += 10

    world.step()
    assert world.member.counters.aborts == 1

    world.run()
    assert fired(world) == ["a"]


def test_a_timer_that_is_cancelled_in_its_own_cycle_does_not_fire() -> None:
    world = world_of("a", "b")
    world.now_ms += 10
    world.publish("reminders", "k", Reminder("a", CANCEL_MS))

    world.run()

    assert fired(world) == ["b"]


def test_a_timer_that_is_moved_in_its_own_cycle_fires_at_its_new_time() -> None:
    world = world_of("a")
    world.now_ms += 10
    world.publish("reminders", "k", Reminder("a", 50))

    world.run()
    assert fired(world) == []

    world.now_ms += 50
    world.run()
    assert fired(world) == ["a"]


def test_a_timer_that_cancels_another_of_the_same_cycle_keeps_it_from_firing() -> None:
    def both(message: Message[Reminded], state: Reminding) -> None:
        for name in ("a", "b"):
            state.timers.cancel("k", name)

    world = world_of("a", "b", apply=both)
    world.now_ms += 10

    world.run()

    assert fired(world) == ["a"]


def test_a_timer_that_is_not_settled_stops_the_member_whatever_the_policy() -> None:
    def ignored(message: Message[TimerDue], state: Reminding, now_ms: int) -> Iterable[Effect]:
        return ()

    for settings in (STOP, GO_ON):
        world = world_of("a", due=ignored, settings=settings)
        world.now_ms += 10

        with pytest.raises(TimerNotSettled, match="for timer 'a' of 'k' in 'reminding' to cancel it or set it again"):
            world.run()


def test_a_timer_may_be_set_anew_by_its_own_event() -> None:
    def again(message: Message[Reminded], state: Reminding) -> None:
        state.timers.set(message.key, message.value.id, world.now_ms + 10)

    world = world_of("a", apply=again)
    for _ in range(3):
        world.now_ms += 10
        world.run()

    assert fired(world) == ["a", "a", "a"]


# Bugs ---------------------------------------------------------------------------------------------------------------


def failing(message: Message[TimerDue], state: Reminding, now_ms: int) -> Iterable[Effect]:
    if message.value.name == "bad":
        raise ValueError("no such reminder")
    return fire(message, state, now_ms)


def failing_apply(message: Message[Reminded], state: Reminding) -> None:
    state.armed.put(("half",), Last(1))
    if message.value.id == "bad":
        raise ValueError("cannot apply")
    state.armed.delete(("half",))
    reminded(message, state)


def test_a_timer_whose_decide_raises_stops_the_member_by_default() -> None:
    world = world_of("a", "bad", due=failing)
    world.now_ms += 10

    with pytest.raises(HandlerFailed, match="decide on TimerDue reminding-0-timer-"):
        world.run()


@pytest.mark.parametrize(
    ("due", "apply", "stage"), [(failing, reminded, Stage.DECIDE), (fire, failing_apply, Stage.APPLY)]
)
def test_a_timer_that_raises_is_parked_with_one_letter_and_the_others_go_on(
    due: Due, apply: Applied, stage: Stage
) -> None:
    world = world_of("a", "bad", "c", due=due, apply=apply, settings=GO_ON)
    world.now_ms += 10

    world.run()
    world.publish("reminders", "k", Reminder("later", 10))
    world.run()
    world.now_ms += 10
    world.run()

    assert fired(world) == ["a", "c", "later"]
    (letter,) = world.letters()
    assert (letter.stage, letter.processor, letter.offset) == (stage, "reminding", -1)
    assert (letter.topic, letter.key, letter.value) == ("w.reminding.changelog", b"k", None)
    assert world.shard("reminding").state.next_due_at_ms() == NOW_MS + 10


def test_a_parked_timer_is_tried_again_after_a_restart() -> None:
    world = world_of("bad", due=failing, settings=GO_ON)
    world.now_ms += 10
    world.run()

    world.topology.processors["reminding"].deciders[TimerDue] = fire
    world.restart()
    world.run()

    assert fired(world) == ["bad"]
    assert len(world.letters()) == 1


def test_a_timer_whose_letter_was_given_up_with_its_cycle_gets_another() -> None:
    world = world_of("bad", due=failing, settings=GO_ON)
    world.now_ms += 10
    world.log.faults.commit_aborted = True

    world.run()

    assert len(world.letters()) == 1
    assert world.member.counters.aborts == 1


def test_a_parked_timer_can_be_cancelled() -> None:
    world = world_of("bad", due=failing, settings=GO_ON)
    world.now_ms += 10
    world.run()

    world.publish("reminders", "k", Reminder("bad", CANCEL_MS))
    world.run()

    assert world.shard("reminding").state.next_due_at_ms() is None


# Waiting ------------------------------------------------------------------------------------------------------------


def waited_s(world: World) -> float:
    """How long the member asks the log to wait when there is nothing to do."""
    world.step()
    return world.log.asked[-1][1]


@pytest.mark.parametrize(("after_ms", "wait_s"), [(10, 0.010), (120, 0.120), (5_000, 0.5)])
def test_an_idle_member_waits_until_the_next_timer_at_most_the_idle_wait(after_ms: int, wait_s: float) -> None:
    world = World(reminding)
    world.publish("reminders", "k", Reminder("a", after_ms))
    world.run()

    assert waited_s(world) == pytest.approx(wait_s)


def test_an_idle_member_without_timers_waits_for_the_idle_wait() -> None:
    assert waited_s(world_of()) == pytest.approx(0.5)


def test_a_member_with_a_timer_that_is_overdue_does_not_wait() -> None:
    world = world_of("a")
    world.now_ms += 1_000

    assert waited_s(world) == 0.0


def test_a_parked_timer_does_not_keep_the_member_busy() -> None:
    world = world_of("bad", due=failing, settings=GO_ON)
    world.now_ms += 10
    world.run()

    assert waited_s(world) == pytest.approx(0.5)
    assert not world.member.step()
