"""Exactly the starts that the model says: whatever is announced twice, in any order, while triggers come and go."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.wiring import SIGNAL_EVENTS, SIGNAL_INTERNAL, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR, Engine
from tests.property.signals.model import Model, Rule, Signal, Wants
from tests.property.signals.replaying import differing

MINUTE_MS = 60_000
FIFO = {
    "single": Rule({"a": Wants((("n", ">", 0),))}),
    "pair": Rule({"a": Wants((), ("day",)), "b": Wants((), ("tag",))}),
    "triple": Rule(
        {
            "a": Wants((), ("day",)),
            "b": Wants((("n", "=", 1),), ("day",)),
            "c": Wants((("tag", "=", "x"),), ("day",)),
        }
    ),
    "four": Rule({name: Wants((), ("day",)) for name in "abcd"}),
    "free": Rule({"b": Wants(), "c": Wants((("n", "<=", 1),))}),
    "operators": Rule(
        {
            "a": Wants((("n", "!=", 1), ("tag", "in", [1, "x", "xy"])), ("day",)),
            "b": Wants((("tag", "prefix", "x"),), ("day",)),
        }
    ),
}
WORKFLOWS: dict[str, Rule] = {
    **FIFO,
    "latest": Rule({"a": Wants((), ("day",), is_latest=True), "b": Wants((), ("day",))}),
    "latest both": Rule({"b": Wants((), (), is_latest=True), "c": Wants((("n", ">", 0),), (), is_latest=True)}),
    "condition": Rule(
        {"a": Wants((("n", ">=", 0),), ("day",)), "b": Wants((("n", ">=", 0),), ("day",))},
        condition="a__n > params.getFromSignal('b', 'n')",
        holds=lambda signals: signals["a"]["n"] > signals["b"]["n"],  # type: ignore[operator]
    ),
    "expiry": Rule({"a": Wants((), ("day",)), "b": Wants((), ("day",))}, expiry_ms=2 * MINUTE_MS),
    "expiry of the latest": Rule(
        {"a": Wants((), ("day",), is_latest=True), "c": Wants((), ("day",))}, expiry_ms=3 * MINUTE_MS
    ),
    "past": Rule({"b": Wants((), ("day",)), "c": Wants((), ("day",))}, is_from_earliest=True),
    "past alone": Rule({"a": Wants((("n", "=", 2),))}, is_from_earliest=True),
}
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.sampled_from([0, 1, 2]),
        "day": st.sampled_from([1, 2, "1"]),
        "tag": st.sampled_from([1, 2, "x", "xy"]),
    },
)
ANNOUNCEMENTS = st.tuples(st.just("say"), st.sampled_from("abcd"), st.integers(0, 6), PARAMS)
SWITCHES = st.tuples(st.sampled_from(["on", "off"]), st.sampled_from(list(WORKFLOWS)))
PAUSES = st.tuples(st.just("pause"), st.integers(1, 3))
TURNS = st.lists(st.one_of(ANNOUNCEMENTS, ANNOUNCEMENTS, ANNOUNCEMENTS, SWITCHES, PAUSES), max_size=40)


def definition(workflow_id: str, rule: Rule) -> dict[str, Any]:
    trigger: dict[str, Any] = {
        "definitions": {
            name: {
                "match_params": {param: {"value": value, "operator": how} for param, how, value in want.conditions},
                "join_keys": list(want.join_keys),
                "match": "latest" if want.is_latest else "first",
            }
            for name, want in rule.wants.items()
        },
        "condition": rule.condition,
        "from": "earliest" if rule.is_from_earliest else "latest",
        "expiry": None if rule.expiry_ms is None else f"{rule.expiry_ms} ms",
    }
    steps = [{"step": {"id": "only", "type": "NoOp"}}]
    workflow = {"id": key_of(workflow_id), "signal_triggers": [trigger], "steps": steps}
    return {"properties": {"owner": "ann", "run_strategy": 100}, "workflow": workflow}


def key_of(workflow_id: str) -> str:
    return workflow_id.replace(" ", "-")


def starts_of(engine: Engine) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """The instances that were started, each by the ids of its signals."""
    ids = {
        (event.name, event.sequence): event.signal_id
        for event in engine.events(SIGNAL_EVENTS)
        if isinstance(event, c.SignalAccepted)
    }
    return [
        (event.workflow_id, tuple(sorted((name, ids[name, number]) for name, number in used.items())))
        for event in engine.events(WORKFLOW_EVENTS)
        if isinstance(event, c.InstanceCreated) and (used := json.loads(event.initiator).get("signal_id_map"))
    ]


def expected(model: Model) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return sorted((key_of(workflow_id), used) for workflow_id, used in model.starts)


def announcement(signal: Signal) -> c.AnnounceSignal:
    return c.AnnounceSignal(signal.name, signal.id, json.dumps(signal.params))


@settings(max_examples=60, deadline=None)
@given(turns=TURNS, partitions=st.sampled_from([1, 3]))
def test_every_combination_starts_one_instance(turns: list[tuple[Any, ...]], partitions: int) -> None:
    engine, model = Engine(partitions=partitions), Model()
    for workflow_id, rule in WORKFLOWS.items():
        engine.push(definition(workflow_id, rule))
        model.arm(workflow_id, rule)

    for turn in turns:
        match turn:
            case "say", name, number, params:
                signal = Signal(name, f"{name}{number}", params)
                model.announce(signal)
                engine.send(SIGNAL_INTERNAL, name, announcement(signal))
            case "pause", minutes:
                model.now_ms += minutes * MINUTE_MS
                engine.advance(minutes * MINUTE_MS)
            case "on", workflow_id:
                model.arm(workflow_id, WORKFLOWS[workflow_id])
                command: Any = c.ActivateVersion(engine.request_id(), AUTHOR, "latest")
                engine.send(WORKFLOW_COMMANDS, key_of(workflow_id), command)
            case "off", workflow_id:
                model.disarm(workflow_id)
                command = c.DeactivateWorkflow(engine.request_id(), AUTHOR)
                engine.send(WORKFLOW_COMMANDS, key_of(workflow_id), command)

    assert engine.refusals() == []
    assert sorted(starts_of(engine)) == expected(model)
    assert differing(engine) == []


SIGNALS = st.lists(st.builds(Signal, st.sampled_from("abcd"), st.integers(0, 9).map(str), PARAMS), max_size=40)


@settings(max_examples=40, deadline=None)
@given(signals=SIGNALS, seed=st.randoms(use_true_random=False), partitions=st.sampled_from([1, 3]))
def test_the_order_of_different_names_makes_no_difference(signals: list[Signal], seed: Any, partitions: int) -> None:
    engine, model = Engine(partitions=partitions), Model()
    for workflow_id, rule in FIFO.items():
        engine.push(definition(workflow_id, rule))
        model.arm(workflow_id, rule)
    lines = {name: [one for one in signals if one.name == name for _ in range(seed.randint(1, 3))] for name in "abcd"}

    while any(lines.values()):
        name = seed.choice([name for name in lines if lines[name]])
        engine.runtime.publish(SIGNAL_INTERNAL, name, announcement(lines[name].pop(0)))
    engine.runtime.step_until_idle()
    for signal in signals:
        model.announce(signal)

    assert sorted(starts_of(engine)) == expected(model)
