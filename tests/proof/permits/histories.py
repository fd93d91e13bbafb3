"""What the histories say of runs and where they belong, for all checks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from kapelle.processors.parents import INLINE
from kapelle.processors.wiring import RUN_EVENTS, ids_of
from kapelle.schemas import contracts as c
from tests.proof.checks import Seen
from tests.proof.permits.workload import LOOP, Flow, Work


class Holder(NamedTuple):
    """An attempt, as both histories name it."""

    key: str
    step_id: str
    run_id: int
    iteration: int
    attempt: int


class Home(NamedTuple):
    """The run of an instance that was pushed: that of iterations is the one that they belong to."""

    key: str
    run_id: int
    version: int

    @property
    def workflow_id(self) -> str:
        return ids_of(self.key)[0]

    @property
    def instance_id(self) -> int:
        return ids_of(self.key)[1]


def all_of(seen: Seen, stream: str) -> Iterator[tuple[str, Any]]:
    """The events of a stream, partition after partition."""
    partitions = seen[stream]
    for partition in sorted(partitions):
        yield from partitions[partition]


def holder_of(holder: c.PermitHolder) -> Holder:
    return Holder(holder.key, holder.step_id, holder.run_id, holder.iteration, holder.attempt)


def attempt_of(key: str, event: c.StepChanged | c.PermitReceived) -> Holder:
    """The attempt that an event of `runs` is about."""
    return Holder(key, event.step_id, event.run_id, event.iteration, event.attempt)


class Ancestry(msgspec.Struct):
    """Which runs belong to which, by the starts of all runs."""

    starts: dict[tuple[str, int], c.RunStarted]

    def home(self, key: str, run_id: int) -> Home:
        """The run that a run belongs to: its own, unless it is an iteration."""
        start = self.starts[key, run_id]
        if start.parent is None or start.parent.kind not in INLINE:
            return Home(key, run_id, start.version)
        return self.home(start.parent.key, start.parent.run_id)

    def tags(self, key: str, run_id: int, step_id: str, work: Work) -> set[str]:
        """All tags that count for a step: its own, and those of all steps and workflows above it."""
        flow = work.flows[self.home(key, run_id).workflow_id]
        parent = self.starts[key, run_id].parent
        above = set() if parent is None else self.tags(parent.key, parent.run_id, parent.step_id, work)
        return above | set(flow.tags) | _tags_of_step(flow, step_id)

    def trees(self, key: str, run_id: int, work: Work) -> dict[str, int]:
        """The limits of trees of instances that count for a run, by the key of the instance."""
        home = self.home(key, run_id)
        most = work.flows[home.workflow_id].instance_step_concurrency
        parent = self.starts[home.key, home.run_id].parent
        above = {} if parent is None else self.trees(parent.key, parent.run_id, work)
        return above if most is None else {**above, home.key: most}

    def root(self, key: str, run_id: int) -> str:
        """The key of the instance at the top of the tree."""
        parent = self.starts[key, run_id].parent
        return key if parent is None else self.root(parent.key, parent.run_id)

    def has_step_concurrency(self, key: str, run_id: int) -> bool:
        """Whether the properties that the run was started with limit the steps of its workflow."""
        return "step_concurrency" in json.loads(self.starts[key, run_id].run_properties)


def _tags_of_step(flow: Flow, step_id: str) -> set[str]:
    for leaf in flow.leaves:
        if leaf.step_id == step_id:
            return set(leaf.tags)
    return set(flow.loop_tags) if step_id == LOOP else set()


def ancestry_of(seen: Seen) -> Ancestry:
    """Of all runs."""
    return Ancestry(
        {(key, event.run_id): event for key, event in all_of(seen, RUN_EVENTS.name) if isinstance(event, c.RunStarted)}
    )


def latest_runs(seen: Seen) -> Mapping[str, c.RunStarted]:
    """The latest run of each instance that has not ended."""
    found = dict[str, c.RunStarted]()
    for key, event in all_of(seen, RUN_EVENTS.name):
        if isinstance(event, c.RunStarted):
            found[key] = event
        elif isinstance(event, c.RunEnded):
            found.pop(key, None)
    return found
