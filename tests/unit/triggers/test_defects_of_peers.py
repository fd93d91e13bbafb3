"""How others lose or double triggers, and that it does not happen here."""

import pytest

from kapelle.processors.definitions.models import Rule
from kapelle.processors.wiring import SIGNAL_INTERNAL, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR, Engine
from kapelle.topology.crash import Crash, CrashPoint, never
from kapelle.topology.embedded import EmbeddedRuntime
from tests.unit.signals.announcing import FLOW, armed, command, joins, say, starts, told, trigger

CYCLE = [
    CrashPoint.AFTER_CONSUME,
    CrashPoint.AFTER_PRODUCE,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
]


class Died(Exception):
    """The process is gone."""


def restart(engine: Engine, crash: Crash = never) -> None:
    """Another process takes over what this one leaves behind."""
    store = engine.runtime._store
    engine.runtime = EmbeddedRuntime(engine.topology, store, clock=engine.clock, crash=crash)


def dying_at(wanted: CrashPoint) -> Crash:
    def crash(point: CrashPoint) -> None:
        if point is wanted:
            raise Died(point)

    return crash


def test_a_join_is_neither_forgotten_nor_remembered_wrongly_when_its_owner_changes() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day")), partitions=3)
    say(engine, "a", "a1", day=1)

    restart(engine)
    say(engine, "b", "b1", day=1)
    restart(engine)
    for signal_id in ("b1", "b2"):
        say(engine, "b", signal_id, day=1)
    say(engine, "a", "a1", day=1)

    assert starts(engine) == [{"a": 1, "b": 1}]


@pytest.mark.parametrize("rule", list(Rule))
def test_no_run_strategy_lets_a_repetition_pass(rule: Rule) -> None:
    engine = armed(trigger(a={}), steps=[{"step": {"id": "work", "type": "shell"}}])
    command(engine, c.ChangeProperties(engine.request_id(), AUTHOR, f'{{"run_strategy": "{rule}"}}'))

    for signal_id in ("a1", "a1", "a2", "a1", "a2"):
        say(engine, "a", signal_id)

    assert starts(engine) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("point", CYCLE)
def test_no_run_strategy_lets_a_repetition_pass_after_a_crash(rule: Rule, point: CrashPoint) -> None:
    engine = armed(trigger(a={}), steps=[{"step": {"id": "work", "type": "shell"}}])
    command(engine, c.ChangeProperties(engine.request_id(), AUTHOR, f'{{"run_strategy": "{rule}"}}'))

    for signal_id in ("a1", "a1", "a2", "a1", "a2"):
        restart(engine, dying_at(point))
        with pytest.raises(Died):
            say(engine, "a", signal_id)
        restart(engine)
        say(engine, "a", signal_id)

    assert starts(engine) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("point", CYCLE)
def test_a_join_survives_a_crash_at_every_moment_between_its_signals(point: CrashPoint) -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), d=joins("day")), partitions=3)

    for name, signal_id in (("a", "a1"), ("b", "b1"), ("a", "a1"), ("d", "d1"), ("d", "d1"), ("b", "b1")):
        restart(engine, dying_at(point))
        with pytest.raises(Died):
            say(engine, name, signal_id, day=1)
        restart(engine)
        say(engine, name, signal_id, day=1)

    assert starts(engine) == [{"a": 1, "b": 1, "d": 1}]


def test_a_burst_of_signals_is_as_many_starts() -> None:
    engine, count = armed(trigger(a={}), partitions=2), 10_000
    for number in range(count):
        announced = c.AnnounceSignal("a", f"a{number}", "{}")
        engine.runtime.publish(SIGNAL_INTERNAL, "a", announced)

    engine.runtime.step_until_idle()

    assert [one["a"] for one in starts(engine)] == list(range(1, count + 1))


def test_a_start_that_is_asked_for_twice_by_the_same_signals_is_one() -> None:
    engine = armed(trigger(a={}))
    say(engine, "a", "a1")
    [fired] = told(engine, c.TriggerFired)
    initiator = f'{{"type":"SIGNAL","trigger_uuid":"{fired.trigger_id}","signal_id_map":{{"a":1}}}}'

    again = c.StartTriggered("signal", (c.Start(fired.request_id, initiator=initiator),))
    engine.send(WORKFLOW_INTERNAL, FLOW, again)

    assert starts(engine, FLOW) == [{"a": 1}]
    assert len(told(engine, c.StartDuplicated)) == 1
