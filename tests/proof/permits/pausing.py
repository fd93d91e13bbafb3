"""What must hold of breakpoints: who pauses, who does not, and who goes on.

1. A run always has the breakpoints of its workflow as they were at one moment, and only those that are for it. It is
   launched with those of the moment of its launch, and never goes back to an earlier moment.
2. An attempt that passes the gate pauses if and only if a breakpoint of its run matches it at that event.
3. A paused attempt goes on when a person resumes it, or no breakpoint of its run matches it any more.
4. At rest each run that goes on has the breakpoints that its workflow has, and each paused attempt matches one of them,
   unless one that it matched was deleted so that nothing continues.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec

from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Breakpoint, StepStatus
from tests.proof.checks import Seen
from tests.proof.permits.histories import Ancestry, Holder, Home, all_of, attempt_of, latest_runs

S = StepStatus
Points = frozenset[Breakpoint]
Place = tuple[Any, ...]


def matches(point: Breakpoint, step_id: str, attempt: int) -> bool:
    return point.step_id == step_id and (point.attempt is None or point.attempt == attempt)


def is_for(point: Breakpoint, home: Home) -> bool:
    """Whether a breakpoint of its workflow is for a run."""
    expected = (point.version, home.version), (point.instance_id, home.instance_id), (point.run_id, home.run_id)
    return all(wanted is None or wanted == number for wanted, number in expected)


class Owner(msgspec.Struct):
    """The breakpoints of one workflow, at each moment."""

    moments: list[Points] = msgspec.field(default_factory=lambda: [frozenset()])  # by generation
    launched: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)  # by instance and run: the generation
    left_paused: list[Breakpoint] = msgspec.field(default_factory=list)  # by deletions that resumed nothing
    problems: list[str] = msgspec.field(default_factory=list)

    def see(self, event: Any) -> None:
        match event:
            case c.BreakpointSet():
                self._change(event, {event.breakpoint})
            case c.BreakpointDeleted():
                self._change(event, set())
                if not event.resume:
                    self.left_paused.append(event.breakpoint)
            case c.InstanceLaunched():
                self.launched[event.instance_id, event.run_id] = len(self.moments) - 1

    def _change(self, event: c.BreakpointSet | c.BreakpointDeleted, new: set[Breakpoint]) -> None:
        if event.generation != len(self.moments):
            self.problems.append(f"{event} came after generation {len(self.moments) - 1}")
        place = _place_of(event.breakpoint)
        self.moments.append(frozenset({one for one in self.moments[-1] if _place_of(one) != place} | new))

    def points_for(self, home: Home, generation: int = -1) -> Points:
        """Those that are for a run, at a moment; now if none is given."""
        return frozenset(point for point in self.moments[generation] if is_for(point, home))


def _place_of(point: Breakpoint) -> Place:
    return point.step_id, point.version, point.instance_id, point.run_id, point.attempt


class Run(msgspec.Struct):
    """What the history of a run tells of its breakpoints."""

    key: str
    home: Home
    points: Points = frozenset()
    generation: int = 0
    status: dict[Holder, StepStatus] = msgspec.field(default_factory=dict)
    resumed: set[str] = msgspec.field(default_factory=set)  # steps that a person has resumed since they were paused

    def paused(self) -> list[Holder]:
        """The attempts that are paused."""
        return [holder for holder, status in self.status.items() if status is S.PAUSED]

    def problem_of(self, before: StepStatus, after: StepStatus, holder: Holder) -> str | None:
        """What is wrong with a change of an attempt."""
        is_matched = any(matches(point, holder.step_id, holder.attempt) for point in self.points)
        if after is S.PAUSED and not is_matched:
            return f"{holder} paused, but no breakpoint of its run matches"
        if before is S.EVALUATING_PARAMS and after is S.WAITING_FOR_PERMITS and is_matched:
            return None if holder.step_id in self.resumed else f"{holder} passed a breakpoint that matches it"
        goes_on = before is S.PAUSED and after in (S.WAITING_FOR_PERMITS, S.EVALUATING_PARAMS)
        if goes_on and is_matched and holder.step_id not in self.resumed:
            return f"{holder} went on at a breakpoint that matches it, but nobody resumed it"
        return None


class Pauses:
    """The breakpoints of all workflows and runs."""

    def __init__(self, seen: Seen, ancestry: Ancestry) -> None:
        self.problems: list[str] = []
        self.counts = defaultdict[str, int](int)
        self._seen = seen
        self._ancestry = ancestry
        self._owners = defaultdict[str, Owner](Owner)
        self._runs = dict[str, Run]()
        for workflow_id, event in all_of(seen, WORKFLOW_EVENTS.name):
            self._owners[workflow_id].see(event)
        for key, event in all_of(seen, RUN_EVENTS.name):
            self._see(key, event)
        self.problems += [problem for owner in self._owners.values() for problem in owner.problems]

    def _see(self, key: str, event: Any) -> None:
        match event:
            case c.RunStarted():
                self._runs[key] = Run(key, self._ancestry.home(key, event.run_id))
                self._take(self._runs[key], event.breakpoints, event.breakpoints_generation)
                self._check_launch(key, event)
            case c.BreakpointsChanged():
                self._take(self._runs[key], event.breakpoints, event.generation)
            case c.ActionTaken(action=Action.RESUME, step_id=str() as step_id):
                self.counts["attempts resumed by a person"] += 1
                self._runs[key].resumed.add(step_id)
            case c.StepChanged():
                self._change(self._runs[key], event)

    def _take(self, run: Run, points: Iterable[Breakpoint], generation: int) -> None:
        run.points = frozenset(points)
        if generation < run.generation:
            self.problems.append(f"{run.key} went back from breakpoints {run.generation} to {generation}")
        run.generation = generation
        moments = self._owners[run.home.workflow_id]
        expected = moments.points_for(run.home, generation) if generation < len(moments.moments) else None
        if run.points != expected:
            self.problems.append(f"{run.key} has {set(run.points)} at {generation}, but its workflow {expected}")

    def _check_launch(self, key: str, event: c.RunStarted) -> None:
        home = self._runs[key].home
        if home.key == key:
            expected = self._owners[home.workflow_id].launched.get((home.instance_id, event.run_id))
            if event.breakpoints_generation != expected:
                found = event.breakpoints_generation
                self.problems.append(f"{key} was launched with breakpoints {found}, but at {expected}")

    def _change(self, run: Run, event: c.StepChanged) -> None:
        holder = attempt_of(run.key, event)
        if holder not in run.status:
            run.resumed.discard(event.step_id)  # a new attempt meets the breakpoint again
        for before, after in pairwise((run.status.get(holder, S.NOT_CREATED), *event.statuses)):
            problem = run.problem_of(before, after, holder)
            self.problems += [problem] if problem else []
            if after is S.PAUSED:
                self.counts["attempts paused"] += 1
                run.resumed.discard(event.step_id)
            elif before is S.PAUSED:
                self.counts[f"paused attempts that became {after}"] += 1
        run.status[holder] = event.statuses[-1]

    def at_rest(self) -> Iterator[str]:
        """What is wrong once everything is at rest."""
        for key in latest_runs(self._seen):
            run = self._runs[key]
            owner = self._owners[run.home.workflow_id]
            if run.points != owner.points_for(run.home):
                yield f"{key} has {set(run.points)} at rest, but its workflow {set(owner.points_for(run.home))}"
            for holder in run.paused():
                points = [*run.points, *owner.left_paused]
                if not any(matches(point, holder.step_id, holder.attempt) for point in points):
                    yield f"{holder} is still paused, but no breakpoint matches it"

    def left(self) -> Iterator[str]:
        """Attempts that are paused."""
        for key in latest_runs(self._seen):
            yield from (f"{holder} is paused in the end" for holder in self._runs[key].paused())
