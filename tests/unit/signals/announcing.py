"""Workflows with triggers in few words, and signals for them: what the tests of signals begin with.

engine = armed(trigger(orders={}))
say(engine, "orders", "o1", day=1)
assert starts(engine) == [{"orders": 1}]
"""

import json
from typing import Any, TypeVar

from kapelle.processors.wiring import (
    RUN_EVENTS,
    SIGNAL_EVENTS,
    SIGNAL_INTERNAL,
    TRIGGER_EVENTS,
    WORKFLOW_COMMANDS,
    WORKFLOW_EVENTS,
)
from kapelle.schemas import contracts as c
from kapelle.testing.engine import AUTHOR, Engine

E = TypeVar("E")
Json = dict[str, Any]
FLOW = "flow"


def trigger(definitions: Json | None = None, /, *, options: Json | None = None, **names: Any) -> Json:
    """A trigger on signals, by name."""
    return {"definitions": {**(definitions or {}), **names}, **(options or {})}


def matches(**values: Any) -> Json:
    """What a trigger wants of one name: `n=(">", 1)`, or `n=1` for an equal value."""
    pairs = {name: value if isinstance(value, tuple) else ("=", value) for name, value in values.items()}
    return {"match_params": {name: {"operator": how, "value": value} for name, (how, value) in pairs.items()}}


def joins(*keys: str, **more: Any) -> Json:
    return {"join_keys": list(keys), **more}


def push(engine: Engine, *triggers: Json, workflow_id: str = FLOW, **more: Any) -> None:
    """Push a version with these triggers."""
    before = len(engine.refusals())
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": 100},
            "workflow": {
                "id": workflow_id,
                "signal_triggers": list(triggers),
                "steps": [{"step": {"id": "only", "type": "NoOp"}}],
                **more,
            },
        }
    )
    assert engine.refusals()[before:] == []


def armed(*triggers: Json, partitions: int = 1, **more: Any) -> Engine:
    """An engine with a workflow of these triggers."""
    engine = Engine(partitions=partitions)
    push(engine, *triggers, **more)
    return engine


def say(engine: Engine, name: str, signal_id: str | None = None, /, *, at_ms: int | None = None, **params: Any) -> None:
    """Announce a signal; without an id it is one of its own."""
    text = json.dumps(params)
    said = c.AnnounceSignal(name, signal_id or engine.request_id(), text, happened_at_ms=at_ms)
    engine.send(SIGNAL_INTERNAL, name, said)


def starts(engine: Engine, workflow_id: str = FLOW) -> list[dict[str, int]]:
    """The instances that were started, each by the numbers of its signals."""
    created = (one for one in engine.events(WORKFLOW_EVENTS, workflow_id) if isinstance(one, c.InstanceCreated))
    return [json.loads(one.initiator).get("signal_id_map", {}) for one in created]


def told(engine: Engine, contract: type[E]) -> list[E]:
    """All events of a type."""
    streams = (SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS, RUN_EVENTS)
    return [one for stream in streams for one in engine.events(stream) if isinstance(one, contract)]


def command(engine: Engine, value: Any, workflow_id: str = FLOW) -> None:
    """A command to a workflow."""
    engine.send(WORKFLOW_COMMANDS, workflow_id, value)


def activate(engine: Engine, version: str = "latest") -> None:
    command(engine, c.ActivateVersion(engine.request_id(), AUTHOR, version))


def deactivate(engine: Engine) -> None:
    command(engine, c.DeactivateWorkflow(engine.request_id(), AUTHOR))


def disable(engine: Engine, *, is_disabled: bool = True) -> None:
    changes = json.dumps({"signal_trigger_disabled": is_disabled})
    command(engine, c.ChangeProperties(engine.request_id(), AUTHOR, changes))
