"""What the view makes of composite steps and their children.

A child of a subworkflow step is made by `InstanceCreated`, as every instance is. Iterations and rounds have no queue:
their `RunStarted` says all that there is to know of them.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.initiators import initiator_of
from kapelle.processors.keys import ids_in
from kapelle.processors.parents import INLINE, read_parent
from kapelle.processors.wiring import ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus, StepStatus
from kapelle.views.leaves import bucket_of, launch_of
from kapelle.views.projection.at import At, as_json
from kapelle.views.projection.news import run_news
from kapelle.views.rows import Cell, Cells, Rows

CARRIED: Final = "carried"  # of what a round gives back
TEXTS_CACHED: Final = 1_024  # all children of a step have the same initiator

Planned = c.ChildrenPlanned | c.ChildrenLaunched | c.ChildStarted | c.ChildEnded | c.StepEnding


def is_inline(parent: c.Parent | None) -> bool:
    """Whether a child is an iteration or a round."""
    return parent is not None and parent.kind in INLINE


def placed(parent: c.Parent | None) -> Cells:
    """Where an instance is in its tree; nothing for one that is no child."""
    parent = read_parent(parent)
    if parent is None:
        return {}
    workflow_id, instance_id = ids_of(parent.key)
    home = (ids_in(parent.home) if is_inline(parent) else None) or (None, None)
    return {
        "parent_workflow": workflow_id,
        "parent_instance": instance_id,
        "parent_step": parent.step_id,
        "number": parent.number,
        "kind": parent.kind.value,
        "launch": launch_of(parent.run_id, parent.iteration, parent.attempt),
        "is_sync": int(parent.is_sync),
        "home_workflow": home[0],
        "home_instance": home[1],
        "root": parent.root,
        "depth": parent.depth,
    }


def child_started_to_run(rows: Rows, at: At, event: c.RunStarted) -> None:
    """A run of a child has begun: remember who waits for it. For iterations and rounds it is the first event."""
    parent = read_parent(event.parent)
    if parent is None:
        return
    if parent.is_sync:
        launch = launch_of(parent.run_id, parent.iteration, parent.attempt)
        bucket = bucket_of(parent.kind, parent.number, launch)
        rows.descend((at.workflow_id, event.instance_id), _ancestors(event.initiator), bucket)
    if is_inline(parent):
        _inline_started(rows, at, event, parent)


@lru_cache(TEXTS_CACHED)
def _ancestors(initiator: str) -> str:
    """The steps that wait for a child, from the top. Nothing above a step that does not wait counts."""
    hops: list[tuple[object, object, object]] = []
    for ancestor in initiator_of(initiator).ancestors:
        hops = (
            [*hops, (ancestor["workflow_id"], ancestor["instance_id"], ancestor["step_id"])]
            if ancestor.get("sync", True)
            else []
        )
    return as_json(hops)


def _inline_started(rows: Rows, at: At, event: c.RunStarted, parent: c.Parent) -> None:
    shared = [(layer.digest, layer.text) for layer in event.layers] + [(event.digest, event.definition)]
    for digest, text in shared:
        if text is not None:
            rows.put("shared", (digest,), {"text": text})
    cells: Cells = {
        "version": event.version,
        "request_id": event.request_id,
        "author": event.author,
        "initiator": event.initiator,
        "params": event.params,
        "run_params": event.run_params,
        "step_run_params": event.step_run_params,
        "correlation_id": event.correlation_id,
        "restart": event.restart,
        "created_at_ms": event.at_ms,
        "launch": launch_of(parent.run_id, parent.iteration, parent.attempt),
        "layers": as_json([layer.digest for layer in event.layers]),
        "digest": event.digest,
    }
    rows.put("runs", (at.workflow_id, event.instance_id, event.run_id), cells)
    rows.put("instances", (at.workflow_id, event.instance_id), placed(parent), {"created_at_ms": event.at_ms})


# The steps above ----------------------------------------------------------------------------------------------------


def _put(rows: Rows, at: At, event: Planned, **cells: Cell) -> None:
    key = (at.workflow_id, at.instance_id, event.run_id, event.step_id, event.iteration, event.attempt)
    rows.put("fans", key, cells)


def _leaf(rows: Rows, at: At, step_id: str, **cells: Cell) -> None:
    rows.leaf((at.workflow_id, at.instance_id or 0, step_id), cells)


def _children_planned(rows: Rows, at: At, event: c.ChildrenPlanned) -> None:
    planned = {"kind": event.kind.value, "total": event.total, "fan_run": event.fan_run}
    numbers = {"kept_since": event.kept_since, "first": event.next, "next": event.next}
    _put(rows, at, event, **planned, **numbers, is_sync=int(event.is_sync))
    plan = launch_of(event.run_id, event.iteration, event.attempt)
    is_fresh = event.kept_since == event.fan_run
    leaf: Cells = {
        "status": StepStatus.RUNNING.value,  # a step plans when it begins to run
        "run_id": event.run_id,
        "iteration": event.iteration,
        "attempt": event.attempt,
        "kind": event.kind.value,
        "is_sync": int(event.is_sync),
        "plan": plan,
        **({"since": plan} if is_fresh else {}),
    }
    if event.kind is ChildKind.WHILE:
        leaf["last"] = event.next - 1  # the rounds before it stay as they are
    if is_fresh and event.next == 1:
        leaf["has_children"] = 0
    rows.leaf((at.workflow_id, at.instance_id or 0, event.step_id), leaf)
    rows.news(run_news(at.workflow_id, at.instance_id))


def _children_launched(rows: Rows, at: At, event: c.ChildrenLaunched) -> None:
    cells: Cells = {"next": event.next}
    if event.values is not None:
        cells["last_values"] = event.values
    if event.numbers:
        cells["last_number"] = event.numbers[-1]
        cells["last_status"] = InstanceStatus.IN_PROGRESS.value
    if event.child:
        cells["child"] = event.child
    elif event.numbers:
        cells["has_children"] = 1
        _leaf(rows, at, event.step_id, has_children=1, last=event.numbers[-1])
    _put(rows, at, event, **cells)


def _child_started(rows: Rows, at: At, event: c.ChildStarted) -> None:
    cells: Cells = {"child": event.child, "child_run_id": event.child_run_id, "child_version": event.version}
    _put(rows, at, event, **cells, has_children=1)
    _leaf(rows, at, event.step_id, has_children=1)


def _child_ended(rows: Rows, at: At, event: c.ChildEnded) -> None:
    carried = _carried(event.values) if CARRIED in event.values else None
    _put(rows, at, event, last_number=event.number, last_status=event.status.value, carried=carried)
    rows.news(run_news(at.workflow_id, at.instance_id))


def _carried(values: str) -> str | None:
    """The loop values that a round hands on, as JSON."""
    carried = msgspec.json.decode(values, type=dict[str, msgspec.Raw]).get(CARRIED)
    return None if carried is None else bytes(carried).decode()


def _step_ending(rows: Rows, at: At, event: c.StepEnding) -> None:
    _put(rows, at, event, ending=event.status.value)


def _run_ending(_: Rows, __: At, ___: c.RunEnding) -> None:
    """The event changes nothing but the timeline."""


OF_CHILDREN: Final[Mapping[type[object], Callable[[Rows, At, Any], None]]] = {
    c.ChildrenPlanned: _children_planned,
    c.ChildrenLaunched: _children_launched,
    c.ChildStarted: _child_started,
    c.ChildEnded: _child_ended,
    c.StepEnding: _step_ending,
    c.RunEnding: _run_ending,
}
