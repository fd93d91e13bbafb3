"""What is asked of the engine: trees of instances, and what people, time and run strategies do to any part of them.

tree ─▶ outer: `side` iterations ─▶ inner: `side` iterations ─▶ leaf ─▶ call: one instance of the tree's twig
     └▶ rounds: a while of three                                     └▶ sprout: the same, which is not waited for

Trees and twigs have any run strategy. Before trees are mended they are *eased*: strategies that end or hold up
what others have started would never let all parts of a tree succeed.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import Rule
from kapelle.processors.runs.composites.identity import child_key, is_inline
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, ids_of, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, RestartPolicy
from tests.proof.workload import Published

AUTHOR: Final = "proof"
SIDES: Final = (5,)  # iterations of each loop
ROUNDS: Final = 3
WHOLE: Final = -1  # nothing is broken
WINDOWS: Final = (None, 1, 3)
BROKEN_SHARE: Final = 0.4
REPEATED_SHARE: Final = 0.3
HASTY_SHARE: Final = 0.5
PATIENT: Final = "1 hour"
HASTY: Final = "1 second"
HASTY_STEPS: Final = ("outer", "inner", "call", "rounds")
TREE_RULES: Final = (Rule.PARALLEL, Rule.SEQUENTIAL, Rule.STRICT_SEQUENTIAL, Rule.LAST_ONLY, Rule.FIRST_ONLY)
TWIG_RULES: Final = (Rule.PARALLEL, Rule.PARALLEL, Rule.PARALLEL, *TREE_RULES[1:], Rule.SERIAL_LATEST_ONLY)
# One after the other they would sleep for longer than anybody waits.
RULES_THAT_SLEEP: Final = (Rule.PARALLEL, Rule.LAST_ONLY, Rule.FIRST_ONLY)
POLICIES: Final = (
    *[RestartPolicy.RESTART_FROM_INCOMPLETE] * 3,
    *[RestartPolicy.RESTART_FROM_SPECIFIC] * 2,
    RestartPolicy.RESTART_FROM_BEGINNING,
)
ACTIONS: Final = (Action.STOP, Action.KILL, Action.SKIP, Action.SKIP)
UNSKIPPED: Final = "leaf"  # what comes after it needs its value

Json = dict[str, Any]


class Shape(msgspec.Struct, frozen=True):
    """What differs between trees."""

    tree: str
    side: int  # iterations of each loop
    window: int | None
    is_strict: bool
    failure_mode: str
    broken: int  # the leaf whose parameter has no value, until a restart mends it
    rule: Rule
    twig_rule: Rule
    hasty: str  # the step that has little time, until a restart gives it more; empty for none
    twig_sleeps_s: int = 0

    @property
    def root(self) -> str:
        return run_key(self.tree, 1)

    @property
    def twig(self) -> str:
        return f"twig-of-{self.tree}"

    @property
    def rules(self) -> dict[str, Rule]:
        """The run strategies of its workflows, by id."""
        return {self.tree: self.rule, self.twig: self.twig_rule}

    def outer(self, number: int) -> str:
        return child_key(ChildKind.FOREACH, self.root, "outer", number)

    def inner(self, number: int, inner_number: int) -> str:
        return child_key(ChildKind.FOREACH, self.outer(number), "inner", inner_number)

    def round(self, number: int) -> str:
        return child_key(ChildKind.WHILE, self.root, "rounds", number)


def shapes(chance: random.Random, trees: int, *, twig_sleeps_s: int = 0, sides: tuple[int, ...] = SIDES) -> list[Shape]:
    """This number of trees, each a workflow of its own."""
    return [_shape(f"tree-{number}", chance.choice(sides), chance, twig_sleeps_s) for number in range(1, trees + 1)]


def _shape(tree: str, side: int, chance: random.Random, twig_sleeps_s: int) -> Shape:
    twig_rule = chance.choice(TWIG_RULES)
    return Shape(
        tree,
        side,
        chance.choice(WINDOWS),
        chance.random() < 0.3,
        chance.choice(("FAIL_AFTER_RUNNING", "FAIL_AFTER_RUNNING", "FAIL_IMMEDIATELY")),
        chance.randrange(side * side) if chance.random() < BROKEN_SHARE else WHOLE,
        chance.choice(TREE_RULES),
        twig_rule,
        chance.choice(HASTY_STEPS) if chance.random() < HASTY_SHARE else "",
        twig_sleeps_s if twig_rule in RULES_THAT_SLEEP else 0,
    )


def definitions(trees: list[Shape]) -> Iterator[Published]:
    """The workflows of all trees."""
    for shape in trees:
        yield _push(shape.twig, [_twig_step(shape.twig_sleeps_s)], {"at": _long(0)}, shape.twig_rule)
        yield _push(shape.tree, _steps(shape), _given(WHOLE, PATIENT), shape.rule)


def starting(shape: Shape, chance: random.Random) -> list[Published]:
    """The start of a tree."""
    return _repeated(_start(shape, f"start-{shape.tree}", chance), chance)


def disturbance(trees: list[Shape], number: int, chance: random.Random) -> list[Published]:
    """What is done to any part of any tree. Some of it is published twice."""
    return _repeated(_disturbance(chance.choice(trees), f"request-{number}", chance), chance)


def easing(trees: list[Shape], name: str) -> Iterator[Published]:
    """Let everything that is queued run, and nothing be ended for others any more."""
    changes = json.dumps({"run_strategy": Rule.PARALLEL})
    for shape in trees:
        for workflow_id in shape.rules:
            yield WORKFLOW_COMMANDS.name, workflow_id, c.ChangeProperties(f"{name}-{workflow_id}", AUTHOR, changes)


def mending(trees: list[Shape], name: str) -> Iterator[Published]:
    """Restart all trees where they were not complete. Nothing is broken any more, and there is time enough."""
    whole = json.dumps(_given(WHOLE, PATIENT))
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
    if lot < 0.25:
        return _stop(key, request_id, chance)
    if lot < 0.65:
        return _restart(key, steps, request_id, chance)
    if lot < 0.95:
        step_id, action = chance.choice(steps), chance.choice(ACTIONS)
        action = Action.STOP if step_id == UNSKIPPED else action
        return RUN_COMMANDS.name, key, c.ActOnStep(request_id, AUTHOR, step_id, action, "for the proof")
    if lot < 0.98:
        workflow_id = chance.choice(list(shape.rules))
        return WORKFLOW_COMMANDS.name, workflow_id, c.UnblockInstances(request_id, AUTHOR, "for the proof")
    return _start(shape, request_id, chance)  # a rival: the run strategy decides between the two


def _start(shape: Shape, request_id: str, chance: random.Random) -> Published:
    given = json.dumps(_given(shape.broken, HASTY if shape.hasty else PATIENT))
    return WORKFLOW_COMMANDS.name, shape.tree, c.StartInstances(AUTHOR, (c.Start(request_id, run_params=given),))


def _restart(key: str, steps: tuple[str, ...], request_id: str, chance: random.Random) -> Published:
    policy = chance.choice(POLICIES)
    step_id = chance.choice(steps) if policy is RestartPolicy.RESTART_FROM_SPECIFIC else None
    return RUN_COMMANDS.name, key, c.RestartRun(request_id, AUTHOR, policy, step_id)


def _somewhere(shape: Shape, chance: random.Random) -> tuple[str, tuple[str, ...]]:
    """An instance of the tree, with its steps."""
    number, inner_number = chance.randint(1, shape.side), chance.randint(1, shape.side)
    return chance.choice(
        (
            (shape.root, ("outer", "rounds", "last")),
            (shape.outer(number), ("head", "inner")),
            (shape.inner(number, inner_number), ("leaf", "call", "sprout")),
            (shape.round(chance.randint(1, ROUNDS)), ("turn",)),
            (run_key(shape.twig, chance.randint(1, shape.side * shape.side)), ("bud",)),
        )
    )


def _stop(key: str, request_id: str, chance: random.Random) -> Published:
    """Iterations are stopped at `runs`, what has a queue at `workflows`."""
    workflow_id, instance_id = ids_of(key)
    action = chance.choice((Action.STOP, Action.KILL))
    stop = c.TerminateInstance(request_id, AUTHOR, instance_id, action, "for the proof")
    if is_inline(workflow_id):
        return RUN_COMMANDS.name, key, stop
    return WORKFLOW_COMMANDS.name, workflow_id, stop


def _repeated(one: Published, chance: random.Random) -> list[Published]:
    return [one] * (2 if chance.random() < REPEATED_SHARE else 1)


# Definitions ----------------------------------------------------------------------------------------------------------


def _push(workflow_id: str, steps: list[Json], params: Json, rule: Rule) -> Published:
    text = json.dumps(
        {
            "properties": {"owner": AUTHOR, "run_strategy": rule},
            "workflow": {"id": workflow_id, "params": params, "steps": steps},
        }
    )
    return WORKFLOW_COMMANDS.name, workflow_id, c.PushVersion(f"push-{workflow_id}", AUTHOR, text)


def _given(broken: int, patience: str) -> Json:
    return {"broken": _long(broken), "patience": {"type": "STRING", "value": patience}}


def _steps(shape: Shape) -> list[Json]:
    leaf = {"v": {"type": "LONG", "expression": f"1000 / (i * {shape.side} + j - broken)"}}
    called = {"subworkflow_id": {"type": "STRING", "value": shape.twig}, "at": {"type": "LONG", "expression": "v"}}
    of_leaf = {"at": {"type": "LONG", "expression": "params.getFromStep('leaf', 'v')"}}
    call = {"id": "call", "params": called | of_leaf, "transition": _to("sprout")} | _timeout("call", shape)
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
        **_timeout("rounds", shape),
    }
    return [outer, {"while": rounds}, _noop("last")]


def _loop(step_id: str, name: str, shape: Shape, steps: list[Json], *to: str) -> Json:
    values = {name: {"type": "LONG_ARRAY", "value": list(range(shape.side))}}
    loop: Json = {
        "id": step_id,
        "params": {"loop_params": {"type": "MAP", "value": values}},
        "steps": steps,
        "transition": _to(*to),
        "failure_mode": shape.failure_mode,
        "strict_ordering": shape.is_strict,
        **_timeout(step_id, shape),
    }
    return {"foreach": loop if shape.window is None else {**loop, "concurrency": shape.window}}


def _twig_step(sleeps_s: int) -> Json:
    if not sleeps_s:
        return _noop("bud")
    return {"step": {"id": "bud", "type": "Sleep", "params": {"sleep_seconds": _long(sleeps_s)}}}


def _noop(step_id: str, to: str | None = None, params: Json | None = None) -> Json:
    return {"step": {"id": step_id, "type": "NoOp", "transition": _to(to), "params": params or {}}}


def _timeout(step_id: str, shape: Shape) -> Json:
    return {"timeout": "${patience}"} if step_id == shape.hasty else {}


def _to(*steps: str | None) -> Json:
    return {"successors": {step: "true" for step in steps if step is not None}}


def _long(value: int) -> Json:
    return {"type": "LONG", "value": value}
