"""Tasks, workflows and workers to test with."""

from typing import Any

import msgspec

from kapelle.schemas.contracts import Criticality, Task
from kapelle.testing.engine import Engine, RunHandle


def task(number: int = 1, *, params: dict[str, Any] | None = None, **fields: Any) -> Task:
    """A task; what is given replaces what a plain one has."""
    plain: dict[str, Any] = {
        "token": f"token-{number}",
        "workflow_id": "etl",
        "instance_id": number,
        "run_id": 1,
        "step_id": "load",
        "attempt": 1,
        "iteration": 1,
        "type": "load",
        "sub_type": None,
        "params": msgspec.json.encode(params or {}).decode(),
        "idempotency_key": f"etl/{number}/1/load/1",
        "criticality": Criticality.MEDIUM,
        "lease_ms": 30_000,
        "deadline_at_ms": 4_000_000_000_000,
        "at_ms": 0,
    }
    return Task(**plain | fields)


def param(value: Any, kind: str = "") -> dict[str, Any]:
    """A parameter as definitions have it."""
    kinds = {str: "STRING", int: "LONG", float: "DOUBLE", bool: "BOOLEAN", dict: "STRING_MAP", list: "STRING_ARRAY"}
    return {"type": kind or kinds[type(value)], "value": value}


def step(step_id: str = "load", kind: str = "load", **params: Any) -> dict[str, Any]:
    """A step as definitions have it."""
    given = {
        name: value if isinstance(value, dict) and "type" in value else param(value) for name, value in params.items()
    }
    return {"step": {"id": step_id, "type": kind, "params": given}}


def workflow(*steps: dict[str, Any], workflow_id: str = "etl", **more: Any) -> dict[str, Any]:
    """A request to push a workflow."""
    return {
        "properties": {"owner": "ann", "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 200}},
        "workflow": {"id": workflow_id, "steps": list(steps), **more},
    }


def started(*steps: dict[str, Any], instances: int = 1) -> tuple[Engine, list[RunHandle]]:
    """An engine with instances of one workflow."""
    engine = Engine()
    engine.push(workflow(*steps))
    return engine, [engine.start("etl") for _ in range(instances)]
