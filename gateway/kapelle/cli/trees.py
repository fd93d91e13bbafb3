"""Looking into a tree of instances: below each composite step the children that matter, down to the steps that failed.

1. Children that failed come first, then those with a failed step below them, then those that were stopped, then those
   that run. At most `SHOWN_MAX` of a step are shown, and the others are counted.
2. Below a child that failed, or that has a failed step below it, the same is shown again. Of children that were only
   stopped, the first is looked into.
3. The rollup of a step names steps that failed at any depth. From these the way up to the instance is followed, so a
   failure is found below children that run, and below those that have succeeded nevertheless.
4. A tree may have any size, so the number of calls is bounded. Where it ends, children are shown without their steps.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kapelle.cli.text.children import is_composite, rollup_of

if TYPE_CHECKING:
    from kapelle.client import Client, InstanceRecord, StepRecord
    from kapelle.client.results import Object

SHOWN_MAX: Final = 10  # children of one step, and steps of one child
DEPTH_MAX: Final = 10  # levels of children; a tree has no more
REFERENCES_MAX: Final = 10  # failed steps of one rollup whose ways up are followed
CALLS_MAX: Final = 100

FAILED: Final = ("FAILED", "TIMED_OUT")
STOPPED: Final = ("STOPPED",)
ACTIVE: Final = ("CREATED", "IN_PROGRESS", "PAUSED")
OVER: Final = ("FATALLY_FAILED", "INTERNALLY_FAILED", "TIMED_OUT", "STOPPED")  # a person may restart such a step
RETRIED: Final = ("USER_FAILED", "PLATFORM_FAILED", "TIMEOUT_FAILED")
# Steps of a child that need no look, unless they have a failed step below them.
FINE: Final = ("SUCCEEDED", "SKIPPED", "DISABLED", "UNSATISFIED", "NOT_CREATED")
# The order in which steps of a child are shown; those with other statuses come last.
FIRST: Final = ("FATALLY_FAILED", "INTERNALLY_FAILED", "TIMED_OUT", *RETRIED, "COMPLETED_WITH_ERROR", "STOPPED")

Instance = tuple[str, int]
StepAt = tuple[str, int, str]
Records = dict[Instance, "InstanceRecord"]


class Child(msgspec.Struct):
    """A child that is shown. `steps` are those that matter; None if it was not looked into."""

    record: "InstanceRecord"
    steps: "list[StepRecord] | None" = None
    other_steps: Counter[str] = msgspec.field(default_factory=Counter)
    below: "dict[str, Branch]" = msgspec.field(default_factory=dict)

    @property
    def at(self) -> Instance:
        return self.record.workflow_id, self.record.workflow_instance_id

    @property
    def has_more(self) -> bool:
        """Whether it failed and was not looked into."""
        return self.steps is None and self.record.status in (*FAILED, *STOPPED)


class Branch(msgspec.Struct):
    """A composite step with the children that are shown, and how many others there are: by status, if it is known."""

    step: "StepRecord"
    children: list[Child]
    others: int = 0
    other_statuses: Counter[str] = msgspec.field(default_factory=Counter)


class Tree:
    """One look into the tree below an instance."""

    def __init__(self, client: "Client", depth: int = DEPTH_MAX) -> None:
        self._client = client
        self._depth = depth
        self._calls = CALLS_MAX
        self._known: Records = {}
        self._ways: dict[StepAt, Records] = {}  # the children of a step that have failed steps below them

    def below(self, at: Instance, steps: "Sequence[StepRecord]") -> dict[str, Branch]:
        """The composite steps of an instance, each with its children."""
        composites = [step for step in steps if is_composite(step)]
        for step in composites:
            self._climb(at, step)
        return {step.step_id: self._branch(at, step, self._depth) for step in composites}

    # Ways up from steps that failed -----------------------------------------------------------------------------------

    def _climb(self, top: Instance, step: "StepRecord") -> None:
        for at in list(failed_below(step))[:REFERENCES_MAX] if self._depth else ():
            while at != top and (record := self._instance(at)) is not None and record.parent is not None:
                above = record.parent.workflow_id, record.parent.workflow_instance_id
                way = self._ways.setdefault((*above, record.parent.step_id), {})
                if at in way:
                    break
                way[at] = record
                at = above  # noqa: PLW2901 - one step up

    def _instance(self, at: Instance) -> "InstanceRecord | None":
        from kapelle.client import NotFound  # noqa: PLC0415 - slow to load, and only some commands need it

        if at not in self._known and self._may_call():
            try:
                self._known[at] = self._client.instances.get(*at)
            except NotFound:  # it has left the view meanwhile
                return None
        return self._known.get(at)

    def _may_call(self) -> bool:
        self._calls -= 1
        return self._calls >= 0

    # Children ---------------------------------------------------------------------------------------------------------

    def _branch(self, at: Instance, step: "StepRecord", depth: int) -> Branch:
        if depth == 0:
            return Branch(step, [], *_others(step, []))
        way = self._ways.get((*at, step.step_id), {})
        records = list(self._children((*at, step.step_id), step, way).values())[:SHOWN_MAX]
        children = [Child(record) for record in records]
        failed = [child for child in children if child.record.status in FAILED or child.at in way]
        for child in failed or [child for child in children if child.record.status in STOPPED][:1]:
            self._look_into(child, depth - 1)
        return Branch(step, children, *_others(step, records))

    def _children(self, at: StepAt, step: "StepRecord", way: Records) -> Records:
        counts = statuses_of(step)
        records = self._page(at, FAILED, counts, {}) | way
        for statuses in (STOPPED, ACTIVE):
            records = self._page(at, statuses, counts, records)
        # The child of a subworkflow is of interest in any status.
        return self._page(at, (), None, records) if "maestro_subworkflow" in step.artifacts else records

    def _page(self, at: StepAt, statuses: Sequence[str], counts: Mapping[str, int] | None, known: Records) -> Records:
        """These children, and more of them with these statuses, if there are any and if there is room."""
        is_none = counts is not None and not any(counts.get(status) for status in statuses)
        if is_none or len(known) >= SHOWN_MAX or not self._may_call():
            return known
        page = self._client.steps.children(at, status=statuses, limit=SHOWN_MAX)
        records = {(record.workflow_id, record.workflow_instance_id): record for record in page.elements}
        self._known |= records
        return known | {name: record for name, record in records.items() if name not in known}

    def _look_into(self, child: Child, depth: int) -> None:
        if not self._may_call():
            return
        steps = self._client.steps.list(*child.at)
        matter = [step for step in steps if step.status not in FINE or (*child.at, step.step_id) in self._ways]
        matter.sort(key=lambda step: FIRST.index(step.status) if step.status in FIRST else len(FIRST))
        child.steps = matter[:SHOWN_MAX]
        shown = {step.step_id for step in child.steps}
        child.other_steps = Counter(step.status for step in steps if step.step_id not in shown)
        child.below = {step.step_id: self._branch(child.at, step, depth) for step in child.steps if is_composite(step)}


def failed_below(step: "StepRecord") -> Iterator[Instance]:
    """The instances of the steps that a rollup names as failed: those that failed for good come first."""
    overview = (rollup_of(step) or {"overview": {}})["overview"]
    for status in (*OVER, *RETRIED):
        for where, leaves in overview.get(status, {}).get("ref", {}).items():
            workflow_id = where.rpartition(":")[0]
            yield from ((workflow_id, int(leaf.partition(":")[0])) for leaf in leaves)


def statuses_of(step: "StepRecord") -> dict[str, int] | None:
    """How many children of a step are in each status, if the step tells it."""
    artifact = step.artifacts.get("maestro_foreach")
    return (
        None
        if artifact is None
        else {**artifact["foreach_overview"]["stats"], **artifact["foreach_overview"]["running_stats"]}
    )


def _others(step: "StepRecord", shown: "Sequence[InstanceRecord]") -> tuple[int, Counter[str]]:
    """How many children of a step are not shown."""
    counts = statuses_of(step)
    if counts is not None:
        others = Counter(counts) - Counter(record.status for record in shown)
        return others.total(), others
    rounds = step.artifacts.get("maestro_while", {}).get("last_iteration") or 0
    return max(rounds - len(shown), 0), Counter()


def as_json(branches: Mapping[str, Branch]) -> "Object":
    """The children of steps, each in the form of the instance itself, and how many others there are."""
    if not branches:
        return {}
    children = {step_id: [_child(child) for child in branch.children] for step_id, branch in branches.items()}
    others = {
        step_id: {"count": branch.others, "statuses": branch.other_statuses}
        for step_id, branch in branches.items()
        if branch.others
    }
    return {"children": children, **({"other_children": others} if others else {})}


def _child(child: Child) -> "Object":
    steps = {} if child.steps is None else {"steps": child.steps, "other_steps": child.other_steps}
    return {**msgspec.to_builtins(child.record), **steps, **as_json(child.below)}
