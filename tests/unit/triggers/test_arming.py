"""Which triggers are armed is a pure function of the active version and the properties, and takes effect at once."""

from collections.abc import Callable

import pytest

from kapelle.processors.triggers import deciding
from kapelle.processors.wiring import TRIGGER_EVENTS, TRIGGER_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR, Engine
from tests.property.signals.replaying import differing
from tests.unit.signals.announcing import (
    activate,
    armed,
    command,
    deactivate,
    disable,
    joins,
    push,
    say,
    starts,
    told,
    trigger,
)


def delete(engine: Engine) -> None:
    command(engine, c.DeleteWorkflow(engine.request_id(), AUTHOR))


def replace(engine: Engine) -> None:
    push(engine, trigger(other={}))


OFF: list[Callable[[Engine], None]] = [deactivate, disable, delete, replace]


@pytest.mark.parametrize("off", OFF)
def test_a_trigger_that_is_switched_off_starts_nothing_from_then_on(off: Callable[[Engine], None]) -> None:
    engine = armed(trigger(a={}))
    say(engine, "a")

    off(engine)
    say(engine, "a")

    assert starts(engine) == [{"a": 1}]


@pytest.mark.parametrize("off", [deactivate, disable])
def test_switching_off_twice_is_as_switching_off_once(off: Callable[[Engine], None]) -> None:
    engine = armed(trigger(a={}))
    off(engine)
    before = len(told(engine, c.TriggerRemoved))

    off(engine)

    assert before == len(told(engine, c.TriggerRemoved)) == 1


def test_activating_twice_is_as_activating_once() -> None:
    engine = armed(trigger(a={}))

    activate(engine)
    activate(engine)
    say(engine, "a")

    assert starts(engine) == [{"a": 1}]
    assert len(told(engine, c.TriggerSubscribed)) == 1


@pytest.mark.parametrize(
    ("off", "on"), [(deactivate, activate), (disable, lambda engine: disable(engine, is_disabled=False))]
)
def test_what_was_announced_while_it_was_off_does_not_start_it_later(
    off: Callable[[Engine], None], on: Callable[[Engine], None]
) -> None:
    engine = armed(trigger(a={}))

    off(engine)
    say(engine, "a")
    on(engine)
    say(engine, "a")

    assert starts(engine) == [{"a": 2}]


def test_what_waited_before_it_was_switched_off_is_forgotten() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    say(engine, "a", day=1)

    deactivate(engine)
    activate(engine)
    say(engine, "b", day=1)

    assert starts(engine) == []


def test_a_new_version_with_the_same_trigger_goes_on_with_what_waits() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    say(engine, "a", day=1)

    push(engine, trigger(a=joins("day"), b=joins("day")), description="another version")
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}]
    assert len(told(engine, c.TriggerSubscribed)) == 2


def test_a_new_version_with_another_trigger_begins_anew() -> None:
    engine = armed(trigger(a={}))

    push(engine, trigger(b={}))
    say(engine, "a")
    say(engine, "b")

    assert starts(engine) == [{"b": 1}]


def test_an_older_version_can_be_activated_again() -> None:
    engine = armed(trigger(a={}))
    push(engine, trigger(b={}))

    activate(engine, "1")
    say(engine, "a")
    say(engine, "b")

    assert starts(engine) == [{"a": 1}]


def test_a_version_that_is_not_active_arms_nothing() -> None:
    engine = armed(trigger(a={}))
    body = {"id": "flow", "signal_triggers": [trigger(b={})], "steps": [{"step": {"id": "only", "type": "NoOp"}}]}

    engine.push({"properties": {"owner": "ann"}, "workflow": body, "is_active": False})
    say(engine, "b")

    assert starts(engine) == []


def test_properties_that_concern_no_trigger_change_none() -> None:
    engine = armed(trigger(a={}))

    command(engine, c.ChangeProperties(engine.request_id(), AUTHOR, '{"description": "x"}'))
    say(engine, "a")

    assert starts(engine) == [{"a": 1}]
    assert len(told(engine, c.TriggerSubscribed)) == 1


def test_the_past_counts_if_the_trigger_asks_for_it() -> None:
    engine = armed(trigger(other={}))
    for day in (1, 2, 3):
        say(engine, "a", day=day)
    say(engine, "b", day=2)

    push(engine, trigger(a=joins("day"), b=joins("day"), options={"from": "earliest"}), workflow_id="late")
    say(engine, "b", day=3)

    assert starts(engine, "late") == [{"a": 2, "b": 1}, {"a": 3, "b": 2}]


def test_the_past_may_begin_at_a_time() -> None:
    engine = armed(trigger(other={}))
    say(engine, "a")
    engine.advance(60_000)
    say(engine, "a")

    push(engine, trigger(a={}, options={"from": engine.clock.now_ms}), workflow_id="late")

    assert starts(engine, "late") == [{"a": 2}]


def test_the_past_starts_an_instance_once_however_often_the_trigger_is_armed() -> None:
    engine = armed(trigger(a={}, options={"from": "earliest"}))
    say(engine, "a")

    deactivate(engine)
    activate(engine)

    assert starts(engine) == [{"a": 1}]


def test_an_offer_of_an_earlier_arming_is_not_taken() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    [key] = {key for key, _ in engine.history(TRIGGER_EVENTS, 0)}
    deactivate(engine)
    activate(engine)

    late = c.OfferSignal("a", "late", 1, '{"day":1}', engine.clock.now_ms, generation=1)
    engine.send(TRIGGER_INTERNAL, key, late)
    say(engine, "b", day=1)

    assert told(engine, c.SignalKept)[-1].name == "b"
    assert starts(engine) == []


def test_more_than_one_decision_can_drop_is_dropped_in_parts() -> None:
    engine, count = armed(trigger(a=joins("day"), b=joins("day"))), deciding.DROPS_MAX + 30
    for day in range(count):
        say(engine, "a", day=day)

    deactivate(engine)

    assert [one.count for one in told(engine, c.KeptDropped)] == [deciding.DROPS_MAX, 30]
    [key] = {key for key, _ in engine.history(TRIGGER_EVENTS, 0)}
    assert list(engine.state("triggers", key).kept.prefix(())) == []
    assert list(engine.state("triggers", key).waiting.prefix(())) == []
    assert differing(engine) == []


def test_what_a_trigger_keeps_anew_is_not_dropped_with_what_it_had() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")))
    for day in range(deciding.DROPS_MAX + 30):
        say(engine, "a", day=day)

    deactivate(engine)
    activate(engine)
    say(engine, "a", day=1)
    say(engine, "b", day=1)

    assert starts(engine) == [{"a": deciding.DROPS_MAX + 31, "b": 1}]
