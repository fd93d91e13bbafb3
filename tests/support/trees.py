"""Workflows whose steps have children, in few words: what the tests of public events, traces and lineage begin with.

engine.push(tree(foreach("loop", 3), subworkflow("call", "below")))
engine.push(tree(task("work"), workflow_id="below"))
"""

from typing import Any, Final

Json = dict[str, Any]
ROOT: Final = "root"


def tree(*steps: Json, workflow_id: str = ROOT, **more: Any) -> Json:
    """A workflow of these steps, which do not wait for each other."""
    return {"properties": {"owner": "ann"}, "workflow": {"id": workflow_id, "steps": list(steps), **more}}


def done(step_id: str, **params: Json) -> Json:
    """A step that is done at once."""
    return {"step": {"id": step_id, "type": "NoOp", "params": params}}


def task(step_id: str) -> Json:
    """A step of a worker, which is not tried again."""
    return {"step": {"id": step_id, "type": "shell", "retry_policy": {"error_retry_limit": 0}}}


def foreach(step_id: str, count: int, *steps: Json, **more: Any) -> Json:
    """A step with `count` iterations."""
    values = {"i": {"type": "LONG_ARRAY", "value": list(range(1, count + 1))}}
    params = {"loop_params": {"type": "MAP", "value": values}}
    return {"foreach": {"id": step_id, "params": params, "steps": list(steps) or [done(f"{step_id}-inner")], **more}}


def rounds(step_id: str, count: int, **more: Any) -> Json:
    """A step with `count` rounds."""
    values = {"n": {"type": "LONG", "value": 0}}
    inner = done(f"{step_id}-inner", n={"type": "LONG", "expression": "n + 1"})
    params = {"loop_params": {"type": "MAP", "value": values}}
    return {"while": {"id": step_id, "condition": f"n < {count}", "params": params, "steps": [inner], **more}}


def subworkflow(step_id: str, workflow_id: str, **more: Any) -> Json:
    """A step that starts an instance of another workflow."""
    params = {"subworkflow_id": {"type": "STRING", "value": workflow_id}}
    return {"subworkflow": {"id": step_id, "params": params, **more}}
