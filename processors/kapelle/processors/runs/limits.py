"""What limits the steps of a run besides their own tags: the workflow, the trees of instances, and the steps around it.

All of it follows from the run and its definition, so it is the same in every decision about the run.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.keys import ids_of, tree_key, workflow_limit_key
from kapelle.processors.parents import INLINE
from kapelle.processors.runs.plan import Plan
from kapelle.processors.runs.tables import RunRow
from kapelle.schemas.contracts import Criticality

PROPERTIES_CACHED: Final = 256


class Limit(msgspec.Struct, frozen=True):
    """A limit as the run knows it."""

    max: int
    snapshot: int = 0  # the number of the properties that it is from


class Around(msgspec.Struct, frozen=True):
    """What counts for the permits of every leaf step of a run."""

    tags: tuple[str, ...]  # of the composite steps and workflows above
    limits: Mapping[str, Limit]  # by key, in the order in which attempts ask: of trees of instances, of the workflow
    criticality: Criticality
    workflow_id: str  # at the top of the tree


class _Properties(msgspec.Struct, frozen=True):
    step_concurrency: int | None = None
    step_concurrency_snapshot: int = 0


_decode: Final = msgspec.json.Decoder(_Properties).decode


@lru_cache(maxsize=PROPERTIES_CACHED)
def step_concurrency(run_properties: str) -> Limit | None:
    """The limit in the properties of a run. Raises `msgspec.DecodeError`."""
    if '"step_concurrency"' not in run_properties:
        return None
    properties = _decode(run_properties)
    most = properties.step_concurrency
    return None if most is None else Limit(most, properties.step_concurrency_snapshot)


def has_limits(run: RunRow, plan: Plan) -> bool:
    """Whether anything but the tags of its steps limits a run. Asked for every attempt, so nothing is made for it."""
    parent = run.parent
    if parent is not None and (parent.tags or parent.step_limits):
        return True
    return plan.workflow.instance_step_concurrency is not None or '"step_concurrency"' in run.run_properties


def around_of(key: str, run: RunRow, plan: Plan) -> Around:
    """What counts for every leaf step of a run."""
    parent = run.parent
    trees, root = step_limits(key, run, plan), key if parent is None else parent.root
    # By their keys, whatever the order of the map that was sent: all attempts must have one order. The root comes last.
    limits = {tree_key(tree): Limit(trees[tree]) for tree in sorted(trees, key=lambda tree: (tree == root, tree))}
    of_workflow = step_concurrency(run.run_properties)
    if of_workflow is not None:
        limits[workflow_limit_key(_home_of(run))] = of_workflow
    return Around(
        tags=parent.tags if parent is not None else (),
        limits=limits,
        criticality=criticality_of(run, plan),
        workflow_id=run.workflow_id if parent is None else ids_of(parent.root)[0],
    )


def _home_of(run: RunRow) -> str:
    """The workflow that a run belongs to: iterations and rounds belong to that of their nearest other ancestor."""
    if run.parent is None or run.parent.kind not in INLINE:
        return run.workflow_id
    return ids_of(run.parent.home)[0]


def step_limits(key: str, run: RunRow, plan: Plan) -> dict[str, int]:
    """By instance, of the one with this key and those above: how many steps may run in it and its children."""
    above = dict(run.parent.step_limits) if run.parent is not None else {}
    own = plan.workflow.instance_step_concurrency
    return above if own is None else {**above, key: own}


def criticality_of(run: RunRow, plan: Plan) -> Criticality:
    """The criticality of the workflow that a run belongs to: the definition of a block has none."""
    parent = run.parent
    return parent.criticality if parent is not None and parent.kind in INLINE else plan.workflow.criticality
