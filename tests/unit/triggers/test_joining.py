"""Signals that belong together start one instance, each of them is used once, and none is lost."""

import json
from itertools import permutations

import pytest

from kapelle.processors.wiring import TRIGGER_EVENTS, TRIGGER_INTERNAL
from kapelle.schemas import contracts as c
from tests.unit.signals.announcing import armed, joins, matches, push, say, starts, told, trigger

MINUTE_MS = 60_000
NAMES = "abcd"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_one_signal_of_each_name_starts_one_instance(count: int) -> None:
    engine = armed(trigger({name: joins("day") for name in NAMES[:count]}))

    for name in NAMES[:count]:
        assert starts(engine) == []
        say(engine, name, day=1)

    assert starts(engine) == [dict.fromkeys(NAMES[:count], 1)]


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_it_does_not_matter_which_comes_first(order: tuple[str, ...]) -> None:
    engine = armed(trigger({name: joins("day") for name in "abc"}), partitions=3)

    for name in order:
        say(engine, name, day=1)

    assert starts(engine) == [{"a": 1, "b": 1, "c": 1}]


def test_join_keys_are_paired_by_their_places() -> None:
    engine = armed(trigger(a=joins("day", "place"), b=joins("date", "town")))

    say(engine, "a", day=1, place="x")
    say(engine, "b", date="x", town=1)
    say(engine, "b", date=1, town="x")

    assert starts(engine) == [{"a": 1, "b": 2}]


def test_a_string_and_an_integer_are_different_join_values() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))

    say(engine, "a", day=1)
    say(engine, "b", day="1")

    assert starts(engine) == []


def test_within_a_join_value_the_first_come_are_the_first_used() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))

    for name in "aaabb":
        say(engine, name, day=1)
    say(engine, "b", day=2)
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 4}]


def test_the_first_of_its_name_is_used_first_whichever_is_offered_first() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    [key] = {key for key, _ in engine.history(TRIGGER_EVENTS, 0)}

    for sequence in (3, 1, 2):
        offer = c.OfferSignal("a", f"a{sequence}", sequence, '{"day":1}', engine.clock.now_ms, generation=1)
        engine.send(TRIGGER_INTERNAL, key, offer)
    for _ in range(3):
        say(engine, "b", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3}]
    assert list(engine.state("triggers", key).waiting.prefix(())) == []


@pytest.mark.parametrize("again", [1, 2])
def test_a_signal_that_is_offered_again_is_used_once(again: int) -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    [key] = {key for key, _ in engine.history(TRIGGER_EVENTS, 0)}

    for sequence in (1, 2, again):
        offer = c.OfferSignal("a", f"a{sequence}", sequence, '{"day":1}', engine.clock.now_ms, generation=1)
        engine.send(TRIGGER_INTERNAL, key, offer)
    for _ in range(3):
        say(engine, "b", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]


def test_a_signal_that_expires_behind_another_of_its_name_leaves_the_others() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), options={"expiry": "1 min"}))
    [key] = {key for key, _ in engine.history(TRIGGER_EVENTS, 0)}
    for sequence in (3, 1):
        offer = c.OfferSignal("a", f"a{sequence}", sequence, '{"day":1}', engine.clock.now_ms, generation=1)
        engine.send(TRIGGER_INTERNAL, key, offer)
        engine.advance(MINUTE_MS // 2)

    for _ in range(2):
        say(engine, "b", day=1)

    assert [one.sequence for one in told(engine, c.SignalExpired)] == [3]
    assert starts(engine) == [{"a": 1, "b": 1}]


def test_a_signal_is_used_once_by_each_trigger_and_by_all_of_them() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")), trigger(a={}))

    say(engine, "a", day=1)
    say(engine, "b", day=1)
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": 1}, {"a": 1, "b": 1}]


def test_without_join_keys_signals_pair_up_as_they_come() -> None:
    engine = armed(trigger(a={}, b={}))

    for name in "aabab":
        say(engine, name)

    assert starts(engine) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]


def test_a_signal_without_its_join_key_is_passed_over_and_that_is_told() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))

    say(engine, "a", other=1)
    say(engine, "b", day=1)

    [passed] = told(engine, c.SignalPassedOver)
    assert (passed.name, passed.reason) == ("a", "A parameter for a join key is missing: the trigger joins by day")
    assert starts(engine) == []


def test_of_the_latest_only_the_newest_waits() -> None:
    engine = armed(trigger(a=joins("day", match="latest"), b=joins("day")))

    say(engine, "a", day=1)
    say(engine, "a", day=1)
    say(engine, "b", day=1)
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": 2, "b": 1}]
    assert [(one.sequence, one.reason) for one in told(engine, c.SignalPassedOver)] == [
        (1, "Expected the latest signal, but signal 2 is newer")
    ]


def test_the_latest_of_one_name_does_not_hurry_the_other() -> None:
    engine = armed(trigger(a=joins("day", match="latest"), b=joins("day")))

    say(engine, "b", day=1)
    say(engine, "b", day=1)
    say(engine, "a", day=1)
    say(engine, "a", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]


def test_the_latest_of_the_past_is_the_newest_of_it() -> None:
    engine = armed(trigger(other={}))
    for _ in range(3):
        say(engine, "a", day=1)
    past = trigger(a=joins("day", match="latest"), b=joins("day"), options={"from": "earliest"})

    push(engine, past, workflow_id="late")
    say(engine, "b", day=1)

    assert starts(engine, "late") == [{"a": 3, "b": 1}]


def test_a_signal_that_waits_too_long_is_given_up_and_that_is_told() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), options={"expiry": "1 min"}))
    say(engine, "a", day=1)

    engine.advance(MINUTE_MS)
    say(engine, "b", day=1)

    [expired] = told(engine, c.SignalExpired)
    assert (expired.name, expired.sequence, expired.join_value) == ("a", 1, "[1]")
    assert starts(engine) == []


def test_a_signal_whose_partner_comes_in_time_does_not_expire() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), options={"expiry": "1 min"}))
    say(engine, "a", day=1)

    engine.advance(MINUTE_MS - 1)
    say(engine, "b", day=1)
    engine.advance(10 * MINUTE_MS)

    assert starts(engine) == [{"a": 1, "b": 1}]
    assert told(engine, c.SignalExpired) == []


def test_only_the_one_that_has_waited_too_long_is_given_up() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), options={"expiry": "1 min"}))
    say(engine, "a", day=1)
    engine.advance(MINUTE_MS // 2)
    say(engine, "a", day=1)

    engine.advance(MINUTE_MS // 2)
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": 2, "b": 1}]


def test_names_and_values_with_odd_characters_expire_like_others() -> None:
    engine = armed(trigger({"a\x1fb": joins("day"), "c": joins("day")}, options={"expiry": 1}))

    say(engine, "a\x1fb", day="\x1f/é")
    engine.advance(MINUTE_MS)

    [expired] = told(engine, c.SignalExpired)
    assert (expired.name, json.loads(expired.join_value)) == ("a\x1fb", ["\x1f/é"])


def test_each_name_has_conditions_of_its_own() -> None:
    engine = armed(trigger(a={**joins("day"), **matches(n=(">", 1))}, b={**joins("day"), **matches(n=("in", [5, 6]))}))

    say(engine, "a", day=1, n=1)
    say(engine, "b", day=1, n=5)
    say(engine, "a", day=1, n=2)

    assert starts(engine) == [{"a": 2, "b": 1}]
