"""Same-cycle delivery: the rules that decide between the cycle and the topic, one by one, and the law they serve."""

from collections.abc import Iterator, Sequence

import pytest

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas.contracts import Stage
from kapelle.topology.build import Topology
from kapelle.topology.delivery import Delivery
from kapelle.topology.errors import HandlerFailed
from kapelle.topology.log import Place
from kapelle.topology.settings import Limits, MemberSettings, OnBug
from kapelle.topology.shard import Input, Shard
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Hop, Hopped
from tests.proof.processors import Stage as StageTables
from tests.proof.processors import stages, topology
from tests.unit.topology.test_messages import Witness, hops, sending
from tests.unit.topology.world import World, tick

LIMITS = Limits(settle_ms_max=100, settle_again_ms=1_000, settle_records_max=50)
TARGET = Place("proof.stage-2", 0)


class Scene:
    """A delivery with the second stage's shard as its target, which nothing stands in the way of."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.topology: Topology = topology("stages", partitions=1)
        self.delivery = Delivery(self.topology, LIMITS, enabled=enabled)
        self.shard = Shard(stages[1], 0, topology=self.topology, store=MemoryStore())
        self.shard.active = True
        self.delivery.owned([self.shard])
        self.ends = {TARGET: 0}
        self.asked: list[Place] = []

    @property
    def input(self) -> Input:
        return self.shard.inputs[TARGET.topic]

    def look(self, places: Sequence[Place]) -> dict[Place, int]:
        self.asked += places
        return {place: self.ends[place] for place in places}

    def target(self) -> Shard | None:
        return self.delivery.target(TARGET)

    def hold(self, now_ms: int) -> bool:
        return self.delivery.hold(now_ms, self.look)


# The rules ----------------------------------------------------------------------------------------------------------


def test_a_target_with_nothing_in_its_way_is_delivered_to() -> None:
    scene = Scene()

    assert scene.target() is scene.shard
    assert not scene.input.sent


def test_a_target_that_is_not_ours_takes_the_topic() -> None:
    scene = Scene()

    assert scene.delivery.target(Place(TARGET.topic, 1)) is None

    scene.delivery.owned([])
    assert scene.target() is None


def test_a_stream_that_is_no_command_takes_the_topic() -> None:
    scene = Scene()
    first = Shard(stages[0], 0, topology=scene.topology, store=MemoryStore())
    first.active = True
    scene.delivery.owned([first, scene.shard])

    assert scene.delivery.target(Place("proof.stage-1", 0)) is None
    assert [scene.delivery.is_command(f"proof.stage-{n}") for n in (1, 2, 3, 4)] == [False, True, True, True]


def test_a_target_that_is_still_being_restored_takes_the_topic() -> None:
    scene = Scene()
    scene.shard.active = False

    assert scene.target() is None
    assert scene.input.sent


def test_with_the_delivery_off_everything_takes_the_topic() -> None:
    scene = Scene(enabled=False)

    assert scene.target() is None
    assert scene.input.sent


def test_a_target_behind_its_barrier_takes_the_topic() -> None:
    scene = Scene()
    scene.ends[TARGET] = 10
    scene.delivery.draw(scene.look)
    scene.input.next = scene.input.reached = 9

    assert scene.target() is None


@pytest.mark.parametrize("how", ["next", "reached"])
def test_a_target_that_has_come_to_its_barrier_is_delivered_to(how: str) -> None:
    scene = Scene()
    scene.ends[TARGET] = 10
    scene.delivery.draw(scene.look)
    setattr(scene.input, how, 10)

    assert scene.target() is scene.shard


def test_a_target_with_our_own_commands_in_its_topic_takes_the_topic() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)

    assert scene.target() is None


def test_a_command_by_topic_makes_all_later_ones_take_the_topic() -> None:
    scene = Scene(enabled=False)
    scene.target()
    scene.delivery.enabled = True

    assert scene.target() is None


def test_a_barrier_never_sinks() -> None:
    scene = Scene()
    scene.ends[TARGET] = 10
    scene.delivery.draw(scene.look)
    scene.ends[TARGET] = 3
    scene.delivery.draw(scene.look)

    assert scene.input.barrier == 10


def test_drawing_covers_our_own_commands() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)
    scene.ends[TARGET] = 2
    scene.delivery.draw(scene.look)
    assert scene.target() is None

    scene.delivery.draw(scene.look)
    scene.input.next = 2
    assert scene.target() is scene.shard


# Settling -----------------------------------------------------------------------------------------------------------


def test_nothing_is_held_when_all_is_settled() -> None:
    scene = Scene()

    assert not scene.hold(0)
    assert scene.asked == []


def test_nothing_is_held_when_the_delivery_is_off() -> None:
    scene = Scene(enabled=False)
    scene.target()

    assert not scene.hold(0)


def test_streams_from_outside_are_held_until_our_own_commands_are_read_back() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)
    scene.ends[TARGET] = 2

    assert scene.hold(0)
    assert scene.asked == [TARGET]
    assert (scene.input.sent, scene.input.barrier) == (False, 2)

    assert scene.hold(1)
    assert scene.asked == [TARGET]

    scene.input.next = 2
    assert not scene.hold(2)
    assert scene.target() is scene.shard


def test_commands_sent_while_settling_are_waited_for_too() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)
    scene.ends[TARGET] = 2
    scene.hold(0)

    scene.target()
    scene.ends[TARGET] = 4
    scene.input.next = 2
    assert scene.hold(1)
    assert scene.input.barrier == 4

    scene.input.next = 4
    assert not scene.hold(2)


def test_settling_gives_up_after_its_time_and_tries_again_later() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)
    scene.ends[TARGET] = 2
    assert [scene.hold(at) for at in (0, 100, 101)] == [True, True, False]

    assert [scene.hold(at) for at in (102, 1_100, 1_101)] == [False, False, True]


def test_a_target_that_lags_far_behind_is_left_to_catch_up_first() -> None:
    scene = Scene()
    scene.ends[TARGET] = 51
    scene.delivery.draw(scene.look)
    assert not scene.hold(0)

    scene.input.next = 1
    assert scene.hold(1)


def test_a_target_that_is_being_restored_holds_nothing() -> None:
    scene = Scene()
    scene.delivery.overflowed(TARGET)
    scene.shard.active = False

    assert not scene.hold(0)


# Through a member ---------------------------------------------------------------------------------------------------


def numbers(world: World, stage: int) -> list[int]:
    return [event.number for _, event in world.events(f"stage-{stage}")]


@pytest.mark.parametrize("before", [0, 1, 5])
def test_commands_that_stood_in_the_topic_come_before_those_of_the_cycle(before: int) -> None:
    world = World(*stages)
    for number in range(1, before + 1):
        world.publish("stage-2", "2/a", Hop("a", number))
    world.publish("stage-1", "a", Hop("a", before + 1))

    world.run()

    assert numbers(world, 2) == list(range(1, before + 2))


def test_a_command_of_an_earlier_owner_that_is_not_yet_visible_is_not_overtaken() -> None:
    """It stands behind the open transaction of somebody else, where no `read_committed` reader sees it."""
    world = World(*stages)
    other = world.start("other")
    world.share(among=["other"])
    world.run()
    other.delivery.enabled = False
    stranger = world.cluster.begin("stranger", world.cluster.init_producer("stranger"))
    world.cluster.append(stranger, Place("w.stage-2", 0), world.entry_in(stranger))
    world.publish("stage-1", "a", Hop("a", 1))
    world.step(3)
    assert world.events("stage-1") != []

    world.share(among=["one"])
    world.step(5)
    world.publish("stage-1", "a", Hop("a", 2))
    world.step(5)
    world.abort_open()
    world.run()

    assert numbers(world, 2) == [1, 2]


def test_a_member_settles_and_then_delivers_within_the_cycle() -> None:
    world = World(*stages)
    world.run()
    world.member.delivery.enabled = False
    world.publish("stage-1", "a", Hop("a", 1))
    world.step(2)
    world.member.delivery.enabled = True
    for number in range(2, 6):
        world.publish("stage-1", "a", Hop("a", number))
        world.step()
    world.run()
    by_topic = world.read("stage-2")

    world.publish("stage-1", "a", Hop("a", 6))
    world.run()

    assert world.read("stage-2") == by_topic != []
    assert numbers(world, 4) == [1, 2, 3, 4, 5, 6]
    assert world.member.counters.settles > 0


@pytest.mark.parametrize("on_bug", list(OnBug))
def test_a_command_that_cannot_be_encoded_falls_under_the_policy_when_the_cycle_is_full(on_bug: OnBug) -> None:
    """Within the cycle it is never encoded; when it must take its topic after all, it is."""
    sender = sending("counting")
    sender.deciders[type(tick(""))] = lambda *_: [Send(hops, "k", Hop("a", 2**70))]
    witness = Witness("witness", hops)
    limits = Limits(folds_max=1, cycle_ms_max=60_000)
    world = World(sender, witness.processor, settings=MemberSettings(on_bug=on_bug, limits=limits))
    world.run()
    for n in range(3):
        world.publish("ticks", "a", tick(str(n)))

    if on_bug is OnBug.STOP:
        with pytest.raises(HandlerFailed, match="encode on Hop"):
            world.run()
        return
    world.run()

    assert len(witness.seen) == 1
    assert [(letter.stage, letter.topic, letter.offset, letter.value) for letter in world.letters()] == [
        (Stage.ENCODE, "w.hops", -1, None)
    ] * 2


def test_commands_are_delivered_directly_though_clients_fill_their_topic() -> None:
    """What clients write behind the barrier is no reason to go the long way, however much of it waits."""
    witness = Witness("witness", hops)
    world = World(sending("counting"), witness.processor, settings=MemberSettings(limits=Limits(cycle_ms_max=0)))
    world.run()
    for n in range(300):
        world.publish("hops", "k", Hop("client", n))
    for n in range(10):
        world.publish("ticks", "a", tick(str(n)))

    world.run()

    assert world.member.counters.early_commits > 0
    assert world.member.counters.delivered == 20
    assert [hop.source for _, hop in world.read("hops")] == ["client"] * 300
    assert len(witness.seen) == 320


def test_a_chain_of_commands_that_overflowed_comes_back_into_the_cycle() -> None:
    there, back = Stream("there", (Hop,)), Stream("back", (Hop,))
    world = World(
        passing("ping", there, back), passing("pong", back, there), settings=MemberSettings(limits=Limits(folds_max=10))
    )
    world.run()
    world.publish("there", "a", Hop("a", 200))

    world.run()

    assert len(world.events("ping")) + len(world.events("pong")) == 200
    assert world.member.counters.delivered > 150
    assert world.member.counters.cycles < 60


def passing(name: str, source: Stream, target: Stream) -> Processor[StageTables]:
    """A processor that passes a command on to the other until its number is used up."""
    made = Processor(
        name,
        tables=StageTables,
        inputs=[source],
        events=Stream(f"{name}.events", (Hopped,), Keep.FOR_EVER),
        outputs=[target],
    )

    @made.decides(Hop)
    def decide(message: Message[Hop], state: StageTables, now_ms: int) -> Iterator[Effect]:
        yield Emit(Hopped("a", message.value.number, 0))
        if message.value.number > 1:
            yield Send(target, message.key, Hop("a", message.value.number - 1))

    made.applies(Hopped)(lambda _message, _state: None)
    return made
