"""What people do while steps run: to limits, to breakpoints, to runs and to steps. And how they let everything end."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from kapelle.processors.wiring import PERMIT_COMMANDS, RUN_COMMANDS, WORKFLOW_COMMANDS, ids_of, run_key, tag_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, RestartPolicy
from tests.proof.permits.workload import AUTHOR, LIMIT_MAX, PATIENT, Work, iteration
from tests.proof.workload import Published

REPEATED_SHARE: Final = 0.3
LOOKED_UP_SHARE: Final = 0.8  # of what is done to steps, that which somebody has looked up before
DELETED_SHARE: Final = 0.4  # of what is done to breakpoints
KEPT_PAUSED_SHARE: Final = 0.15  # of deletions, those that resume nothing
POLICIES: Final = (
    *[RestartPolicy.RESTART_FROM_INCOMPLETE] * 3,
    *[RestartPolicy.RESTART_FROM_SPECIFIC] * 2,
    RestartPolicy.RESTART_FROM_BEGINNING,
)
ENDINGS: Final = (Action.STOP, Action.KILL, Action.SKIP)
OTHER_PARAMS: Final = json.dumps({"x": {"type": "LONG", "value": 2}})

Precise = dict[str, int]
Point = tuple[str, str, tuple[tuple[str, int], ...]]  # a workflow, a step and the other fields of a breakpoint


class People:
    """All that people do. They remember which breakpoints they have set.

    `active` and `paused` are the steps that somebody has seen as active and as paused, with the keys of instances.
    """

    def __init__(self, work: Work, chance: random.Random, *, limit_max: int = LIMIT_MAX, points: bool = True) -> None:
        self._work = work
        self._chance = chance
        self._limit_max = limit_max
        self._points = dict[Point, None]()
        self._number = 0
        self.active: list[tuple[str, str]] = []
        self.paused: list[tuple[str, str]] = []
        deeds: list[tuple[Callable[[str], Published], float]] = [
            (self._limit, 0.25),
            (self._limit_workflow, 0.05),
            (self._end_instance, 0.07),
            (self._end_step, 0.15),
            (self._restart, 0.12),
        ]
        self._deeds = deeds + [(self._breakpoint, 0.25), (self._resume, 0.1)] * points

    def first_limits(self) -> list[Published]:
        """A limit of each tag."""
        return [self._set(tag, self._chance.randint(1, self._limit_max)) for tag in self._work.tags]

    def first_points(self, count: int) -> list[Published]:
        """Breakpoints that are there before anything starts."""
        return [self._new_point(self._request_id()) for _ in range(count)]

    def deed(self) -> list[Published]:
        """Something, perhaps published twice."""
        (do,) = self._chance.choices([do for do, _ in self._deeds], [share for _, share in self._deeds])
        done = do(self._request_id())
        return [done] * (2 if self._chance.random() < REPEATED_SHARE else 1)

    def _request_id(self) -> str:
        self._number += 1
        return f"request-{self._number}"

    # Limits -----------------------------------------------------------------------------------------------------------

    def _set(self, tag: str, most: int) -> Published:
        return PERMIT_COMMANDS.name, tag_key(tag), c.SetLimit(self._request_id(), AUTHOR, most)

    def _limit(self, request_id: str) -> Published:
        tag, lot = self._chance.choice(self._work.tags), self._chance.random()
        if lot < 0.2:
            return PERMIT_COMMANDS.name, tag_key(tag), c.RemoveLimit(request_id, AUTHOR)
        return self._set(tag, 0 if lot < 0.35 else self._chance.randint(1, self._limit_max))

    def _limit_workflow(self, request_id: str) -> Published:
        flow = self._chance.choice(self._work.roots)
        most = self._chance.randint(1, self._limit_max)
        changes: dict[str, Any] = {"step_concurrency": most}
        if self._chance.random() < 0.3:
            changes = {"reset_step_concurrency": True}
        return _properties(flow.flow, request_id, changes)

    # Breakpoints ------------------------------------------------------------------------------------------------------

    def _breakpoint(self, request_id: str) -> Published:
        if self._points and self._chance.random() < DELETED_SHARE:
            point = self._chance.choice(list(self._points))
            resumes = self._chance.random() >= KEPT_PAUSED_SHARE
            return _delete(point, request_id, resume=resumes)
        return self._new_point(request_id)

    def _new_point(self, request_id: str) -> Published:
        flow = self._chance.choice(list(self._work.flows.values()))
        precise: Precise = {}
        if self._chance.random() < 0.2:
            precise["version"] = 1
        if self._chance.random() < 0.3:
            precise["instance_id"] = self._chance.randint(1, self._work.size.instances)
            if self._chance.random() < 0.5:
                precise["run_id"] = self._chance.randint(1, 3)
        if self._chance.random() < 0.2:
            precise["attempt"] = self._chance.randint(1, 3)
        point = (flow.flow, self._chance.choice((*flow.outer, *flow.inner)), tuple(precise.items()))
        self._points[point] = None
        return _set_point(point, request_id)

    def _resume(self, request_id: str) -> Published:
        key, step_id = self._step(self.paused)
        given = OTHER_PARAMS if self._chance.random() < 0.4 else "{}"
        resume = c.ActOnStep(request_id, AUTHOR, step_id, Action.RESUME, "for the proof", step_run_params=given)
        return RUN_COMMANDS.name, key, resume

    # Runs and steps ---------------------------------------------------------------------------------------------------

    def _end_instance(self, request_id: str) -> Published:
        """Iterations are stopped at `runs`, what has a queue at `workflows`."""
        flow, key = self._chance.choice(self._work.instances)
        action = self._chance.choice((Action.STOP, Action.KILL))
        if self._chance.random() < 0.5:
            inner = iteration(key, self._chance.randint(1, flow.side))
            stop = c.TerminateInstance(request_id, AUTHOR, ids_of(inner)[1], action, "for the proof")
            return RUN_COMMANDS.name, inner, stop
        stop = c.TerminateInstance(request_id, AUTHOR, ids_of(key)[1], action, "for the proof")
        return WORKFLOW_COMMANDS.name, flow.flow, stop

    def _end_step(self, request_id: str) -> Published:
        return _act(*self._step(self.active), self._chance.choice(ENDINGS), request_id)

    def _step(self, known: list[tuple[str, str]]) -> tuple[str, str]:
        """A step that somebody has looked up, or any."""
        if known and self._chance.random() < LOOKED_UP_SHARE:
            return self._chance.choice(known)
        key, steps = self._somewhere()
        return key, self._chance.choice(steps)

    def _restart(self, request_id: str) -> Published:
        key, steps = self._somewhere()
        policy = self._chance.choice(POLICIES)
        step_id = self._chance.choice(steps) if policy is RestartPolicy.RESTART_FROM_SPECIFIC else None
        return RUN_COMMANDS.name, key, c.RestartRun(request_id, AUTHOR, policy, step_id)

    def _somewhere(self) -> tuple[str, tuple[str, ...]]:
        """An instance, with its steps."""
        flow, key = self._chance.choice(self._work.instances)
        lot = self._chance.random()
        if lot < 0.45:
            return key, flow.outer
        if lot < 0.9:
            return iteration(key, self._chance.randint(1, flow.side)), flow.inner
        twig = self._chance.choice(self._work.twigs)
        return run_key(twig.flow, self._chance.randint(1, len(self._work.instances))), twig.outer

    # The end ----------------------------------------------------------------------------------------------------------

    def easing(self) -> Iterator[Published]:
        """Delete all breakpoints, and leave room for everything: some limits are raised, others removed."""
        for point in self._points:
            yield _delete(point, self._request_id(), resume=True)
        for tag in self._work.tags:
            if self._chance.random() < 0.5:
                yield self._set(tag, LIMIT_MAX)
            else:
                yield PERMIT_COMMANDS.name, tag_key(tag), c.RemoveLimit(self._request_id(), AUTHOR)
        for flow in self._work.roots:
            yield _properties(flow.flow, self._request_id(), {"step_concurrency": LIMIT_MAX})

    def resuming(self) -> Iterator[Published]:
        """Resume what deletions without a resume have left paused: a breakpoint that is set again and deleted does."""
        for flow in self._work.flows.values():
            for step_id in (*flow.outer, *flow.inner):
                point: Point = (flow.flow, step_id, ())
                yield _set_point(point, self._request_id())
                yield _delete(point, self._request_id(), resume=True)

    def mending(self, keys: list[str]) -> Iterator[Published]:
        """Restart these where they are not complete, with time enough."""
        given = json.dumps({"patience": {"type": "STRING", "value": PATIENT}})
        for key in keys:
            policy = RestartPolicy.RESTART_FROM_INCOMPLETE
            yield (
                RUN_COMMANDS.name,
                key,
                c.RestartRun(self._request_id(), AUTHOR, policy, run_params=given),
            )


def _set_point(point: Point, request_id: str) -> Published:
    workflow_id, step_id, precise = point
    return WORKFLOW_COMMANDS.name, workflow_id, c.SetBreakpoint(request_id, AUTHOR, step_id, **dict(precise))


def _delete(point: Point, request_id: str, *, resume: bool) -> Published:
    workflow_id, step_id, precise = point
    command = c.DeleteBreakpoint(request_id, AUTHOR, step_id, resume=resume, **dict(precise))
    return WORKFLOW_COMMANDS.name, workflow_id, command


def _act(key: str, step_id: str, action: Action, request_id: str) -> Published:
    return RUN_COMMANDS.name, key, c.ActOnStep(request_id, AUTHOR, step_id, action, "for the proof")


def _properties(workflow_id: str, request_id: str, changes: dict[str, Any]) -> Published:
    return WORKFLOW_COMMANDS.name, workflow_id, c.ChangeProperties(request_id, AUTHOR, json.dumps(changes))
