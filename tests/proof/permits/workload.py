"""What is asked of the engine: workflows of tagged steps, and what people do to limits, breakpoints, runs and steps.

flow:   head-1 … head-h ─▶ each: `side` iterations of (body-1 ─▶ body-2) ─▶ tail-1 … tail-t ─▶ call: an instance of
                                                                                              the twig, in some flows
twig:   bud-1, bud-2

Each leaf step has one to three tags, some loops and workflows have one too. Leaf steps do nothing, sleep, or are tasks.
All run strategies are PARALLEL, so nothing but permits and breakpoints makes a step wait.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import Rule
from kapelle.processors.runs.composites.identity import child_key
from kapelle.processors.wiring import WORKFLOW_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, Criticality
from tests.proof.workload import Published

AUTHOR: Final = "proof"
LOOP: Final = "each"
CALL: Final = "call"
LEASE_S: Final = 3
LONG_LEASE_S: Final = 7_200  # of tasks whose worker may take its time
PATIENT: Final = "1 hour"
HASTY: Final = "1 second"
BACKOFF_S: Final = 1
LIMIT_MAX: Final = 10
NOOP, SLEEP, TASK = "NoOp", "Sleep", "Titus"
CRITICALITIES: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.MEDIUM, Criticality.LOW)

Json = dict[str, Any]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything there is."""

    flows: int
    instances: int = 2  # of each flow
    heads: int = 2
    side: int = 3  # iterations of the loop
    tails: int = 1
    tags: int = 20
    slow_share: float = 0.0  # of tasks, those that take as long as the worker wishes


class Leaf(msgspec.Struct, frozen=True):
    """A step that needs permits."""

    step_id: str
    type: str
    tags: tuple[str, ...]
    sleep_s: int = 0
    is_hasty: bool = False  # it has little time, until a restart gives it more
    is_slow: bool = False
    retries: int = 0


class Flow(msgspec.Struct, frozen=True):
    """A workflow."""

    flow: str
    heads: tuple[Leaf, ...]
    body: tuple[Leaf, ...]
    tails: tuple[Leaf, ...]
    side: int
    window: int | None
    criticality: Criticality
    tags: tuple[str, ...]  # of the workflow
    loop_tags: tuple[str, ...]
    step_concurrency: int | None
    instance_step_concurrency: int | None
    twig: str = ""

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (*self.heads, *self.body, *self.tails)

    @property
    def outer(self) -> tuple[str, ...]:
        """The steps of an instance, without those of iterations."""
        loops = (LOOP,) if self.body else ()
        return (*(leaf.step_id for leaf in (*self.heads, *self.tails)), *loops, *((CALL,) if self.twig else ()))

    @property
    def inner(self) -> tuple[str, ...]:
        """The steps of an iteration."""
        return tuple(leaf.step_id for leaf in self.body)

    @property
    def leaves_of_an_instance(self) -> int:
        return len(self.heads) + len(self.tails) + self.side * len(self.body)


class Work(msgspec.Struct, frozen=True):
    """All workflows. Those in `roots` are started by people, the others by their steps."""

    size: Size
    roots: tuple[Flow, ...]
    twigs: tuple[Flow, ...]

    @property
    def flows(self) -> dict[str, Flow]:
        """By id."""
        return {flow.flow: flow for flow in (*self.twigs, *self.roots)}

    @property
    def tags(self) -> tuple[str, ...]:
        return tags_of(self.size)

    @property
    def instances(self) -> list[tuple[Flow, str]]:
        """Those that people start, with their keys."""
        numbers = range(1, self.size.instances + 1)
        return [(flow, run_key(flow.flow, number)) for flow in self.roots for number in numbers]

    @property
    def leaf_steps(self) -> int:
        """How many leaf steps there are in all instances."""
        flows = self.flows
        each = (f.leaves_of_an_instance + (flows[f.twig].leaves_of_an_instance if f.twig else 0) for f in self.roots)
        return sum(each) * self.size.instances


def tags_of(size: Size) -> tuple[str, ...]:
    return tuple(f"tag-{number:02}" for number in range(1, size.tags + 1))


def iteration(key: str, number: int) -> str:
    """The key of an iteration of an instance."""
    return child_key(ChildKind.FOREACH, key, LOOP, number)


# Definitions ----------------------------------------------------------------------------------------------------------


def workload(chance: random.Random, size: Size) -> Work:
    """Workflows by chance."""
    tags = tags_of(size)
    twigs = tuple(_twig(f"twig-{number}", tags, chance, size) for number in (1, 2))
    roots = tuple(_flow(f"flow-{number}", tags, chance, size) for number in range(1, size.flows + 1))
    return Work(size, roots, twigs)


def _twig(flow: str, tags: tuple[str, ...], chance: random.Random, size: Size) -> Flow:
    heads = tuple(_leaf(f"bud-{n}", tags, chance, size) for n in (1, 2))
    heads = tuple(msgspec.structs.replace(leaf, is_hasty=False) for leaf in heads)
    return Flow(flow, heads, (), (), 0, None, chance.choice(CRITICALITIES), (), (), None, None)


def _flow(flow: str, tags: tuple[str, ...], chance: random.Random, size: Size) -> Flow:
    def some(share: float) -> tuple[str, ...]:
        return (chance.choice(tags),) if chance.random() < share else ()

    return Flow(
        flow,
        heads=tuple(_leaf(f"head-{n}", tags, chance, size) for n in range(1, size.heads + 1)),
        body=tuple(_leaf(f"body-{n}", tags, chance, size) for n in (1, 2)),
        tails=tuple(_leaf(f"tail-{n}", tags, chance, size) for n in range(1, size.tails + 1)),
        side=size.side,
        window=chance.choice((None, None, 2)),
        criticality=chance.choice(CRITICALITIES),
        tags=some(0.2),
        loop_tags=some(0.2),
        step_concurrency=chance.randint(1, LIMIT_MAX) if chance.random() < 0.4 else None,
        instance_step_concurrency=chance.randint(1, 4) if chance.random() < 0.4 else None,
        twig=f"twig-{chance.choice((1, 2))}" if chance.random() < 0.4 else "",
    )


def _leaf(step_id: str, tags: tuple[str, ...], chance: random.Random, size: Size) -> Leaf:
    kind = chance.choice((NOOP, NOOP, SLEEP, TASK, TASK))
    return Leaf(
        step_id,
        kind,
        tuple(sorted(chance.sample(tags, chance.randint(1, min(3, len(tags)))))),
        sleep_s=chance.choice((0, 1, 2)) if kind == SLEEP else 0,
        is_hasty=kind != NOOP and chance.random() < 0.3,
        is_slow=kind == TASK and chance.random() < size.slow_share,
        retries=chance.choice((0, 1, 99)),
    )


def definitions(work: Work) -> Iterator[Published]:
    """The workflows."""
    for flow in work.flows.values():
        properties: Json = {"owner": AUTHOR, "run_strategy": Rule.PARALLEL}
        if flow.step_concurrency is not None:
            properties["step_concurrency"] = flow.step_concurrency
        text = json.dumps({"properties": properties, "is_active": True, "workflow": _definition(flow)})
        yield WORKFLOW_COMMANDS.name, flow.flow, c.PushVersion(f"push-{flow.flow}", AUTHOR, text)


def _definition(flow: Flow) -> Json:
    found: Json = {
        "id": flow.flow,
        "criticality": flow.criticality,
        "tags": list(flow.tags),
        "params": {"patience": {"type": "STRING", "value": PATIENT}},
        "steps": list(_steps(flow)),
    }
    if flow.instance_step_concurrency is not None:
        found["instance_step_concurrency"] = flow.instance_step_concurrency
    return found


def _steps(flow: Flow) -> Iterator[Json]:
    after_tails = (CALL,) if flow.twig else ()
    for leaf in flow.heads:
        yield _step(leaf, (LOOP,) if flow.body else ())
    for leaf in flow.tails:
        yield _step(leaf, after_tails)
    if flow.body:
        first, second = flow.body
        values = {"i": {"type": "LONG_ARRAY", "value": list(range(1, flow.side + 1))}}
        loop: Json = {
            "id": LOOP,
            "tags": list(flow.loop_tags),
            "params": {"loop_params": {"type": "MAP", "value": values}},
            "steps": [_step(first, (second.step_id,)), _step(second, ())],
            "transition": _to(leaf.step_id for leaf in flow.tails),
        }
        yield {"foreach": loop if flow.window is None else {**loop, "concurrency": flow.window}}
    if flow.twig:
        called = {"subworkflow_id": {"type": "STRING", "value": flow.twig}}
        yield {"subworkflow": {"id": CALL, "params": called}}


def _step(leaf: Leaf, after: tuple[str, ...]) -> Json:
    step: Json = {
        "id": leaf.step_id,
        "type": leaf.type,
        "tags": list(leaf.tags),
        "transition": _to(after),
        "params": _params(leaf),
        "retry_policy": {
            "error_retry_limit": leaf.retries,
            "platform_retry_limit": leaf.retries,
            "timeout_retry_limit": min(leaf.retries, 1),
            "backoff": {
                "type": "FIXED_BACKOFF",
                "error_retry_backoff_in_secs": BACKOFF_S,
                "platform_retry_backoff_in_secs": BACKOFF_S,
                "timeout_retry_backoff_in_secs": BACKOFF_S,
            },
        },
    }
    return {"step": {**step, "timeout": "${patience}"} if leaf.is_hasty else step}


def _params(leaf: Leaf) -> Json:
    if leaf.type == SLEEP:
        return {"sleep_seconds": {"type": "LONG", "value": leaf.sleep_s}}
    if leaf.type == NOOP:
        return {"x": {"type": "LONG", "value": 1}}
    return {
        "lease_seconds": {"type": "LONG", "value": LONG_LEASE_S if leaf.is_slow else LEASE_S},
        "by": {"type": "STRING", "value": "nobody", "mode": "MUTABLE"},
    }


def _to(steps: Any) -> Json:
    return {"successors": dict.fromkeys(steps, "true")}


# Starts ---------------------------------------------------------------------------------------------------------------


def starting(work: Work, chance: random.Random) -> list[Published]:
    """The starts of all instances, in any order of flows. What is hasty has little time at first."""
    given = json.dumps({"patience": {"type": "STRING", "value": HASTY}})
    starts = [
        (WORKFLOW_COMMANDS.name, flow.flow, c.StartInstances(AUTHOR, (c.Start(f"start-{key}", run_params=given),)))
        for flow, key in work.instances
    ]
    chance.shuffle(starts)
    return starts
