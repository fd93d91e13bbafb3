"""Composite steps in few words, and the instances below a run: what the tests of composite steps begin with.

run = started(foreach("loop", step("work"), i=[1, 2]))
succeed(child(run, "loop", 2), "work")
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kapelle.processors.params.stored import typed
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.runs.tables import ChildRow, FanRow
from kapelle.processors.wiring import RUN_COMMANDS, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, RestartPolicy, StepStatus
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from tests.unit.runs.flows import INCOMPLETE, Json, param

ARRAYS = {str: "STRING_ARRAY", int: "LONG_ARRAY", float: "DOUBLE_ARRAY", bool: "BOOLEAN_ARRAY"}
FIELDS = frozenset({"failure_mode", "timeout", "concurrency", "strict_ordering", "sync", "explicit_params", "tags"})


def foreach(step_id: str, *steps: Json, to: Sequence[str] | Mapping[str, str] = (), **more: Any) -> Json:
    """A foreach step. Lists are what it loops over; fields of the step are given by name; all else is a parameter."""
    arrays = {name: _array(value) for name, value in more.items() if isinstance(value, list)}
    given = {name: value for name, value in more.items() if not isinstance(value, list)}
    loop_params = given.pop("loop_params", {"type": "MAP", "value": arrays})
    return _composite("foreach", step_id, to, given, steps=list(steps), loop_params=loop_params)


def loop_while(step_id: str, condition: str, *steps: Json, to: Sequence[str] = (), **more: Any) -> Json:
    """A while step. `first` are the values of its first round."""
    first = {name: param(value) for name, value in more.pop("first", {}).items()}
    loop_params = more.pop("loop_params", {"type": "MAP", "value": first})
    return _composite("while", step_id, to, more, condition=condition, steps=list(steps), loop_params=loop_params)


def call(step_id: str, workflow_id: str, *, to: Sequence[str] = (), **more: Any) -> Json:
    """A subworkflow step."""
    return _composite("subworkflow", step_id, to, {"subworkflow_id": workflow_id, **more})


def _composite(kind: str, step_id: str, to: Sequence[str] | Mapping[str, str], given: Json, **more: Any) -> Json:
    successors = dict(to) if isinstance(to, Mapping) else dict.fromkeys(to, "true")
    fields = {name: value for name, value in given.items() if name in FIELDS}
    params = {name: param(value) for name, value in given.items() if name not in FIELDS}
    if "loop_params" in more:
        params["loop_params"] = more.pop("loop_params")
    return {kind: {"id": step_id, "transition": {"successors": successors}, "params": params, **fields, **more}}


def _array(value: list[Any]) -> Json:
    return {"type": ARRAYS[type(value[0])] if value else "LONG_ARRAY", "value": value}


def push(engine: Engine, workflow_id: str, *steps: Json, strategy: str | int = "PARALLEL", **workflow: Any) -> Engine:
    """One more workflow that the engine knows."""
    given = {name: param(value) for name, value in workflow.pop("params", {}).items()}
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": strategy},
            "workflow": {"id": workflow_id, "steps": list(steps), "params": given, **workflow},
        }
    )
    return engine


# What is below a run ------------------------------------------------------------------------------------------


class Child(RunHandle):
    """An instance below another one. An iteration or a round is known to `runs` alone."""

    @property
    def status(self) -> InstanceStatus:
        """The state of its latest run."""
        assert self.row is not None, f"Expected {self.key} to have run, but it has not"
        return self.row.status

    def stop(self, action: Action | str = Action.STOP, reason: str = "") -> None:
        """STOP or KILL an iteration or a round."""
        request = c.TerminateInstance(self.engine.request_id(), AUTHOR, self.instance_id, Action(action), reason)
        self.engine.send(RUN_COMMANDS, self.key, request)


def child(run: RunHandle, step_id: str, number: int = 1) -> Child:
    """A child of a step of a run."""
    kind = fan(run, step_id).kind
    if kind is ChildKind.SUBWORKFLOW:
        workflow_id, instance_id = ids_of(row(run, step_id, number).child)
        return Child(run.engine, workflow_id, instance_id)
    return Child(run.engine, inline_id(kind, run.key, step_id), number)


def children(run: RunHandle, step_id: str) -> list[Child]:
    """The children of a step, in order."""
    rows = run.engine.state("runs", run.key).children.prefix((run.key, step_id))
    return [child(run, step_id, number) for (_, _, number), _ in rows]


def statuses(run: RunHandle, step_id: str) -> list[InstanceStatus]:
    """The states of the children of a step, in order."""
    return [one.status for one in children(run, step_id)]


def run_ids(run: RunHandle, step_id: str) -> list[int]:
    """The numbers of the latest runs of the children of a step, in order."""
    return [one.row.run_id for one in children(run, step_id) if one.row is not None]


def runs_of(one: RunHandle) -> int:
    """How often an instance has been run."""
    return sum(isinstance(event, c.RunStarted) for event in one.events())


def fan(run: RunHandle, step_id: str) -> FanRow:
    """The counts of the children of a step."""
    found: FanRow | None = run.engine.state("runs", run.key).fans.get((run.key, step_id))
    assert found is not None, f"Expected step {step_id!r} of {run.key} to have children, but it has none"
    return found


def row(run: RunHandle, step_id: str, number: int = 1) -> ChildRow:
    """What a parent knows of a child."""
    found: ChildRow | None = run.engine.state("runs", run.key).children.get((run.key, step_id, number))
    assert found is not None, f"Expected child {number} of step {step_id!r} of {run.key}, but there is none"
    return found


def has_children(run: RunHandle, step_id: str) -> bool:
    """Whether a step has ever had children."""
    return run.engine.state("runs", run.key).fans.get((run.key, step_id)) is not None


def values(run: RunHandle, step_id: str, inner: str, name: str) -> list[Any]:
    """A parameter of a step that is complete in every child."""
    return [typed(one.params(inner)[name]) for one in children(run, step_id)]


def restart(run: RunHandle, policy: RestartPolicy = INCOMPLETE, **more: Any) -> str:
    """Send any restart. Returns the id of the request."""
    request_id = run.engine.request_id()
    texts: dict[str, Any] = {
        name: json.dumps(value) if isinstance(value, dict) else value for name, value in more.items()
    }
    run.engine.send(RUN_COMMANDS, run.key, c.RestartRun(request_id, AUTHOR, policy, **texts))
    return request_id


# Laws -----------------------------------------------------------------------------------------------------------------

ENDED = frozenset({InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.STOPPED, InstanceStatus.TIMED_OUT})


def orphans(engine: Engine) -> list[str]:
    """Instances that run although the step that waits for them does not."""
    tables = [shard.reader for (name, _), shard in engine.runtime.member.shards.items() if name == "runs"]
    rows = {key: row for table in tables for (key,), row in table.runs.prefix(())}
    steps = {at: row for table in tables for at, row in table.steps.prefix(())}
    found = []
    for key, one in rows.items():
        parent = one.parent
        if one.status in ENDED or parent is None or not parent.is_sync:
            continue
        above, step_row = rows[parent.key], steps.get((parent.key, parent.step_id))
        is_awaited = step_row is not None and step_row.status is StepStatus.RUNNING
        if above.status in ENDED or above.run_id != parent.run_id or not is_awaited:
            found.append(key)
    return found


def settle(engine: Engine) -> None:
    """Let messages arrive one after the other, and look at the law after each: nobody ends before its children."""
    for _ in range(10_000):
        if not engine.runtime.step():
            return
        assert orphans(engine) == []
    raise AssertionError("Expected the engine to have nothing left to do, but it goes on")


def slow() -> Engine:
    """An engine in which every message takes its topic, so that others may come in between."""
    return Engine(same_cycle=False)
