"""A definition prepared for execution: its graph, its loops, and for each step the facts that all runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from kapelle.processors.definitions import Graph, Step, StepKind, Workflow, blocks_of, graph_of, parse_workflow
from kapelle.processors.params import STEP, STEP_DEFAULTS, TYPE_DEFAULTS, Definition, Definitions, merged
from kapelle.processors.runs.asks import asked_of_children

PLANS_CACHED: Final = 256
TEXT_CACHED_CHARS_MAX: Final = 65_536
ALWAYS: Final = frozenset({"true", "true;", "return true;"})


class Edge(msgspec.Struct, frozen=True):
    """A transition. `condition` is None where it is always taken."""

    to: str
    condition: str | None


class StepPlan(msgspec.Struct, frozen=True):
    """A step, where it leads, and which loop it is in."""

    step: Step
    kind: str  # its type in capitals, which says what the step does
    forward: tuple[Edge, ...]
    back: tuple[Edge, ...]  # to the first steps of loops that it is in
    indegree: int
    loop: str | None  # the innermost
    deferred: tuple[str, ...]  # next steps that are outside of a loop that this one is in
    definitions: Definitions  # of its parameters, when nobody overrides them
    defaults: Definitions
    tags: tuple[str, ...]  # its own and those of the workflow, as they are written

    def definitions_with(self, run_params: Definitions) -> Mapping[str, Definition]:
        """The definitions of its parameters, with what the start or restart gives."""
        return _merged(self.step, self.defaults, run_params) if run_params else self.definitions


class Plan(msgspec.Struct, frozen=True):
    """A definition, ready to be run."""

    digest: str
    workflow: Workflow
    graph: Graph
    steps: Mapping[str, StepPlan]
    pending: Mapping[str, int]  # by loop: how many steps and inner loops must be over before an iteration is
    exits: Mapping[str, tuple[tuple[str, str], ...]]  # by loop: the edges that count when it ends
    blocks: Mapping[str, str]  # by foreach or while step: the definition of its iterations or rounds
    asks: Mapping[str, tuple[str, ...]]  # by composite step: parameters of its children, as `step/param`

    def all_steps(self, step_id: str) -> list[StepPlan]:
        """The steps with this id, at any depth: blocks beside each other may use the same one."""
        plans = [self.steps[step_id]] if step_id in self.steps else []
        for block in self.blocks.values():
            plans += plan_of(digest_of(block), lambda block=block: block).all_steps(step_id)  # type: ignore[misc]
        return plans


def digest_of(text: str) -> str:
    """The name of a definition by its content."""
    return _digest_known(text) if len(text) <= TEXT_CACHED_CHARS_MAX else _digest(text)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


_digest_known: Final = lru_cache(maxsize=PLANS_CACHED)(_digest)


def plan_of(digest: str, read: Callable[[], str]) -> Plan:
    """The plan of a definition. Its text is read only if the plan was not made before."""
    plan = _plans.get(digest)
    if plan is None:
        while len(_plans) >= PLANS_CACHED:
            del _plans[next(iter(_plans))]
        plan = _plans[digest] = _made(digest, read())
    return plan


_plans: Final[dict[str, Plan]] = {}


def _made(digest: str, text: str) -> Plan:
    workflow = parse_workflow(text)
    graph = graph_of(workflow.steps)
    # These four are evaluated only if somebody asks for them by name: most steps of most workflows do not.
    defaults = {name: definition for name, definition in STEP_DEFAULTS.items() if name in text}
    tags = frozenset(tag.name for tag in workflow.tags)
    steps = {step.id: _step_plan(step, graph, defaults, tags) for step in workflow.steps}
    is_composite = any(step.kind is not StepKind.STEP for step in workflow.steps)
    return Plan(
        digest=digest,
        workflow=workflow,
        graph=graph,
        steps=steps,
        pending=_pending(graph),
        exits=_exits(graph),
        blocks=blocks_of(text) if is_composite else {},
        asks=asked_of_children(text) if is_composite else {},
    )


@lru_cache(maxsize=PLANS_CACHED)
def ids_in_block(text: str) -> frozenset[str]:
    """The ids of all steps of a definition, those of blocks in it included."""
    return frozenset(step.id for step in parse_workflow(text).all_steps())


def _step_plan(step: Step, graph: Graph, defaults: Definitions, tags: frozenset[str]) -> StepPlan:
    back = graph.back_edges.get(step.id, ())
    return StepPlan(
        step=step,
        kind=step.type.upper(),
        forward=tuple(Edge(to, _condition(text)) for to, text in step.successors.items() if to not in back),
        back=tuple(Edge(to, _condition(text)) for to, text in step.successors.items() if to in back),
        indegree=len(graph.predecessors.get(step.id, ())),
        loop=next(loops_of(graph, step.id), None),
        deferred=tuple(to for to in graph.successors.get(step.id, ()) if _exited(graph, step.id, to)),
        definitions=_merged(step, defaults, {}),
        defaults=defaults,
        tags=tuple(sorted(tags.union(tag.name for tag in step.tags))),
    )


def _condition(text: str) -> str | None:
    return None if text.strip() in ALWAYS else text


def _merged(step: Step, defaults: Definitions, run_params: Definitions) -> dict[str, Definition]:
    of_type = TYPE_DEFAULTS.get(step.type.upper(), {})
    given = {"step defaults": defaults, "type defaults": of_type, "definition": step.params, "run params": run_params}
    return merged(STEP, given)


def loops_of(graph: Graph, step_id: str) -> Iterator[str]:
    """The loops that a step is in, by their first steps, from the innermost to the outermost."""
    inside = [header for header, loop in graph.loops.items() if step_id in loop.body]
    return iter(sorted(inside, key=lambda header: len(graph.loops[header].body)))


def _exited(graph: Graph, source: str, target: str) -> list[str]:
    """The loops that an edge leads out of, from the innermost to the outermost."""
    return [header for header in loops_of(graph, source) if target not in graph.loops[header].body]


def _pending(graph: Graph) -> dict[str, int]:
    counts = dict.fromkeys(graph.loops, 0)
    for step_id in graph.order:
        innermost = next(loops_of(graph, step_id), None)
        if innermost is not None:
            counts[innermost] += 1
    for loop in graph.loops.values():
        if loop.parent is not None:
            counts[loop.parent] += 1
    return counts


def _exits(graph: Graph) -> dict[str, tuple[tuple[str, str], ...]]:
    exits: dict[str, list[tuple[str, str]]] = {header: [] for header in graph.loops}
    for source, targets in graph.successors.items():
        for target in targets:
            left = _exited(graph, source, target)
            if left:
                exits[left[-1]].append((source, target))
    return {header: tuple(edges) for header, edges in exits.items()}
