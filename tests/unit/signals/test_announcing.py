"""Each signal counts once: what is a repetition, what is too late, and how the others are numbered."""

import pytest

from kapelle.processors.effects import SetAside
from kapelle.processors.messages import Message
from kapelle.processors.signals import signals
from kapelle.processors.signals.windows import BUCKET_MS, RANGES_MAX, WINDOW_MS
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import EmbeddedRuntime
from tests.unit.signals.announcing import armed, say, starts, told, trigger
from tests.unit.signals.world import NOW_MS, World

DAY_MS = 86_400_000


def verdicts(events: list[object]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_the_same_id_a_second_time_is_a_repetition_of_the_first() -> None:
    world = World()
    world.announce("o1", n=1)

    [event] = world.announce("o1", n=2)

    assert isinstance(event, c.SignalDuplicated)
    assert event.first_sequence == 1


def test_a_repetition_is_offered_to_nobody() -> None:
    engine = armed(trigger(orders={}))
    say(engine, "orders", "o1")

    say(engine, "orders", "o1")

    assert starts(engine) == [{"orders": 1}]


def test_the_same_id_under_another_name_is_another_signal() -> None:
    world = World()
    world.announce("o1")

    [event] = world.announce("o1", "returns")

    assert isinstance(event, c.SignalAccepted)


def test_a_restarted_engine_still_knows_a_signal_again() -> None:
    engine = armed(trigger(orders={}))
    say(engine, "orders", "o1")
    store = engine.runtime._store

    engine.runtime = EmbeddedRuntime(engine.topology, store, clock=engine.clock)
    say(engine, "orders", "o1")

    assert starts(engine) == [{"orders": 1}]
    assert len(told(engine, c.SignalDuplicated)) == 1


@pytest.mark.parametrize("quarters", [0, 1, 2, 3, 4])
def test_an_id_without_a_time_is_known_again_whenever_its_signal_happened(quarters: int) -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS - quarters * WINDOW_MS // 4)
    world.announce("o2")

    assert verdicts(world.announce("o1")) == ["SignalDuplicated"]


@pytest.mark.parametrize("later_ms", [0, DAY_MS, WINDOW_MS * 3 // 4, WINDOW_MS])
def test_an_id_is_known_again_within_the_window(later_ms: int) -> None:
    world = World()
    world.announce("o1")

    world.now_ms += later_ms
    world.announce("o2")

    assert verdicts(world.announce("o1")) == ["SignalDuplicated"]


def forget(world: World, name: str = "returns") -> None:
    """Let time go by until all ids of before are forgotten, with signals of a name that move it."""
    for number in range(2):
        world.now_ms += WINDOW_MS
        world.announce(f"later {world.now_ms} {number}", name)


def test_what_happened_when_others_did_that_are_forgotten_is_too_late_and_that_is_told() -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS)

    forget(world)

    [event] = world.announce("o2", at_ms=NOW_MS)

    assert isinstance(event, c.SignalTooLate)
    assert event.happened_at_ms < event.floor_at_ms == NOW_MS + 1
    assert verdicts(world.announce("o3", at_ms=event.floor_at_ms)) == ["SignalAccepted"]


def test_every_verdict_is_counted() -> None:
    engine = armed()
    now_ms = engine.clock()
    for signal_id, at_ms, later_ms in (
        ("o1", now_ms, 0),
        ("o1", now_ms, WINDOW_MS),
        ("o2", None, WINDOW_MS),
        ("o3", None, 0),
        ("o1", now_ms, 0),
    ):
        say(engine, "orders", signal_id, at_ms=at_ms)
        engine.advance(later_ms)

    counted = engine.runtime.counters.by_kind()

    names = ("SignalAccepted", "SignalDuplicated", "SignalTooLate")
    assert [counted[name] for name in names] == [3, 1, 1]


def test_a_late_repetition_is_never_taken_for_something_new() -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS)
    world.now_ms += 2 * WINDOW_MS
    world.announce("o2")

    assert verdicts(world.announce("o1", at_ms=NOW_MS)) == ["SignalDuplicated"]
    world.now_ms += WINDOW_MS
    world.announce("o3")
    assert verdicts(world.announce("o1", at_ms=NOW_MS)) == ["SignalTooLate"]


def test_signals_of_other_names_make_nothing_too_late() -> None:
    world = World()
    world.now_ms += 10 * WINDOW_MS
    world.announce("r1", "returns")

    filled = [verdicts(world.announce(f"o{day}", at_ms=NOW_MS + day * DAY_MS)) for day in range(60)]

    assert filled == [["SignalAccepted"]] * 60
    assert verdicts(world.announce("o0", at_ms=NOW_MS)) == ["SignalDuplicated"]


def test_what_could_be_a_signal_that_was_forgotten_because_of_another_name_is_too_late() -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS)
    forget(world, "returns")

    assert verdicts(world.announce("o1", at_ms=NOW_MS)) == ["SignalTooLate"]
    assert verdicts(world.announce("o2", at_ms=NOW_MS + 1)) == ["SignalAccepted"]


def test_the_wall_clock_alone_makes_nothing_too_late() -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS)

    world.now_ms += 10 * WINDOW_MS

    assert verdicts(world.announce("o2", at_ms=NOW_MS)) == ["SignalAccepted"]


@pytest.mark.parametrize("jump_ms", [10 * DAY_MS, 3 * WINDOW_MS, 100 * 365 * DAY_MS])
@pytest.mark.parametrize("at_ms", [None, NOW_MS])
def test_one_jump_of_any_size_forgets_nothing_and_makes_nothing_too_late(at_ms: int | None, jump_ms: int) -> None:
    world = World()
    world.announce("o1", at_ms=at_ms)

    world.now_ms += jump_ms
    world.announce("while it was wrong")

    assert verdicts(world.announce("o1", at_ms=at_ms)) == ["SignalDuplicated"]
    assert verdicts(world.announce("o2", at_ms=NOW_MS + 1_000)) == ["SignalAccepted"]
    assert verdicts(world.announce("o3")) == ["SignalAccepted"]


def test_signals_with_the_right_time_go_on_among_those_of_a_clock_that_was_far_ahead() -> None:
    world = World()
    world.announce("o1", at_ms=NOW_MS)
    world.now_ms += 100 * DAY_MS
    world.announce("wrong", at_ms=world.now_ms)

    for day in range(1, 60):  # the time of the partition stays ahead, those who announce are right again
        world.now_ms += DAY_MS
        world.announce(f"untimed {day}", "returns")
        assert verdicts(world.announce(f"day {day}", at_ms=NOW_MS + day * DAY_MS)) == ["SignalAccepted"]

    assert verdicts(world.announce("wrong", at_ms=NOW_MS + 100 * DAY_MS)) == ["SignalTooLate"]
    assert verdicts(world.announce("o1", at_ms=NOW_MS)) == ["SignalTooLate"]


def test_a_repetition_of_what_claimed_to_come_from_the_future_is_never_taken_for_something_new() -> None:
    world = World()
    said_ms = NOW_MS + 20 * DAY_MS
    world.announce("o1", at_ms=said_ms)

    for _ in range(60):
        world.now_ms += DAY_MS
        world.announce(f"later {world.now_ms}")
        assert verdicts(world.announce("o1", at_ms=said_ms)) != ["SignalAccepted"]


def test_times_without_number_are_kept_as_few_ranges() -> None:
    world = World()
    for number in range(100):
        world.announce(f"o{number}", at_ms=number * number * DAY_MS)
    forget(world)

    again = [verdicts(world.announce(f"o{number}", at_ms=number * number * DAY_MS)) for number in range(100)]

    world.announce("one more")
    row = world.state.reader.names.get(("orders",))
    assert again == [["SignalTooLate"]] * 100
    assert row is not None
    assert len(row.forgotten) == RANGES_MAX


def test_what_claims_to_come_from_the_future_happens_now() -> None:
    world = World()

    [event] = world.announce("o1", at_ms=NOW_MS + 100 * WINDOW_MS)

    assert event.happened_at_ms == NOW_MS
    assert verdicts(world.announce("o2", at_ms=NOW_MS)) == ["SignalAccepted"]


def test_an_id_that_is_known_is_looked_up_in_the_window_alone() -> None:
    world = World()
    world.announce("o1", at_ms=0)

    reads = world.reads(c.AnnounceSignal("orders", "o2", "{}"))

    assert reads["seen"] <= WINDOW_MS // BUCKET_MS + 1


def test_ids_that_nobody_needs_any_more_are_forgotten() -> None:
    world = World()
    for number in range(60):
        world.announce(f"o{number}")
        world.now_ms += DAY_MS

    kept = [key[2] for key, _ in world.state.reader.seen.prefix(())]

    assert len(kept) <= (WINDOW_MS + 2 * BUCKET_MS) // DAY_MS + 1
    assert world.replayed() == world.state.fingerprint()


def test_signals_of_a_name_are_numbered_without_gaps() -> None:
    world = World()

    for signal_id in ("o1", "o2", "o1", "o3", "o2", "o4"):
        world.announce(signal_id)
    world.announce("r1", "returns")

    accepted = [event for _, event in world.history if isinstance(event, c.SignalAccepted)]
    assert [(one.name, one.sequence) for one in accepted] == [*(("orders", n) for n in (1, 2, 3, 4)), ("returns", 1)]


def test_an_accepted_signal_says_to_whom_it_was_offered() -> None:
    world = World()
    world.subscribe("one", n=1)
    world.subscribe("other", n=2)

    [event] = world.announce("o1", n=1)

    assert event.offered == ("trigger/one/t",)


def test_payload_and_source_stay_in_history() -> None:
    world = World()

    [event] = world.decide(c.AnnounceSignal("orders", "o1", "{}", payload='{"big":[1]}', source='{"by":"us"}'))

    assert (event.payload, event.source) == ('{"big":[1]}', '{"by":"us"}')


BAD = [
    (c.AnnounceSignal("orders", "o1", "nonsense"), "Expected the parameters of a signal as strings and integers"),
    (c.AnnounceSignal("orders", "o1", '{"n": 1.5}'), "Expected the parameters of a signal as strings and integers"),
    (c.AnnounceSignal("orders", "o1", f'{{"n": {2**63}}}'), "Expected integers of 64 bits"),
    (c.AnnounceSignal("orders", "", "{}"), "Expected an id of a signal with 1 to 1,024 characters, but it has 0"),
    (c.AnnounceSignal("orders", "x" * 1_025, "{}"), "Expected an id of a signal with 1 to 1,024 characters"),
    (c.AnnounceSignal("", "o1", "{}"), "Expected the name of a signal with 1 to 256 characters"),
    (c.AnnounceSignal("orders", "o1", f'{{"n": "{"x" * 20_000}"}}'), "Expected at most 16,384 bytes of parameters"),
    (c.AnnounceSignal("orders", "o1", "{}", payload="x" * 262_145), "Expected at most 262,144 bytes of payload"),
    (c.AnnounceSignal("orders", "o1", "{}", source="é" * 10_000), "Expected at most 16,384 bytes of source"),
]


@pytest.mark.parametrize(("said", "reason"), BAD, ids=lambda one: str(one)[:40])
def test_what_is_no_signal_is_set_aside_with_the_reason(said: c.AnnounceSignal, reason: str) -> None:
    [effect] = signals.deciders[c.AnnounceSignal](Message(said.name, said, "0"), World().state.reader, NOW_MS)

    assert isinstance(effect, SetAside)
    assert effect.reason.startswith(reason)


def test_what_is_set_aside_stops_nothing() -> None:
    engine = armed(trigger(orders={}))

    for said, _ in BAD:
        engine.send(SIGNAL_INTERNAL, "orders", said)
    say(engine, "orders", "o1")

    assert starts(engine) == [{"orders": 1}]


def test_the_largest_signals_can_be_joined_by_eight() -> None:
    names = [f"{name}{'n' * 255}" for name in "abcdefgh"]
    engine = armed(trigger({name: {"join_keys": ["s"]} for name in names}))

    for name in names:
        say(engine, name, "i" * 1_024, s="\x01" * 1_000, t="x" * 10_300)

    assert starts(engine) == [dict.fromkeys(names, 1)]
