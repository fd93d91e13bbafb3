"""Histories with signals: workflows with triggers and outputs in few words, and what was announced."""

import json
from typing import Any

from kapelle.processors.wiring import SIGNALS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import Views
from kapelle.views.fold import BATCH_RECORDS

Json = dict[str, Any]


def waits(name: str, **match: Any) -> Json:
    """A dependency of a step."""
    params = {param: {"param": {"type": "LONG", "value": value}, "operator": "="} for param, value in match.items()}
    return {"name": name, "match_params": params}


def says(name: str, **params: int) -> Json:
    """A signal that a step announces."""
    return {"name": name, "params": {param: {"type": "LONG", "value": value} for param, value in params.items()}}


def push(engine: Engine, workflow_id: str, *triggers: Json, step: Json | None = None, **properties: Any) -> None:
    """Push a workflow of one step, with these triggers."""
    only = {"id": "only", "type": "NoOp", **(step or {})}
    workflow = {"id": workflow_id, "signal_triggers": list(triggers), "steps": [{"step": only}]}
    engine.push({"properties": {"owner": "ann", "run_strategy": "PARALLEL", **properties}, "workflow": workflow})


def on(definitions: Json, **more: Any) -> Json:
    """A trigger on signals by their names."""
    return {"definitions": definitions, **more}


def say(engine: Engine, name: str, signal_id: str, /, *, at_ms: int | None = None, **params: Any) -> None:
    """Announce a signal."""
    text, source = json.dumps(params), json.dumps({"request_id": f"{name}-{signal_id}", "user": "ann"})
    engine.send(SIGNALS, name, c.AnnounceSignal(name, signal_id, text, "{}", at_ms, source))


def view_of(engine: Engine, batch_records: int = BATCH_RECORDS) -> Views:
    """All of it, folded."""
    views = Views(EmbeddedJournal(engine.runtime), batch_records=batch_records)
    while views.folding.step():
        pass
    return views


def chain() -> Engine:
    """Three workflows joined by signals, with a diamond and a cycle.

    begin 1 ─▶ first/1 ─▶ left 1, right 1 ─▶ second/1 (joined) ─▶ done 1 ─▶ third/1 ─▶ begin 1, again
                            └────────────────────────────────────────────────┘ awaited by third/1
    """
    engine = Engine()
    push(engine, "first", on({"begin": {}}), step={"signal_outputs": [says("left", n=1), says("right", n=1)]})
    both = {"left": {"join_keys": ["n"]}, "right": {"join_keys": ["n"]}}
    push(engine, "second", on(both), step={"signal_outputs": [says("done", n=1)]})
    awaits = {"signal_dependencies": [waits("left", n=1)], "signal_outputs": [says("begin", n=1)]}
    push(engine, "third", on({"done": {}}), step=awaits)
    engine.send(SIGNALS, "begin", c.AnnounceSignal("begin", "", '{"n":1}'))
    return engine
