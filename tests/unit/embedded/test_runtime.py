"""The embedded runtime as its users see it: publish, read, wait, stop, and time that stands still."""

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.tables import Tables
from kapelle.schemas import Codec, NotEncodable, RecordTooLarge
from kapelle.schemas.contracts import DeadLetter
from kapelle.testing.clock import VirtualClock, run_for, skip_to_next_timer
from kapelle.topology.build import Topology
from kapelle.topology.embedded import (
    EmbeddedRuntime,
    EmbeddedSettings,
    InboxLimits,
    NotIdle,
    Position,
    QueueFull,
    Running,
    Stopped,
    UnknownPlace,
)
from kapelle.topology.errors import HandlerFailed, KeyTooLarge
from kapelle.topology.log import Place
from kapelle.topology.settings import Limits, MemberSettings, OnBug
from kapelle.topology.tables import MemoryStore, Store, StoreFailed, StoreLocked
from tests.proof.contracts import Counted, Hop, Hopped, Reminded, Reminder, ReminderSet, Tick
from tests.proof.processors import topology
from tests.unit.embedded.fakes import FullDisk

COUNTING = topology("counting", partitions=1)
STAGES = topology("stages", partitions=2)
REMINDING = topology("reminding", partitions=2)

WAIT_S = 30.0


def tick(number: int, word: str = "apple") -> Tick:
    return Tick(f"tick-{number}", word, 0, 0)


def values(runtime: EmbeddedRuntime, stream: str) -> list[Any]:
    """Everything on a stream, decoded, partition by partition."""
    codec = Codec(runtime.topology.catalog())
    partitions = range(runtime.topology.partitions(runtime.topology.streams[stream]))
    return [codec.decode(r.value or b"") for p in partitions for r in runtime.read(stream, p)]


def stubborn(*, broken: bool) -> Topology:
    """A processor whose decision raises on a tick of the word "bad", while it is broken."""
    ticks = Stream("ticks", (Tick,))
    processor = Processor(
        "stubborn", tables=Tables, inputs=[ticks], events=Stream("stubborn.events", (Counted,), Keep.FOR_EVER)
    )

    @processor.decides(Tick)
    def decide(message: Message[Tick], state: Tables, now_ms: int) -> Iterator[Effect]:
        if broken and message.value.word == "bad":
            raise ValueError("a bug")
        yield Emit(Counted(message.value.id, message.value.word, 1))

    @processor.applies(Counted)
    def apply(message: Message[Counted], state: Tables) -> None:
        """Nothing to keep."""

    return Topology([processor], partitions=1)


@pytest.fixture(params=["memory", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Store:
    """Where to keep it: both must do the same."""
    return MemoryStore() if request.param == "memory" else tmp_path / "state"


# Step by step -------------------------------------------------------------------------------------------------------


def test_what_is_published_is_folded_and_acknowledged(place: Path | Store) -> None:
    with EmbeddedRuntime(COUNTING, place) as runtime:
        future = runtime.publish("ticks", "apple", tick(0))
        runtime.step_until_idle()

        assert future.result(0) == Position(Place("proof.ticks", 0), 0)
        assert values(runtime, "counting.events") == [Counted("tick-0", "apple", 1)]


def test_a_restart_goes_on_where_it_stopped(place: Path | Store) -> None:
    for number in range(3):
        with EmbeddedRuntime(COUNTING, place) as runtime:
            runtime.publish("ticks", "apple", tick(number))
            runtime.step_until_idle()

            assert [e.count for e in values(runtime, "counting.events")] == list(range(1, number + 2))
            assert runtime.counters.records == 1
            assert runtime.counters.wipes == runtime.counters.restored_rows == 0


def test_what_was_accepted_but_not_folded_is_folded_after_the_next_start(place: Path | Store) -> None:
    with EmbeddedRuntime(COUNTING, place) as runtime:
        future = runtime.publish("ticks", "apple", tick(0))
    assert future.result(0).offset == 0

    with EmbeddedRuntime(COUNTING, place) as runtime:
        runtime.step_until_idle()
        assert values(runtime, "counting.events") == [Counted("tick-0", "apple", 1)]


def test_one_future_tells_the_positions_of_many_records(place: Path | Store) -> None:
    with EmbeddedRuntime(COUNTING, place) as runtime:
        future = runtime.publish_all([("ticks", "apple", tick(n)) for n in range(3_000)])
        nothing = runtime.publish_all([])
        runtime.step_until_idle()

        assert [position.offset for position in future.result(0)] == list(range(3_000))
        assert nothing.result(0) == []
        assert runtime.end("counting.events", 0) == 3_000


def test_a_command_between_processors_is_folded_in_the_same_cycle() -> None:
    with EmbeddedRuntime(STAGES, MemoryStore()) as runtime:
        runtime.step_until_idle()
        cycles = runtime.counters.cycles
        runtime.publish("stage-1", "source", Hop("source", 1))
        runtime.step_until_idle()

        assert runtime.counters.cycles - cycles == 1
        assert values(runtime, "stage-4.events") == [Hopped("source", 1, 0)]
        assert [runtime.end(f"stage-{n}", p) for n in (2, 3, 4) for p in (0, 1)] == [0] * 6


def test_commands_take_their_topics_when_they_must() -> None:
    settings = EmbeddedSettings(member=MemberSettings(same_cycle=False))
    with EmbeddedRuntime(STAGES, MemoryStore(), settings) as runtime:
        runtime.publish_all([("stage-1", "source", Hop("source", n)) for n in range(1, 11)])
        runtime.step_until_idle()

        assert values(runtime, "stage-4.events") == [Hopped("source", n, n - 1) for n in range(1, 11)]
        assert sum(runtime.end("stage-4", p) for p in (0, 1)) == 10


def test_a_cycle_too_full_for_its_commands_settles_again() -> None:
    limits = Limits(folds_max=5, records_max=4)
    settings = EmbeddedSettings(member=MemberSettings(limits=limits))
    with EmbeddedRuntime(STAGES, MemoryStore(), settings, clock=VirtualClock()) as runtime:
        runtime.publish_all([("stage-1", f"source-{n % 3}", Hop(f"source-{n % 3}", n // 3 + 1)) for n in range(60)])
        runtime.step_until_idle()

        hopped = values(runtime, "stage-4.events")
        assert len(hopped) == 60
        assert all(each.previous == each.number - 1 for each in hopped)


def test_bad_bytes_become_a_dead_letter_and_nothing_else_is_lost(place: Path | Store) -> None:
    with EmbeddedRuntime(COUNTING, place) as runtime:
        runtime.publish("ticks", "apple", b"not avro", headers=[("content-type", b"text/plain")])
        runtime.publish("ticks", "apple", tick(1))
        runtime.step_until_idle()

        [letter] = [
            Codec(COUNTING.catalog()).decode(r.value or b"")
            for r in runtime.log.read(Place(COUNTING.dead_letters, 0), 0, 10)
        ]
        assert isinstance(letter, DeadLetter)
        assert (letter.topic, letter.offset, letter.value) == ("proof.ticks", 0, b"not avro")
        assert values(runtime, "counting.events") == [Counted("tick-1", "apple", 1)]


def test_headers_and_times_are_read_as_they_were_published() -> None:
    clock = VirtualClock(5_000)
    with EmbeddedRuntime(COUNTING, MemoryStore(), clock=clock) as runtime:
        runtime.publish("ticks", "apple", tick(0), headers=[("traceparent", b"t")])
        runtime.step_until_idle()

        [record] = runtime.read("ticks", 0)
        assert (record.offset, record.at_ms, record.key) == (0, 5_000, b"apple")
        assert list(record.headers or ()) == [("traceparent", b"t")]


# Refusals -----------------------------------------------------------------------------------------------------------


def test_a_stream_that_is_not_there_is_refused_at_once() -> None:
    with EmbeddedRuntime(COUNTING, MemoryStore()) as runtime:
        with pytest.raises(UnknownPlace, match=r"ticks, counting\.events"):
            runtime.publish("tocks", "apple", tick(0))
        with pytest.raises(UnknownPlace, match=r"proof\.ticks-1"):
            runtime.read("ticks", 1)


def test_what_cannot_be_encoded_is_refused_at_once() -> None:
    wrong: Any = "no contract"
    with EmbeddedRuntime(COUNTING, MemoryStore()) as runtime:
        with pytest.raises(NotEncodable):
            runtime.publish("ticks", "apple", wrong)
        with pytest.raises(RecordTooLarge, match=r"at most 1000000 bytes in a record for proof\.ticks-0"):
            runtime.publish("ticks", "apple", bytes(1_000_000))
        with pytest.raises(KeyTooLarge, match="at most 32768 bytes, but found 32769"):
            runtime.publish("ticks", "x" * 32_769, tick(0))


def test_publishing_faster_than_folding_is_held_up_and_then_refused() -> None:
    settings = EmbeddedSettings(inbox=InboxLimits(records_max=2))
    with EmbeddedRuntime(COUNTING, MemoryStore(), settings) as runtime:
        runtime.publish("ticks", "apple", tick(0))
        runtime.publish("ticks", "apple", tick(1))

        with pytest.raises(QueueFull, match=r"within 0\.01 s, but 2 are waiting"):
            runtime.publish("ticks", "apple", tick(2), timeout_s=0.01)
        runtime.step_until_idle()
        runtime.publish("ticks", "apple", tick(2), timeout_s=0.01)


def test_a_second_process_in_the_directory_is_refused_with_the_holder(tmp_path: Path) -> None:
    with (
        EmbeddedRuntime(COUNTING, tmp_path),
        pytest.raises(StoreLocked, match=r"in use by process \d+"),
    ):
        EmbeddedRuntime(COUNTING, tmp_path)

    EmbeddedRuntime(COUNTING, tmp_path).close()


def test_a_directory_that_is_refused_is_let_go(tmp_path: Path) -> None:
    EmbeddedRuntime(COUNTING, tmp_path).close()
    with pytest.raises(Exception, match="partitions"):
        EmbeddedRuntime(topology("counting", partitions=2), tmp_path)

    EmbeddedRuntime(COUNTING, tmp_path).close()


def test_publishing_to_a_closed_runtime_is_refused() -> None:
    runtime = EmbeddedRuntime(COUNTING, MemoryStore())
    runtime.close()
    runtime.close()

    with pytest.raises(Stopped):
        runtime.publish("ticks", "apple", tick(0))


def test_a_store_in_memory_is_for_one_thread() -> None:
    with (
        EmbeddedRuntime(COUNTING, MemoryStore()) as runtime,
        pytest.raises(Running, match="a MemoryStore is for one thread"),
    ):
        runtime.start()


# Time ---------------------------------------------------------------------------------------------------------------


def test_timers_fire_when_the_clock_says_so(place: Path | Store) -> None:
    clock = VirtualClock()
    with EmbeddedRuntime(REMINDING, place, clock=clock) as runtime:
        runtime.publish("reminders", "ada", Reminder("later", 60_000))
        runtime.publish("reminders", "ada", Reminder("soon", 1_000))
        runtime.step_until_idle()
        assert runtime.next_due_at_ms() == clock.now_ms + 1_000

        began_ms = clock.now_ms
        assert skip_to_next_timer(runtime, clock)
        assert clock.now_ms == began_ms + 1_000
        assert [e.id for e in values(runtime, "reminding.events") if isinstance(e, Reminded)] == ["soon"]
        assert skip_to_next_timer(runtime, clock)
        assert not skip_to_next_timer(runtime, clock)
        assert [e.id for e in values(runtime, "reminding.events") if isinstance(e, Reminded)] == ["soon", "later"]


def test_timers_that_came_due_while_nobody_ran_fire_at_the_start(place: Path | Store) -> None:
    clock = VirtualClock()
    with EmbeddedRuntime(REMINDING, place, clock=clock) as runtime:
        runtime.publish("reminders", "ada", Reminder("call", 1_000))
        runtime.step_until_idle()
    clock.advance(10 * 365 * 24 * 60 * 60 * 1000)

    with EmbeddedRuntime(REMINDING, place, clock=clock) as runtime:
        runtime.step_until_idle()
        assert [type(e) for e in values(runtime, "reminding.events")] == [ReminderSet, Reminded]
        assert runtime.counters.wipes == 0


def test_time_that_goes_by_stops_at_every_timer_on_the_way() -> None:
    clock = VirtualClock(0)
    with EmbeddedRuntime(REMINDING, MemoryStore(), clock=clock) as runtime:
        runtime.publish_all([("reminders", "ada", Reminder(f"r{n}", n * 100)) for n in (3, 1, 2, 9)])
        run_for(runtime, clock, 500)

        assert clock.now_ms == 500
        assert [e.id for e in values(runtime, "reminding.events") if isinstance(e, Reminded)] == ["r1", "r2", "r3"]


def test_time_does_not_go_back() -> None:
    clock = VirtualClock(7)
    with pytest.raises(ValueError, match="told to advance by -1 ms"):
        clock.advance(-1)
    clock.advance_to(3)

    assert clock() == 7


def test_work_that_feeds_itself_is_not_waited_for() -> None:
    clock = VirtualClock()
    with EmbeddedRuntime(REMINDING, MemoryStore(), clock=clock) as runtime:
        runtime.publish("reminders", "ada", Reminder("call", 0))
        with pytest.raises(NotIdle, match="within 1 steps"):
            runtime.step_until_idle(steps_max=1)


# Running by itself --------------------------------------------------------------------------------------------------


def test_a_thread_folds_what_others_publish(tmp_path: Path) -> None:
    with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
        runtime.start()
        futures: list[Future[Position]] = []
        lock = threading.Lock()

        def publish(writer: int) -> None:
            for n in range(50):
                future = runtime.publish("ticks", f"word-{writer}", tick(n, f"word-{writer}"))
                with lock:
                    futures.append(future)

        writers = [threading.Thread(target=publish, args=(n,)) for n in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        offsets = {future.result(WAIT_S).offset for future in futures}

        assert offsets == set(range(200))
        assert runtime.wait("counting.events", {0: 199}, WAIT_S)
        assert sorted(e.count for e in values(runtime, "counting.events")) == sorted(list(range(1, 51)) * 4)


def test_an_acknowledged_record_has_been_folded_when_there_was_room(tmp_path: Path) -> None:
    with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
        runtime.start()
        for n in range(5):
            runtime.publish("ticks", "apple", tick(n)).result(WAIT_S)
            assert runtime.end("counting.events", 0) == n + 1


def test_a_subscriber_sees_every_record_once_and_in_order(tmp_path: Path) -> None:
    seen: list[int] = []

    def subscribe(runtime: EmbeddedRuntime) -> None:
        codec, at = Codec(COUNTING.catalog()), 0
        while at < 500 and runtime.wait("counting.events", {0: at}, WAIT_S):
            for record in runtime.read("counting.events", 0, at, limit=7):
                event = codec.decode(record.value or b"")
                assert isinstance(event, Counted)
                seen.append(event.count)
                at = record.offset + 1

    with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
        runtime.start()
        subscriber = threading.Thread(target=subscribe, args=(runtime,))
        subscriber.start()
        for n in range(500):
            runtime.publish("ticks", "apple", tick(n))
        subscriber.join(WAIT_S)

    assert seen == list(range(1, 501))


def test_a_timer_wakes_the_thread(tmp_path: Path) -> None:
    with EmbeddedRuntime(REMINDING, tmp_path) as runtime:
        runtime.start()
        position = runtime.publish("reminders", "ada", Reminder("call", 20)).result(WAIT_S)

        assert runtime.wait("reminding.events", {position.place.partition: 1}, WAIT_S)


def test_everything_accepted_before_the_stop_is_acknowledged(tmp_path: Path) -> None:
    runtime = EmbeddedRuntime(COUNTING, tmp_path)
    runtime.start()
    futures = [runtime.publish("ticks", "apple", tick(n)) for n in range(1_000)]
    runtime.close()

    assert [future.result(0).offset for future in futures] == list(range(1_000))
    with EmbeddedRuntime(COUNTING, tmp_path) as again:
        again.step_until_idle()
        assert again.end("counting.events", 0) == 1_000


def test_running_in_the_foreground_ends_when_it_is_done(tmp_path: Path) -> None:
    with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
        runtime.publish("ticks", "apple", tick(0))
        runtime.run(done=lambda: runtime.end("counting.events", 0) == 1)

        with pytest.raises(Running):
            runtime.run()
        with pytest.raises(Running):
            runtime.step_until_idle()


def test_a_signal_stops_a_runtime_that_waits(tmp_path: Path) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
            runtime.stop_on_signals()
            main = threading.main_thread().ident or 0
            threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGTERM)).start()
            runtime.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert runtime.failure is None


def test_a_bug_stops_the_runtime_and_loses_nothing(tmp_path: Path) -> None:
    runtime = EmbeddedRuntime(stubborn(broken=True), tmp_path)
    runtime.start()
    assert runtime.publish("ticks", "good", tick(0, "good")).result(WAIT_S).offset == 0
    # The record is durable although the fold of it failed: the next start meets it again.
    assert runtime.publish("ticks", "bad", tick(1, "bad")).result(WAIT_S).offset == 1
    assert runtime.end("stubborn.events", 0) == 1
    with pytest.raises(HandlerFailed, match="a bug"):
        runtime.close()

    with EmbeddedRuntime(stubborn(broken=False), tmp_path) as mended:
        mended.step_until_idle()
        assert [e.word for e in values(mended, "stubborn.events")] == ["good", "bad"]


def test_after_a_failure_publishing_tells_what_it_was(tmp_path: Path) -> None:
    runtime = EmbeddedRuntime(stubborn(broken=True), tmp_path)
    runtime.start()
    runtime.publish("ticks", "bad", tick(0, "bad")).result(WAIT_S)
    with pytest.raises(HandlerFailed):
        runtime.close()

    with pytest.raises(Stopped, match="HandlerFailed: decide on Tick"):
        runtime.publish("ticks", "good", tick(1))


def test_a_full_disk_stops_the_runtime_and_tells_whoever_published() -> None:
    disk = FullDisk()
    runtime = EmbeddedRuntime(COUNTING, disk)
    written = runtime.publish("ticks", "apple", tick(0))
    runtime.step_until_idle()
    disk.full = True
    taken, waiting = (runtime.publish("ticks", "apple", tick(n)) for n in (1, 2))
    with pytest.raises(StoreFailed):
        runtime.run()
    runtime.close()

    assert written.result(0).offset == 0
    for future in (taken, waiting):
        with pytest.raises(Stopped, match="no space left"):
            future.result(0)
    disk.full = False
    with EmbeddedRuntime(COUNTING, disk) as again:
        again.publish("ticks", "apple", tick(1))
        again.step_until_idle()
        assert [e.count for e in values(again, "counting.events")] == [1, 2]


def test_with_the_other_policy_a_bug_is_put_aside(place: Path | Store) -> None:
    settings = EmbeddedSettings(member=MemberSettings(on_bug=OnBug.DEAD_LETTER))
    with EmbeddedRuntime(stubborn(broken=True), place, settings) as runtime:
        runtime.publish_all([("ticks", word, tick(0, word)) for word in ("good", "bad", "good")])
        runtime.step_until_idle()

        assert [e.word for e in values(runtime, "stubborn.events")] == ["good", "good"]
        assert runtime.counters.dead_letters == 1
