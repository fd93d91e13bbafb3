"""Histories of composite steps to fold: trees that were used at random, and what the engine knows of them."""

import random
from collections import Counter
from typing import Any

from kapelle.processors.runs.composites.identity import child_key
from kapelle.processors.runs.tables import StepRow
from kapelle.processors.wiring import RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, Report, RestartPolicy
from kapelle.testing.engine import Engine, RunHandle, TaskHandle
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


def sized(kind: str, by: str, *steps: dict[str, Any], to: str = "", **more: Any) -> dict[str, Any]:
    """A loop of the size that an output of an earlier step says, so a restart may change it."""
    step_id = f"by_{by.replace('__', '_')}"
    if kind == "while":
        made = rounds(step_id, 0, *steps, to=to)
        made["while"]["condition"] = f"{step_id}_n < most"
        made["while"]["params"]["most"] = {"type": "LONG", "expression": by}
        return made
    made = foreach(step_id, [], *steps, to=to, **more)
    values = {"type": "LONG_ARRAY", "expression": f"long[] all = new long[{by}]; return all;"}
    made["foreach"]["params"]["loop_params"]["value"] = {f"{step_id}_i": values}
    return made


def sizing(step_id: str, *successors: str, **given: int | str) -> dict[str, Any]:
    """A step whose worker says how large the loops after it are."""
    made = step(step_id, TYPE, *successors)
    kinds = {int: "LONG", str: "STRING"}
    made["step"]["params"] = {
        name: {"type": kinds[type(value)], "value": value, "mode": "MUTABLE"} for name, value in given.items()
    }
    return made


def changing_tree(engine: Engine) -> RunHandle:
    """A workflow whose loops change their sizes with every run, whose subworkflow changes, and that leads back."""
    engine.push(tree("leafy", step("one", TYPE, "two"), step("two")))
    inner = sized("foreach", "size__wide", step("work", TYPE), concurrency=2)
    engine.push(tree("deep", sizing("size", "by_size_wide", wide=2), inner))
    review = step("review", TYPE, "by_main_wide")
    review["step"]["params"] = {"go": {"type": "BOOLEAN", "value": False, "mode": "MUTABLE"}}
    review["step"]["transition"]["successors"]["by_main_wide"] = "go"
    chosen = subworkflow("chosen", "leafy")
    chosen["subworkflow"]["params"]["subworkflow_id"] = {"type": "STRING", "expression": "main__child"}
    main = sizing("main", "by_main_wide", "by_main_long", "chosen", wide=3, long=2, child="leafy")
    nested = sized("foreach", "part__wide", step("job", TYPE))
    engine.push(
        tree(
            "top",
            main,
            sized("foreach", "main__wide", sizing("part", "by_part_wide", wide=2), nested, to="review", concurrency=2),
            review,
            sized("while", "main__long", step("turn", TYPE), subworkflow("below", "deep")),
            chosen,
        )
    )
    return engine.start("top")


def used_tree(seed: int, operations: int = 40, partitions: int = 3) -> Engine:
    """An engine with trees to which random things were done."""
    chance, engine = random.Random(seed), Engine(partitions=partitions)
    runs = [chance.choice([whole_tree, changing_tree])(engine)]
    for _ in range(operations):
        if chance.random() < 0.1:
            runs.append(engine.start(chance.choice(["top", "leafy"])))
        elif chance.random() < 0.4:
            _act(chance, chance.choice([*runs, *everyone(engine)]))
        else:
            for task in chance.sample(engine.tasks(), min(3, len(engine.tasks()))):
                _work(chance, task)
        if chance.random() < 0.3:
            engine.advance(chance.randrange(120_000))
    return engine


def _work(chance: random.Random, task: TaskHandle) -> None:
    """A report of a worker, with the sizes of loops if the step is asked for them."""
    report = chance.choice([Report.STARTED, *[Report.SUCCEEDED] * 4, Report.FATAL_ERROR])
    outputs: dict[str, int | str | bool] = {
        "wide": chance.randrange(4),
        "long": chance.randrange(4),
        "child": chance.choice(["leafy", "deep"]),
        "go": chance.random() < 0.5,
    }
    given = {name: value for name, value in outputs.items() if name in task.params}
    if report is Report.SUCCEEDED and given:
        task.succeed("w", **given)
    else:
        task.say(report)


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


def counted(engine: Engine) -> dict[tuple[str, str], Counter[str]]:
    """The leaves below each composite step, counted by the tables of the engine: from each instance down."""
    runs = {run.key: run for run in everyone(engine)}
    found = {
        (run.key, step_id): sum((leaves_of(runs, child) for child in below), Counter[str]())
        for run in runs.values()
        for step_id, row in run.step_rows().items()
        if (below := present_children(runs, run, step_id, row)) is not None
    }
    return {at: counts for at, counts in found.items() if counts}


def leaves_of(runs: dict[str, RunHandle], run: RunHandle) -> Counter[str]:
    """The leaves of an instance: its steps, and in place of those with children the leaves of their children."""
    found: Counter[str] = Counter()
    for step_id, row in run.step_rows().items():
        below = present_children(runs, run, step_id, row)
        if below is None:
            found[row.status.value] += 1
        for child in below or ():
            found.update(leaves_of(runs, child))
    return found


def present_children(runs: dict[str, RunHandle], run: RunHandle, step_id: str, row: StepRow) -> list[RunHandle] | None:
    """The children that count in place of a step; None if it counts itself.

    Those of other attempts do not, nor iterations that the step does not keep, nor rounds after the present one.
    """
    tables = run.engine.state("runs", run.key)
    fan = tables.fans.get((run.key, step_id))
    if (
        fan is None
        or not fan.is_sync
        or (fan.run_id, fan.iteration, fan.attempt)
        != (
            row.run_id,
            row.iteration,
            row.attempt,
        )
    ):
        return None
    found: list[str] = []
    for (_, _, number), child in tables.children.prefix((run.key, step_id)):
        if fan.kind is ChildKind.SUBWORKFLOW:
            found += [child.child] if "/" in child.child else []
        elif fan.kind is ChildKind.WHILE:
            found += [child_key(fan.kind, run.key, step_id, number)] if number < fan.next else []
        elif child.fan_run >= fan.kept_since:
            found.append(child_key(fan.kind, run.key, step_id, number))
    if not found:
        return None
    return [runs[key] for key in found if key in runs]
