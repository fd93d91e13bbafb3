"""Histories of composite steps to fold: trees that were used at random, and what the engine knows of them."""

import random
from collections import Counter
from typing import Any

from kapelle.processors.wiring import RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.views.histories import TYPE, step

Instance = tuple[str, int]


def foreach(step_id: str, values: list[int], *steps: dict[str, Any], to: str = "", **more: Any) -> dict[str, Any]:
    """A loop over numbers, which each iteration knows as the id of the loop with `_i` behind it."""
    loop_params = {"type": "MAP", "value": {f"{step_id}_i": {"type": "LONG_ARRAY", "value": values}}}
    return {"foreach": {"id": step_id, "params": {"loop_params": loop_params}, "steps": list(steps), **_to(to), **more}}


def rounds(step_id: str, count: int, *steps: dict[str, Any], to: str = "") -> dict[str, Any]:
    """A loop of so many rounds."""
    loop_params = {"type": "MAP", "value": {f"{step_id}_n": {"type": "LONG", "value": 0}}}
    counting = step(f"{step_id}_counts")
    counting["step"]["params"] = {f"{step_id}_n": {"type": "LONG", "expression": f"{step_id}_n + 1"}}
    return {
        "while": {
            "id": step_id,
            "condition": f"{step_id}_n < {count}",
            "params": {"loop_params": loop_params},
            "steps": [counting, *steps],
            **_to(to),
        }
    }


def subworkflow(step_id: str, workflow_id: str, *, to: str = "", **more: Any) -> dict[str, Any]:
    """A step that runs another workflow."""
    named = {"subworkflow_id": {"type": "STRING", "value": workflow_id}}
    return {"subworkflow": {"id": step_id, "params": named, **_to(to), **more}}


def _to(successor: str) -> dict[str, Any]:
    return {"transition": {"successors": {successor: "true"}}} if successor else {}


def tree(workflow_id: str, *steps: dict[str, Any], **params: int) -> dict[str, Any]:
    """A definition of a workflow."""
    given = {name: {"type": "LONG", "value": value} for name, value in params.items()}
    workflow = {"id": workflow_id, "params": given, "steps": list(steps)}
    return {"properties": {"owner": "ann", "run_strategy": "PARALLEL"}, "workflow": workflow}


def whole_tree(engine: Engine) -> RunHandle:
    """A workflow with all kinds of composite steps, started: workers have not done anything yet."""
    engine.push(tree("leafy", step("one", TYPE, "two"), step("two")))
    inner = foreach("inner", [1, 2], step("work", TYPE))
    engine.push(
        tree(
            "top",
            foreach("outer", [1, 2, 3], inner, step("quick"), to="again"),
            rounds("again", 2, step("turn", TYPE)),
            subworkflow("sub", "leafy"),
            subworkflow("apart", "leafy", sync=False),
            step("plain", TYPE),
            base=7,
        )
    )
    return engine.start("top")


def used_tree(seed: int, operations: int = 40, partitions: int = 3) -> Engine:
    """An engine with trees to which random things were done."""
    chance, engine = random.Random(seed), Engine(partitions=partitions)
    runs = [whole_tree(engine)]
    for _ in range(operations):
        if chance.random() < 0.1:
            runs.append(engine.start(chance.choice(["top", "leafy"])))
        elif chance.random() < 0.5:
            _act(chance, chance.choice(everyone(engine)))
        else:
            for task in chance.sample(engine.tasks(), min(3, len(engine.tasks()))):
                task.say(chance.choice([Report.STARTED, *[Report.SUCCEEDED] * 3, Report.FATAL_ERROR]))
        if chance.random() < 0.3:
            engine.advance(chance.randrange(120_000))
    return engine


def _act(chance: random.Random, run: RunHandle) -> None:
    """Something that a person may do to an instance, and that the engine may refuse."""
    step_id = chance.choice([*run.steps, "nothing"])
    match chance.randrange(5):
        case 0:
            run.stop(chance.choice([Action.STOP, Action.KILL]), "enough")
        case 1:
            run.act(step_id, chance.choice([Action.SKIP, Action.KILL, Action.STOP]))
        case 2:
            run.restart(RestartPolicy.RESTART_FROM_SPECIFIC, step_id=step_id)
        case 3:
            run.restart(RestartPolicy.RESTART_FROM_BEGINNING)
        case _:
            run.restart(RestartPolicy.RESTART_FROM_INCOMPLETE)


def everyone(engine: Engine) -> list[RunHandle]:
    """All instances that have run, whatever started them."""
    found: dict[Instance, RunHandle] = {}
    for event in engine.events(RUN_EVENTS):
        if isinstance(event, c.RunStarted):
            found[event.workflow_id, event.instance_id] = RunHandle(engine, event.workflow_id, event.instance_id)
    return list(found.values())


def leaves_of(run: RunHandle) -> Counter[str]:
    """The steps of an instance that count themselves, by the tables of the engine."""
    tables = run.engine.state("runs", run.key)
    found: Counter[str] = Counter()
    for step_id, row in run.step_rows().items():
        first = next((child for _, child in tables.children.prefix((run.key, step_id))), None)
        fan = tables.fans.get((run.key, step_id))
        has_children = first is not None and (fan.kind is not ChildKind.SUBWORKFLOW or "/" in first.child)
        if not has_children or step_id == "apart":
            found[row.status.value] += 1
    return found


def counted(engine: Engine) -> dict[tuple[str, str], Counter[str]]:
    """The leaves below each composite step, counted by the tables of the engine, one instance after the other."""
    runs = {run.key: run for run in everyone(engine)}
    found: dict[tuple[str, str], Counter[str]] = {}
    for run in runs.values():
        own, parent = leaves_of(run), run.row.parent if run.row else None
        while parent is not None and parent.is_sync:
            found.setdefault((parent.key, parent.step_id), Counter()).update(own)
            above = runs[parent.key].row
            parent = above.parent if above else None
    return {at: counts for at, counts in found.items() if counts}
