"""What is asked of the engine: trees of instances, and stops and restarts of any part of them.

tree ─▶ outer: five iterations ─▶ inner: five iterations ─▶ leaf ─▶ call: one instance of `twig`
     └▶ rounds: a while of three                                 └▶ sprout: `twig`, which is not waited for
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.runs.composites.identity import child_key
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, ids_of, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, RestartPolicy
from tests.proof.workload import Published

AUTHOR: Final = "proof"
SIDE: Final = 5  # iterations of each loop
ROUNDS: Final = 3
TWIG: Final = "twig"
PARALLEL: Final = "PARALLEL"
WHOLE: Final = -1  # nothing is broken
WINDOWS: Final = (None, 1, 3)
BROKEN_SHARE: Final = 0.4
REPEATED_SHARE: Final = 0.3

Json = dict[str, Any]


class Shape(msgspec.Struct, frozen=True):
    """What differs between trees."""

    tree: str
    window: int | None
    is_strict: bool
    failure_mode: str
    broken: int  # the leaf whose parameter has no value, until a restart mends it
    twig_sleeps_s: int = 0

    @property
    def root(self) -> str:
        return run_key(self.tree, 1)

    def outer(self, number: int) -> str:
        return child_key(ChildKind.FOREACH, self.root, "outer", number)

    def inner(self, number: int, inner_number: int) -> str:
        return child_key(ChildKind.FOREACH, self.outer(number), "inner", inner_number)

    def round(self, number: int) -> str:
        return child_key(ChildKind.WHILE, self.root, "rounds", number)


def shapes(chance: random.Random, trees: int, *, twig_sleeps_s: int = 0) -> list[Shape]:
    """This number of trees, each a workflow of its own."""
    return [
        Shape(
            f"tree-{number}",
            chance.choice(WINDOWS),
            chance.random() < 0.3,
            chance.choice(("FAIL_AFTER_RUNNING", "FAIL_AFTER_RUNNING", "FAIL_IMMEDIATELY")),
            chance.randrange(SIDE * SIDE) if chance.random() < BROKEN_SHARE else WHOLE,
            twig_sleeps_s,
        )
        for number in range(1, trees + 1)
    ]


def beginning(trees: list[Shape], chance: random.Random) -> Iterator[Published]:
    """The definitions, and a start of each tree."""
    strategy = PARALLEL if trees[0].twig_sleeps_s else chance.choice((PARALLEL, "SEQUENTIAL"))
    yield _push(TWIG, [_twig_step(trees[0].twig_sleeps_s)], {"at": _long(0)}, strategy)
    for shape in trees:
        yield _push(shape.tree, _steps(shape), {"broken": _long(WHOLE)}, PARALLEL)
        given = json.dumps({"broken": _long(shape.broken)})
        start = c.StartInstances(AUTHOR, (c.Start(f"start-{shape.tree}", run_params=given),))
        yield from _repeated((WORKFLOW_COMMANDS.name, shape.tree, start), chance)


def disturbances(trees: list[Shape], chance: random.Random, count: int) -> Iterator[Published]:
    """Stops, restarts and actions, of instances and steps at every level. Some of them are published twice."""
    for number in range(count):
        shape = chance.choice(trees)
        yield from _repeated(_disturbance(shape, f"request-{number}", chance), chance)


def mending(trees: list[Shape], name: str) -> Iterator[Published]:
    """Restart all trees where they were not complete. Nothing is broken any more."""
    whole = json.dumps({"broken": _long(WHOLE)})
    for shape in trees:
        command = c.RestartRun(
            request_id=f"{name}-{shape.tree}",
            author=AUTHOR,
            policy=RestartPolicy.RESTART_FROM_INCOMPLETE,
            run_params=whole,
        )
        yield RUN_COMMANDS.name, shape.root, command


def _disturbance(shape: Shape, request_id: str, chance: random.Random) -> Published:
    key, steps = _somewhere(shape, chance)
    lot = chance.random()
    if lot < 0.3:
        return _stop(key, request_id, chance)
    if lot < 0.7:
        restart = c.RestartRun(request_id=request_id, author=AUTHOR, policy=RestartPolicy.RESTART_FROM_INCOMPLETE)
        return RUN_COMMANDS.name, key, restart
    action = chance.choice((Action.STOP, Action.KILL))
    command = c.ActOnStep(request_id, AUTHOR, chance.choice(steps), action, "for the proof")
    return RUN_COMMANDS.name, key, command


def _somewhere(shape: Shape, chance: random.Random) -> tuple[str, tuple[str, ...]]:
    """An instance of the tree, with its steps."""
    number, inner_number = chance.randint(1, SIDE), chance.randint(1, SIDE)
    return chance.choice(
        (
            (shape.root, ("outer", "rounds", "last")),
            (shape.outer(number), ("head", "inner")),
            (shape.inner(number, inner_number), ("leaf", "call", "sprout")),
            (shape.round(chance.randint(1, ROUNDS)), ("turn",)),
            (run_key(TWIG, chance.randint(1, SIDE * SIDE)), ("bud",)),
        )
    )


def _stop(key: str, request_id: str, chance: random.Random) -> Published:
    """Iterations are stopped at `runs`, what has a queue at `workflows`."""
    workflow_id, instance_id = ids_of(key)
    action = chance.choice((Action.STOP, Action.KILL))
    stop = c.TerminateInstance(request_id, AUTHOR, instance_id, action, "for the proof")
    if workflow_id == TWIG or workflow_id.startswith("tree"):
        return WORKFLOW_COMMANDS.name, workflow_id, stop
    return RUN_COMMANDS.name, key, stop


def _repeated(one: Published, chance: random.Random) -> list[Published]:
    return [one] * (2 if chance.random() < REPEATED_SHARE else 1)


# Definitions ----------------------------------------------------------------------------------------------------------


def _push(workflow_id: str, steps: list[Json], params: Json, strategy: str) -> Published:
    text = json.dumps(
        {
            "properties": {"owner": AUTHOR, "run_strategy": strategy},
            "workflow": {"id": workflow_id, "params": params, "steps": steps},
        }
    )
    return WORKFLOW_COMMANDS.name, workflow_id, c.PushVersion(f"push-{workflow_id}", AUTHOR, text)


def _steps(shape: Shape) -> list[Json]:
    leaf = {"v": {"type": "LONG", "expression": f"1000 / (i * {SIDE} + j - broken)"}}
    called = {"subworkflow_id": {"type": "STRING", "value": TWIG}, "at": {"type": "LONG", "expression": "v"}}
    of_leaf = {"at": {"type": "LONG", "expression": "params.getFromStep('leaf', 'v')"}}
    call = {"id": "call", "params": called | of_leaf, "transition": _to("sprout")}
    sprout = {"id": "sprout", "sync": False, "params": called | of_leaf}
    inner = _loop("inner", "j", shape, [_noop("leaf", "call", leaf), {"subworkflow": call}, {"subworkflow": sprout}])
    outer = _loop("outer", "i", shape, [_noop("head", "inner"), inner], "last")
    turn = {"n": {"type": "LONG", "expression": "n + 1"}}
    rounds = {
        "id": "rounds",
        "condition": f"n < {ROUNDS}",
        "params": {"loop_params": {"type": "MAP", "value": {"n": _long(0)}}},
        "steps": [_noop("turn", params=turn)],
        "transition": _to("last"),
    }
    return [outer, {"while": rounds}, _noop("last")]


def _loop(step_id: str, name: str, shape: Shape, steps: list[Json], *to: str) -> Json:
    values = {name: {"type": "LONG_ARRAY", "value": list(range(SIDE))}}
    loop: Json = {
        "id": step_id,
        "params": {"loop_params": {"type": "MAP", "value": values}},
        "steps": steps,
        "transition": _to(*to),
        "failure_mode": shape.failure_mode,
        "strict_ordering": shape.is_strict,
    }
    return {"foreach": loop if shape.window is None else {**loop, "concurrency": shape.window}}


def _twig_step(sleeps_s: int) -> Json:
    if not sleeps_s:
        return _noop("bud")
    return {"step": {"id": "bud", "type": "Sleep", "params": {"sleep_seconds": _long(sleeps_s)}}}


def _noop(step_id: str, to: str | None = None, params: Json | None = None) -> Json:
    return {"step": {"id": step_id, "type": "NoOp", "transition": _to(to), "params": params or {}}}


def _to(*steps: str | None) -> Json:
    return {"successors": {step: "true" for step in steps if step is not None}}


def _long(value: int) -> Json:
    return {"type": "LONG", "value": value}
