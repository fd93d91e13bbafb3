"""Which signals concern whom: every operator on every type, and an index that leads to those alone."""

from typing import Any

import pytest

from kapelle.processors.signals import applying, deciding, search
from kapelle.processors.signals.matching import Condition, Operator
from kapelle.schemas import contracts as c
from tests.unit.signals.announcing import armed, matches, push, say, starts, trigger
from tests.unit.signals.world import NOW_MS, World

HOLDS: list[tuple[str, Any, Any]] = [
    ("=", 5, 5),
    ("=", "a", "a"),
    ("!=", 5, 4),
    ("!=", "a", "b"),
    ("<", 5, 4),
    ("<", 5, -(2**63)),
    ("<", "b", "a"),
    ("<=", 5, 5),
    ("<=", "b", "b"),
    (">", 5, 6),
    (">", 5, 2**63 - 1),
    (">", "b", "ba"),
    (">=", 5, 5),
    (">=", "b", "b"),
    ("in", [4, 5], 5),
    ("in", ["a", "b"], "b"),
    ("in", ["a", 5], 5),
    ("prefix", "ab", "ab"),
    ("prefix", "ab", "abc"),
    ("prefix", "", "x"),
    ("<", "é", "z"),
    (">", "z", "é"),
]
HOLDS_NOT: list[tuple[str, Any, Any]] = [
    ("=", 5, 6),
    ("=", 5, "5"),
    ("=", "5", 5),
    ("!=", 5, 5),
    ("!=", 5, "4"),
    ("!=", "a", "a"),
    ("<", 5, 5),
    ("<", 5, "4"),
    ("<", "5", 4),
    ("<=", 5, 6),
    (">", 5, 5),
    (">", "b", "b"),
    (">", "b", 9),
    (">=", 5, 4),
    (">=", 5, "6"),
    ("in", [4, 5], 6),
    ("in", ["4", "5"], 5),
    ("prefix", "ab", "a"),
    ("prefix", "ab", "b"),
    ("prefix", "1", 12),
]
CASES = [(*case, True) for case in HOLDS] + [(*case, False) for case in HOLDS_NOT]


@pytest.mark.parametrize(("operator", "value", "found", "holds"), CASES)
def test_a_trigger_is_offered_what_its_operator_lets_through(
    operator: str, value: Any, found: Any, holds: bool
) -> None:
    world = World()
    world.subscribe("t", n=(operator, value))

    world.announce("o1", n=found)

    assert world.offered() == ([("t", 1)] if holds else [])


@pytest.mark.parametrize(("operator", "value", "found", "holds"), CASES)
def test_a_step_finds_in_the_past_what_its_operator_lets_through(
    operator: str, value: Any, found: Any, holds: bool
) -> None:
    world = World()
    world.announce("o1", n=found)
    condition = Condition("n", Operator(operator), value)

    world.wait("s", n=(operator, value))

    assert world.woken() == ([("s", 1)] if condition.holds({"n": found}) else [])
    assert condition.holds({"n": found}) == (holds)


@pytest.mark.parametrize("operator", list(Operator))
def test_a_parameter_that_is_not_there_never_matches(operator: Operator) -> None:
    value: Any = ["x"] if operator is Operator.IN else "x"

    assert not Condition("n", operator, value).holds({"m": "x"})


def test_every_condition_must_hold() -> None:
    engine = armed(trigger(orders=matches(n=(">", 1), region="us")))

    say(engine, "orders", n=2, region="eu")
    say(engine, "orders", n=1, region="us")
    say(engine, "orders", n=2, region="us", more="x")

    assert starts(engine) == [{"orders": 3}]


def test_a_parameter_may_have_any_name() -> None:
    world = World()
    wanted: dict[str, Any] = {"a\x1fb": 1, "": ("prefix", "x")}
    found: dict[str, Any] = {"a\x1fb": 1, "": "xy"}
    world.subscribe("t", **wanted)

    world.announce("o1", **found)

    assert world.offered() == [("t", 1)]


CROWDS: dict[str, Any] = {
    "equal values": lambda number: {"n": number},
    "prefixes": lambda number: {"s": ("prefix", f"{number:06d}."), "n": (">", 0)},
}


@pytest.mark.parametrize("kind", CROWDS)
def test_a_signal_that_three_want_costs_as_much_among_ten_as_among_a_hundred_thousand(kind: str) -> None:
    few, many = World(), World()
    for world, count in ((few, 10), (many, 100_000)):
        for number in range(count):
            world.subscribe(f"t{number}", **CROWDS[kind](number))
        for extra in ("x", "y"):
            world.subscribe(extra, **CROWDS[kind](7))
    said = c.AnnounceSignal("orders", "o1", '{"n":7,"s":"000007.x"}')

    assert few.reads(said) == many.reads(said)

    many.decide(said)
    assert sorted(many.offered()) == [("t7", 1), ("x", 1), ("y", 1)]


def test_a_fan_out_goes_on_where_a_decision_was_full() -> None:
    world, count = World(), 2 * deciding.OFFERS_MAX + 7
    for number in range(count):
        world.subscribe(f"t{number:05d}")

    world.announce("o1")
    assert len(world.offered()) == deciding.OFFERS_MAX
    world.go_on()

    assert sorted(world.offered()) == [(f"t{number:05d}", 1) for number in range(count)]


def test_a_fan_out_loses_and_doubles_nobody_while_subscriptions_come_and_go() -> None:
    world, count = World(), 3 * deciding.OFFERS_MAX
    for number in range(count):
        world.subscribe(f"t{number:05d}", n=(">", number % 7 - 10), generation=1)
    world.announce("o1", n=1)

    late, turn = [], 0
    while world.continued:
        name, value = world.continued.popleft()
        for number in range(turn, count, 97):  # armed anew: they hear of later signals only
            world.unsubscribe(f"t{number:05d}")
            world.subscribe(f"t{number:05d}", n=(">", -100), generation=2)
            late.append(f"t{number:05d}")
        world.subscribe(f"new{turn}")
        world.decide(value, name)
        turn += 1

    found = world.offered()
    assert len(found) == len(set(found))
    kept = {f"t{number:05d}" for number in range(count)} - set(late)
    assert kept <= {trigger for trigger, _ in found} <= kept | set(late)
    assert not any(trigger.startswith("new") for trigger, _ in found)
    assert world.replayed() == world.state.fingerprint()


def test_a_crowd_that_grows_and_shrinks_is_offered_everything_all_the_time() -> None:
    world, names = World(), [f"t{number:03d}" for number in range(2 * applying.FEW_MAX)]
    there: set[str] = set()

    for number, name in enumerate([*names, *names[:-1]], 1):
        if name in there:
            world.unsubscribe(name)
        else:
            world.subscribe(name, n=1)
        there ^= {name}
        world.announce(f"o{number}", n=1)

        assert [found for found, sequence in world.offered() if sequence == number] == sorted(there)
    assert world.replayed() == world.state.fingerprint()


def test_a_signal_that_nobody_wants_reads_nothing_of_the_index() -> None:
    world = World()
    for number in range(100):
        world.subscribe(f"t{number:03d}", n=number)

    reads = world.reads(c.AnnounceSignal("orders", "o1", '{"n":100}'))

    assert (reads["index"], reads["subscriptions"]) == (0, 0)


def test_many_that_do_not_match_are_passed_over_in_parts() -> None:
    world, count = World(), search.LOOKS_MAX + 500
    for number in range(count):
        world.subscribe(f"t{number:05d}", n=(">", 0), m=("!=", 1))
    world.subscribe("z", n=("<", 9))

    world.announce("o1", n=1, m=1)
    decisions = world.go_on()

    assert decisions == 1
    assert world.offered() == [("z", 1)]


def test_a_subscription_sees_only_signals_that_come_after_it() -> None:
    engine = armed(trigger(returns={}))
    say(engine, "orders", "o1")

    push(engine, trigger(orders={}), workflow_id="later")
    say(engine, "orders", "o2")

    assert starts(engine, "later") == [{"orders": 2}]


def test_one_that_asks_for_the_past_gets_each_signal_of_it_once_and_in_order() -> None:
    world, count = World(), deciding.OFFERS_MAX + 20
    for number in range(count):
        world.announce(f"o{number}", n=number % 2)

    world.subscribe("t", since_at_ms=0, n=1)
    world.announce("new", n=1)
    world.go_on()

    past = [("t", number) for number in range(2, count + 1, 2)]
    assert sorted(world.offered()) == [*past, ("t", count + 1)]
    assert [one for one in world.offered() if one[1] <= count] == past


def test_the_past_may_begin_at_a_time() -> None:
    world = World()
    for number in range(6):
        world.announce(f"o{number}", at_ms=NOW_MS - 1000 * (6 - number))

    world.subscribe("t", since_at_ms=NOW_MS - 3000)
    world.go_on()

    assert world.offered() == [("t", 4), ("t", 5), ("t", 6)]


def test_one_that_is_armed_anew_while_it_is_told_of_the_past_is_told_of_it_once() -> None:
    world, count = World(), deciding.OFFERS_MAX + 20
    for number in range(count):
        world.announce(f"o{number}")
    world.subscribe("t", since_at_ms=0, generation=1)
    world.decide(world.continued.popleft()[1])  # the first part of the past

    world.unsubscribe("t")
    world.subscribe("t", since_at_ms=0, generation=2)
    world.go_on()

    second = [one for _, one in world.sent if isinstance(one, c.OfferSignal) and one.generation == 2]
    assert [one.sequence for one in second] == list(range(1, count + 1))
    assert len(world.sent) == count + deciding.OFFERS_MAX


def test_a_repeated_unsubscribing_does_nothing() -> None:
    world = World()
    world.subscribe("t")
    world.unsubscribe("t")

    assert world.decide(c.UnsubscribeTrigger("t", "t")) == []
