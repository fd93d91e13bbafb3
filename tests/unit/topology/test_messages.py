"""What messages carry: ids that every attempt makes again, traces that are passed on, headers that others can read."""

from collections.abc import Iterable

import pytest

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas.headers import read
from kapelle.testing.cluster import Outcome
from kapelle.topology.log import Headers
from kapelle.topology.settings import MemberSettings
from tests.proof.contracts import Counted, Hop, Hopped, Reminder, Tick
from tests.proof.processors import Counting, Stage, count, reminding, stages
from tests.unit.topology.world import LIMITS, NOW_MS, World, processor_of, tick

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BY_TOPIC = MemberSettings(same_cycle=False, limits=LIMITS)

hops = Stream("hops", (Hop,))
public_hops = Stream("hops", (Hop,), public=True)


class Witness:
    """A processor that remembers the messages that it was handed."""

    def __init__(self, name: str, source: Stream) -> None:
        self.seen: list[Message[Hop]] = []
        events = Stream(f"{name}.events", (Hopped,), Keep.FOR_EVER)
        self.processor = Processor(name, tables=Stage, inputs=[source], events=events)
        self.processor.decides(Hop)(self._decide)
        self.processor.applies(Hopped)(lambda _message, _state: None)

    def _decide(self, message: Message[Hop], _state: Stage, _now_ms: int) -> Iterable[Effect]:
        self.seen.append(message)
        return (Emit(Hopped(message.value.source, 1, 0)),)


def sending(name: str, hops: Stream = hops) -> Processor[Counting]:
    """A processor that counts, and sends two commands for each tick."""

    def decide(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        yield Send(hops, message.key, Hop("first", 1))
        yield from count(message, state, now_ms)
        yield Send(hops, message.key, Hop("second", 2))

    made = Processor(
        name,
        tables=Counting,
        inputs=[Stream("ticks", (Tick,))],
        events=Stream(f"{name}.events", (Counted,), Keep.FOR_EVER, public=hops.public),
        outputs=[hops],
    )
    made.decides(Tick)(decide)
    made.applies(Counted)(lambda _message, _state: None)
    return made


def header(headers: Headers | None, name: str) -> str | None:
    return next((value.decode() for found, value in headers or () if found == name), None)


def ids(world: World, topic: str) -> list[str | None]:
    return [header(entry.headers, "ce_id") for entry in world.entries(topic)]


# Ids ----------------------------------------------------------------------------------------------------------------


def test_ids_are_made_from_the_coordinates_of_the_record_and_a_count() -> None:
    world = World(sending("counting"))
    world.publish("ticks", "a", tick("1"))
    world.publish("ticks", "a", tick("2"))

    world.run()

    assert ids(world, "w.hops") == [f"counting/w.ticks-0-{offset}#{n}" for offset in (0, 1) for n in (1, 3)]
    assert ids(world, "w.counting.events") == ["counting/w.ticks-0-0#2", "counting/w.ticks-0-1#2"]


def test_a_message_has_the_id_of_its_coordinates() -> None:
    seen = []

    def decide(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        seen.append(message.id)
        return count(message, state, now_ms)

    world = World(processor_of(decide))
    world.publish("ticks", "a", tick("1"))
    world.run()

    assert seen == ["w.ticks-0-0"]


@pytest.mark.parametrize("fault", ["aborted", "unanswered and aborted", "unanswered and committed"])
def test_ids_are_the_same_on_every_attempt(fault: str) -> None:
    seen: list[str] = []

    def decide(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
        seen.append(message.id)
        return count(message, state, now_ms)

    world = World(processor_of(decide))
    world.publish("ticks", "a", tick("1"))
    world.step()
    match fault:
        case "aborted":
            world.log.faults.commit_aborted = True
        case "unanswered and aborted":
            world.log.faults.commit_unanswered = Outcome.ABORTED
        case _:
            world.log.faults.commit_unanswered = Outcome.COMMITTED
    world.run()

    assert set(seen) == {"w.ticks-0-0"}
    assert ids(world, "w.counting.events") == ["counting/w.ticks-0-0#1"]


def test_commands_of_one_cascade_have_ids_that_differ() -> None:
    world = World(*stages)
    for number in (1, 2, 3):
        world.publish("stage-1", "a", Hop("a", number))

    world.run()

    found = [i for n in range(1, 5) for i in ids(world, f"w.stage-{n}.events")]
    assert len(found) == 12 == len(set(found))


def test_two_readers_of_one_record_send_commands_with_different_ids() -> None:
    witness = Witness("witness", hops)
    world = World(sending("left"), sending("right"), witness.processor)
    world.publish("ticks", "a", tick("1"))

    world.run()

    found = [message.id for message in witness.seen]
    assert len(found) == 4 == len(set(found))


def test_timers_of_keys_and_names_that_run_together_have_different_ids() -> None:
    world = World(reminding)
    world.publish("reminders", "a-b", Reminder("c", 10))
    world.publish("reminders", "a", Reminder("b-c", 10))
    world.run()
    world.now_ms += 10
    world.run()

    found = ids(world, "w.reminding.events")
    assert len(found) == 4 == len(set(found))


# Traces -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [BY_TOPIC, MemberSettings(limits=LIMITS)], ids=["by topic", "within the cycle"])
def test_a_trace_is_passed_on_to_everything_that_comes_of_a_record(settings: MemberSettings) -> None:
    world = World(*stages, settings=settings)
    world.publish("stage-1", "a", Hop("a", 1), [("traceparent", TRACE.encode())])

    world.run()

    events = [entry for n in range(1, 5) for entry in world.entries(f"w.stage-{n}.events")]
    assert [header(entry.headers, "traceparent") for entry in events] == [TRACE] * 4


NO_TRACES = {
    "empty": b"",
    "text": b"not a trace",
    "bytes": b"\xff\xfe",
    "too long for its version": TRACE.encode() + b"x",
    "too long for any": b"01" + TRACE.encode()[2:] + b"-" + b"x" * 1_000_000,
    "null": None,
}


@pytest.mark.parametrize("content", NO_TRACES.values(), ids=list(NO_TRACES))
def test_a_trace_that_is_none_or_long_is_dropped_and_its_record_is_folded(content: bytes | None) -> None:
    world = World(processor_of())
    world.publish("ticks", "a", tick("1"), [("traceparent", content)])  # type: ignore[list-item] # Kafka knows null

    world.run()

    (entry,) = world.entries("w.counting.events")
    assert header(entry.headers, "traceparent") is None


def test_a_message_shows_the_headers_that_its_record_had() -> None:
    witness = Witness("witness", hops)
    world = World(witness.processor)
    world.publish("hops", "a", Hop("a", 1), [("who", b"me"), ("who", b"you")])

    world.run()

    assert list(witness.seen[0].headers) == [("who", b"me"), ("who", b"you")]


# Headers ------------------------------------------------------------------------------------------------------------


def test_what_our_own_processors_read_carries_an_id_and_the_trace_alone() -> None:
    world = World(sending("counting"))
    world.publish("ticks", "a", tick("1"))
    world.publish("ticks", "a", tick("2"), [("traceparent", TRACE.encode())])

    world.run()

    for topic in ("w.counting.events", "w.hops"):
        found = [[name for name, _ in entry.headers or ()] for entry in world.entries(topic)]
        half = len(found) // 2
        assert found == [["ce_id"]] * half + [["ce_id", "traceparent"]] * half


def test_every_record_of_a_public_stream_is_a_cloud_event() -> None:
    world = World(sending("counting", public_hops))
    world.publish("ticks", "a", tick("1"))

    world.run()

    found = {
        topic: [read(entry.headers).event for entry in world.entries(topic)]
        for topic in ("w.counting.events", "w.hops")
    }
    assert [(e.type, e.source, e.time_ms) for e in found["w.counting.events"] if e] == [
        ("Counted", "/w/counting", NOW_MS)
    ]
    assert [(e.type, e.source, e.time_ms) for e in found["w.hops"] if e] == [("Hop", "/w/counting", NOW_MS)] * 2


def test_a_command_that_takes_its_topic_after_all_names_its_sender() -> None:
    """As it would if it had never been meant for the cycle."""
    witness = Witness("witness", public_hops)
    world = World(sending("counting", public_hops), witness.processor)
    world.run()
    world.member.limits = LIMITS.__class__(folds_max=1, cycle_ms_max=60_000)
    for n in range(3):
        world.publish("ticks", "a", tick(str(n)))

    world.run()

    sources = {header(entry.headers, "ce_source") for entry in world.entries("w.hops")}
    assert sources == {"/w/counting"}


def test_outputs_go_under_their_keys_to_the_partitions_of_their_keys() -> None:
    world = World(sending("counting"), partitions=3)
    for key in ("21", "foobar", "abc"):
        world.publish("ticks", key, tick(key))

    world.run()

    placed = {
        (place.partition, (entry.key or b"").decode())
        for place, entries in world.cluster.partitions.items()
        if place.topic == "w.hops"
        for entry in entries
        if entry.visible
    }
    java = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    assert placed == {((hashed & 0x7FFFFFFF) % 3, key) for key, hashed in java.items()}
