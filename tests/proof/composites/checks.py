"""What must hold of trees, whatever was stopped, restarted, killed or delivered twice: all of it read from histories.

1. Every run begins once and ends once, and so does every attempt of a step: nothing runs twice, nothing is orphaned.
2. A child is launched, then ends, before it is launched again, and a run ends after all children that it waits for.
3. What a parent knows of a child is how the child's last run has ended.
4. An iteration that has succeeded is not run again, unless somebody has asked for it or something below it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kapelle.processors.runs.composites.identity import INLINE, child_key
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, StepStatus
from tests.proof.checks import Seen
from tests.proof.composites.workload import ROUNDS, SIDE, Shape

Launched = tuple[str, int]  # a step and the number of its child


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
    asked: set[Launched] = msgspec.field(default_factory=set)  # children that somebody has restarted
    attempts: Counter[tuple[Any, ...]] = msgspec.field(default_factory=Counter)
    problems: list[str] = msgspec.field(default_factory=list)

    @property
    def last(self) -> c.RunEnded | None:
        return self.ended[max(self.ended)] if self.ended else None

    def see(self, event: Any) -> None:
        """The next event of the instance."""
        match event:
            case c.RunStarted():
                self.begun[event.run_id] += 1
                restart = None if event.restart is None else Restart.parse(event.restart)
                if restart is not None and restart.path:
                    self.asked.add((restart.path[0].step_id, restart.path[0].number))
            case c.RunEnded():
                self._end(event)
            case c.StepChanged():
                self._step(event)
            case c.ActionTaken(action=Action.RESTART, step_id=str() as step_id):
                self.asked |= {(step_id, number) for number in range(1, SIDE + 1)}
            case c.ChildrenPlanned() | c.ChildrenLaunched() | c.ChildStarted() | c.ChildEnded():
                self._fan(event)

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
    found = instances_of(seen)
    problems = [problem for one in found.values() for problem in (*one.problems, *_alone(one), *_below(one, found))]
    return problems + _created(seen) + _letters(seen)


def unfinished(trees: Iterable[Shape], seen: Seen) -> list[str]:
    """Trees of which some part has not succeeded, after all were mended."""
    found = instances_of(seen)
    problems = []
    for shape in trees:
        numbers = range(1, SIDE + 1)
        parts = [shape.root, *(shape.outer(n) for n in numbers), *(shape.round(n) for n in range(1, ROUNDS + 1))]
        parts += [shape.inner(n, m) for n in numbers for m in numbers]
        for key in parts:
            last = found[key].last if key in found else None
            if last is None or last.status is not InstanceStatus.SUCCEEDED:
                how = "nothing" if last is None else f"{last.status}: {last.reason}"
                problems.append(f"{shape.tree}: expected {key} to have succeeded, but found {how}")
    return problems


def _alone(one: Instance) -> Iterator[str]:
    for run_id, count in one.begun.items():
        if count > 1:
            yield f"{one.key}/run {run_id} has begun {count} times"
        if run_id not in one.ended:
            yield f"{one.key}/run {run_id} has begun and not ended"
    for attempt, count in one.attempts.items():
        if count > 1:
            yield f"{one.key}: {attempt} happened {count} times"


def _below(one: Instance, found: Mapping[str, Instance]) -> Iterator[str]:
    for step_id, fan in one.fans.items():
        for number, times in fan.runs.items():
            ended = fan.ended.get(number)
            if number in fan.open and fan.is_sync:
                yield f"{one.key}: child {number} of {step_id} was launched and has not ended"
            elif fan.kind in INLINE:
                child = found.get(child_key(fan.kind, one.key, step_id, number))
                yield from _inline(f"{one.key}: child {number} of {step_id}", times, ended, child)
            elif fan.is_sync and ended is not None and number in fan.child:
                child = found.get(fan.child[number])
                if child is not None and child.last is not None and child.last.status is not ended.status:
                    yield f"{one.key}: {step_id} took {ended.status} for {child.key}, but it is {child.last.status}"


def _inline(where: str, times: int, ended: c.ChildEnded | None, child: Instance | None) -> Iterator[str]:
    if child is None:
        yield f"{where} was launched, but never ran"
        return
    if child.begun.total() != times:
        yield f"{where} was launched {times} times, but ran {child.begun.total()} times"
    last = child.last
    if ended is not None and last is not None and (ended.status, ended.child_run_id) != (last.status, last.run_id):
        yield f"{where} is {ended.status} to its parent, but {last.status}"


def _created(seen: Seen) -> list[str]:
    """Each request has one instance, and each instance ends."""
    requests = defaultdict[tuple[str, str], list[int]](list)
    alive = set[str]()
    for workflow_id, event in _all(seen, WORKFLOW_EVENTS.name):
        match event:
            case c.InstanceCreated():
                requests[workflow_id, event.request_id].append(event.instance_id)
                alive.add(run_key(workflow_id, event.instance_id))
            case c.InstanceLaunched():
                alive.add(run_key(workflow_id, event.instance_id))
            case c.InstanceEnded():
                alive.discard(run_key(workflow_id, event.instance_id))
    doubled = [f"request {request} has instances {found}" for request, found in requests.items() if len(found) > 1]
    return doubled + [f"{key} was created and has not ended" for key in sorted(alive)]


def _letters(seen: Seen) -> list[str]:
    letters = [letter for rows in seen.get("dead-letters", {}).values() for _, letter in rows]
    return [f"expected no dead letters, but found {letter}" for letter in letters]


def _all(seen: Seen, stream: str) -> Iterator[tuple[str, Any]]:
    for partition in sorted(seen[stream]):
        yield from seen[stream][partition]
