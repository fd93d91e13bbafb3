"""What must hold of trees, whatever was stopped, restarted, killed or delivered twice: all of it read from histories.

1. Every run begins once and ends once, and so does every attempt of a step: nothing runs twice, nothing is orphaned.
2. A child is launched, then ends, before it is launched again, and a run ends after all children that it waits for.
3. What a parent knows of a child is how the child's last run has ended.
4. An iteration that has succeeded is not run again, unless somebody has asked for it, for something below it, or for
   something that comes before its loop.
5. Of a workflow that is not PARALLEL one instance runs at a time: the next begins when all of the last one's tree has
   ended. Those strategies that keep only the last arrival never have two in the queue.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import Rule
from kapelle.processors.parents import INLINE
from kapelle.processors.runs.composites.identity import child_key
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, RestartPolicy, StepStatus
from tests.proof.checks import Seen
from tests.proof.composites.workload import ROUNDS, Shape

Launched = tuple[str, int]  # a step and the number of its child
COMPLETE: Final = frozenset({StepStatus.SUCCEEDED, StepStatus.SKIPPED, StepStatus.COMPLETED_WITH_ERROR})
REPLACING: Final = frozenset({Rule.LAST_ONLY, Rule.SERIAL_LATEST_ONLY})


class Fan(msgspec.Struct):
    """What the history of a parent tells of the children of one step."""

    kind: ChildKind
    is_sync: bool = True
    runs: Counter[int] = msgspec.field(default_factory=Counter)  # how often each number was launched
    open: set[int] = msgspec.field(default_factory=set)
    ended: dict[int, c.ChildEnded] = msgspec.field(default_factory=dict)
    child: dict[int, str] = msgspec.field(default_factory=dict)  # keys of subworkflows


class Instance(msgspec.Struct):
    """What the history of one instance tells."""

    key: str
    begun: Counter[int] = msgspec.field(default_factory=Counter)
    ended: dict[int, c.RunEnded] = msgspec.field(default_factory=dict)
    fans: dict[str, Fan] = msgspec.field(default_factory=dict)
    asked: set[Launched] = msgspec.field(default_factory=set)  # children that a restart makes run again
    steps: dict[str, StepStatus] = msgspec.field(default_factory=dict)
    attempts: Counter[tuple[Any, ...]] = msgspec.field(default_factory=Counter)
    problems: list[str] = msgspec.field(default_factory=list)

    @property
    def last(self) -> c.RunEnded | None:
        """The end of the last run that has begun. A later one may have been stopped in the queue."""
        return self.ended.get(max(self.begun, default=0))

    def see(self, event: Any) -> None:
        """The next event of the instance."""
        match event:
            case c.RunStarted():
                self.begun[event.run_id] += 1
                if event.restart is not None:
                    self._restarted(event, Restart.parse(event.restart))
            case c.RunEnded():
                self._end(event)
            case c.StepChanged():
                self._step(event)
            case c.ActionTaken(action=Action.RESTART, step_id=str() as step_id):
                fan = self.fans.get(step_id)
                self.asked |= {(step_id, number) for number in fan.runs} if fan else set()
            case c.ChildrenPlanned() | c.ChildrenLaunched() | c.ChildStarted() | c.ChildEnded():
                self._fan(event)

    def _restarted(self, event: c.RunStarted, restart: Restart) -> None:
        """One child is asked for by its path; all of them from the beginning, or if a step before theirs runs again."""
        if restart.path:
            self.asked.add((restart.path[0].step_id, restart.path[0].number))
        from_beginning = restart.policy is RestartPolicy.RESTART_FROM_BEGINNING and not restart.path
        for step_id, fan in self.fans.items():
            was_complete = self.steps.get(step_id) in COMPLETE and step_id in event.steps
            if from_beginning or (was_complete and step_id != restart.first_step):
                self.asked |= {(step_id, number) for number in fan.runs}

    def _end(self, event: c.RunEnded) -> None:
        if event.run_id in self.ended:
            self.problems.append(f"{self.key}/run {event.run_id} has ended twice")
        self.ended[event.run_id] = event
        left = {step_id: sorted(fan.open) for step_id, fan in self.fans.items() if fan.open and fan.is_sync}
        if left:
            self.problems.append(f"{self.key}/run {event.run_id} ended before its children {left}")

    def _step(self, event: c.StepChanged) -> None:
        attempt = (event.run_id, event.step_id, event.iteration, event.attempt)
        for status in event.statuses:
            self.steps[event.step_id] = status
            if status in (StepStatus.RUNNING, StepStatus.SUCCEEDED):
                self.attempts[*attempt, status] += 1

    def _fan(self, event: c.ChildrenPlanned | c.ChildrenLaunched | c.ChildStarted | c.ChildEnded) -> None:
        if isinstance(event, c.ChildrenPlanned):
            fan = self.fans.setdefault(event.step_id, Fan(event.kind))
            fan.is_sync = event.is_sync
            return
        fan = self.fans[event.step_id]
        match event:
            case c.ChildrenLaunched():
                for number in event.numbers:
                    self._launch(event.step_id, fan, number)
            case c.ChildStarted():
                fan.child[event.number] = event.child
            case c.ChildEnded():
                if event.number not in fan.open:
                    self.problems.append(f"{self.key}: child {event.number} of {event.step_id} ended, but did not run")
                fan.open.discard(event.number)
                fan.ended[event.number] = event

    def _launch(self, step_id: str, fan: Fan, number: int) -> None:
        where = f"{self.key}: child {number} of {step_id}"
        if number in fan.open and fan.is_sync:
            self.problems.append(f"{where} was launched while it ran")
        before = fan.ended.get(number)
        is_done = before is not None and before.status is InstanceStatus.SUCCEEDED
        if is_done and fan.kind is ChildKind.FOREACH and (step_id, number) not in self.asked:
            self.problems.append(f"{where} was run again, although it had succeeded")
        self.asked.discard((step_id, number))
        fan.runs[number] += 1
        fan.open.add(number)


def instances_of(seen: Seen) -> dict[str, Instance]:
    """Every instance that has run, by its key."""
    found: dict[str, Instance] = {}
    for key, event in _all(seen, RUN_EVENTS.name):
        found.setdefault(key, Instance(key)).see(event)
    return found


def tree_violations(seen: Seen) -> list[str]:
    """What is wrong with any instance, once everything is quiet."""
    found, ends = instances_of(seen), _ends(seen)
    problems = [
        problem for one in found.values() for problem in (*one.problems, *_alone(one), *_below(one, found, ends))
    ]
    return problems + list(_created(seen)) + list(_strategies(seen)) + _letters(seen)


def held_up(trees: Iterable[Shape], seen: Seen) -> list[str]:
    """Instances that have not ended once everything is quiet, although no strategy lets a failed one hold them up."""
    free = {one for shape in trees if Rule.STRICT_SEQUENTIAL not in shape.rules.values() for one in shape.rules}
    return [f"{run_key(*one)} has not ended, and nothing holds it up" for one in _alive(seen) if one[0] in free]


def unfinished(trees: Iterable[Shape], seen: Seen) -> list[str]:
    """Trees of which some part has not succeeded, after all were mended. Nothing is expected below a skipped step."""
    found = instances_of(seen)
    return [f"{shape.tree}: {problem}" for shape in trees for problem in _incomplete(shape, shape.root, found)]


def skipped(trees: Iterable[Shape], seen: Seen) -> int:
    """How many composite steps of the trees were skipped in the end, so that nothing below them was expected."""
    found, composite = instances_of(seen), set().union(*STEPS)
    keys = [key for shape in trees for key in (shape.root, *map(shape.outer, range(1, shape.side + 1)))]
    steps = [status for key in keys if key in found for step, status in found[key].steps.items() if step in composite]
    return sum(status is StepStatus.SKIPPED for status in steps)


# The steps that have children to wait for, of an instance at each level. Rounds and twigs have none.
STEPS: Final = ({"outer", "rounds"}, {"inner"}, {"call"}, set[str]())


def _incomplete(shape: Shape, key: str, found: Mapping[str, Instance], level: int = 0) -> Iterator[str]:
    one = found.get(key)
    if one is None or one.last is None or one.last.status is not InstanceStatus.SUCCEEDED:
        how = "nothing" if one is None or one.last is None else f"{one.last.status}: {one.last.reason}"
        yield f"expected {key} to have succeeded, but found {how}"
        return
    for step_id in sorted(STEPS[level]):
        fan = one.fans.get(step_id)
        if one.steps.get(step_id) is StepStatus.SKIPPED:
            continue
        if fan is None:
            yield f"expected {key} to have children of {step_id}, but found none"
        elif fan.kind is ChildKind.SUBWORKFLOW:
            yield from _incomplete(shape, fan.child.get(1, "no child"), found, len(STEPS) - 1)
        else:
            is_loop = fan.kind is ChildKind.FOREACH
            for number in range(1, (shape.side if is_loop else ROUNDS) + 1):
                below = child_key(fan.kind, key, step_id, number)
                yield from _incomplete(shape, below, found, level + 1 if is_loop else len(STEPS) - 1)


def _alone(one: Instance) -> Iterator[str]:
    for run_id, count in one.begun.items():
        if count > 1:
            yield f"{one.key}/run {run_id} has begun {count} times"
        if run_id not in one.ended:
            yield f"{one.key}/run {run_id} has begun and not ended"
    for attempt, count in one.attempts.items():
        if count > 1:
            yield f"{one.key}: {attempt} happened {count} times"


def _below(one: Instance, found: Mapping[str, Instance], ends: Mapping[str, InstanceStatus]) -> Iterator[str]:
    for step_id, fan in one.fans.items():
        for number, times in fan.runs.items():
            ended = fan.ended.get(number)
            if number in fan.open and fan.is_sync:
                yield f"{one.key}: child {number} of {step_id} was launched and has not ended"
            elif fan.kind in INLINE:
                child = found.get(child_key(fan.kind, one.key, step_id, number))
                yield from _inline(f"{one.key}: child {number} of {step_id}", times, ended, child)
            elif fan.is_sync and ended is not None and number in fan.child:
                status = ends.get(fan.child[number])
                if status is not ended.status:
                    yield f"{one.key}: {step_id} took {ended.status} for {fan.child[number]}, but it is {status}"


def _inline(where: str, times: int, ended: c.ChildEnded | None, child: Instance | None) -> Iterator[str]:
    if child is None:
        yield f"{where} was launched, but never ran"
        return
    if child.begun.total() != times:
        yield f"{where} was launched {times} times, but ran {child.begun.total()} times"
    last = child.last
    if ended is not None and last is not None and (ended.status, ended.child_run_id) != (last.status, last.run_id):
        yield f"{where} is {ended.status} to its parent, but {last.status}"


def _created(seen: Seen) -> Iterator[str]:
    """Each request has one instance, and each instance ends."""
    requests = defaultdict[tuple[str, str], list[int]](list)
    for workflow_id, event in _all(seen, WORKFLOW_EVENTS.name):
        if isinstance(event, c.InstanceCreated):
            requests[workflow_id, event.request_id].append(event.instance_id)
    for request, found in requests.items():
        if len(found) > 1:
            yield f"request {request} has instances {found}"
    for workflow_id, instance_id in _alive(seen):
        yield f"{run_key(workflow_id, instance_id)} was created and has not ended"


def _alive(seen: Seen) -> list[tuple[str, int]]:
    """The instances that are queued or running."""
    alive = set[tuple[str, int]]()
    for workflow_id, event in _all(seen, WORKFLOW_EVENTS.name):
        match event:
            case c.InstanceCreated(status=InstanceStatus.CREATED) | c.InstanceLaunched():
                alive.add((workflow_id, event.instance_id))
            case c.InstanceEnded():
                alive.discard((workflow_id, event.instance_id))
    return sorted(alive)


def _ends(seen: Seen) -> dict[str, InstanceStatus]:
    """How each instance has ended last, by what `workflows` says: also one that never ran."""
    found: dict[str, InstanceStatus] = {}
    for workflow_id, event in _all(seen, WORKFLOW_EVENTS.name):
        if isinstance(event, c.InstanceCreated | c.InstanceEnded):
            found[run_key(workflow_id, event.instance_id)] = event.status
    return found


def _strategies(seen: Seen) -> Iterator[str]:
    """Moments at which more instances were queued or running than the strategy of the workflow allowed."""
    rules, queued, running = dict[str, str](), defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    for workflow_id, event in _all(seen, WORKFLOW_EVENTS.name):
        match event:
            case c.PropertiesChanged():
                rules[workflow_id] = json.loads(event.properties)["run_strategy"]["rule"]
            case c.InstanceCreated(status=InstanceStatus.CREATED):
                queued[workflow_id].add(event.instance_id)
            case c.InstanceLaunched():
                queued[workflow_id].discard(event.instance_id)
                running[workflow_id].add(event.instance_id)
            case c.InstanceEnded():
                queued[workflow_id].discard(event.instance_id)
                running[workflow_id].discard(event.instance_id)
        rule = rules.get(workflow_id, Rule.PARALLEL)
        if rule != Rule.PARALLEL and len(running[workflow_id]) > 1:
            yield f"{workflow_id} ({rule}): {sorted(running[workflow_id])} ran at the same time"
        if rule in REPLACING and len(queued[workflow_id]) > 1:
            yield f"{workflow_id} ({rule}): {sorted(queued[workflow_id])} were queued at the same time"


def _letters(seen: Seen) -> list[str]:
    letters = [letter for rows in seen.get("dead-letters", {}).values() for _, letter in rows]
    return [f"expected no dead letters, but found {letter}" for letter in letters]


def _all(seen: Seen, stream: str) -> Iterator[tuple[str, Any]]:
    for partition in sorted(seen[stream]):
        yield from seen[stream][partition]
