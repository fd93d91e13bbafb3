"""Restarts of an instance: which steps run again, and what is kept of the other steps.

| policy | steps that run |
|---|---|
| RESTART_FROM_BEGINNING | all |
| RESTART_FROM_INCOMPLETE | every step that is not complete, and all that come after it |
| RESTART_FROM_SPECIFIC | the named step, and all that come after it |

A step that does not run keeps its state, its parameters, and the conditions that it decided: those count for a join
that runs again. A loop continues in its current iteration, unless it runs again from its first step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import StepKind
from kapelle.processors.params import ParamError, check_run_params, definitions_of
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.plan import Plan, loops_of
from kapelle.processors.runs.states import COMPLETE
from kapelle.processors.runs.tables import Runs, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RestartPolicy

RESTART_BYTES_MAX: Final = 900_000
# How an instance, or all children of a step, can be restarted.
WHOLE: Final = (RestartPolicy.RESTART_FROM_INCOMPLETE, RestartPolicy.RESTART_FROM_BEGINNING)


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """One level of a path down a tree: a composite step, and the number of one of its children."""

    step_id: str
    number: int


class Restart(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an instance is restarted, as it travels from `runs` through the queue of `workflows` and back.

    With a path, the instance that is meant is further down. The instance here begins with the first step of the path,
    and hands the rest of it to the child of that step. All other fields are for the instance at the end of the path.
    """

    policy: RestartPolicy
    step_id: str | None = None
    step_run_params: Mapping[str, Any] = {}
    skip_steps: tuple[str, ...] = ()
    path: tuple[Hop, ...] = ()
    params: str | None = None  # of the instance at the end of the path, evaluated, as JSON; None: as they were
    downstream_policy: RestartPolicy | None = None  # with a step: how the children of composite steps restart

    @property
    def downstream(self) -> RestartPolicy | None:
        """How children of composite steps restart that run again; None if nobody has said so.

        The policy for a whole instance is also that for its children, below the end of the path and beside the path.
        """
        return self.policy if self.policy in WHOLE else self.downstream_policy

    @property
    def first_step(self) -> str | None:
        """The step that the instance here begins with; None if the policy decides."""
        return self.path[0].step_id if self.path else self.step_id

    def below(self) -> Restart:
        """The same for the child that comes next on the path."""
        return msgspec.structs.replace(self, path=self.path[1:])

    def json(self) -> str:
        """As text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, text: str) -> Restart:
        """From text."""
        return msgspec.json.decode(text, type=cls)


class Beginning(msgspec.Struct, frozen=True):
    """What a new run begins with. The fields are those of `RunStarted`, and the steps that begin at once."""

    steps: tuple[str, ...] = ()
    step_run_params: Mapping[str, Any] = {}  # what a restart gives for steps
    arrived: dict[str, int] = {}
    satisfied: dict[str, bool] = {}
    iterations: dict[str, int] = {}
    pending: dict[str, int] = {}
    again: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()  # composite steps that keep the children which have succeeded


def from_the_beginning(plan: Plan) -> Beginning:
    """Every step runs, for the first time or again."""
    return Beginning(
        steps=tuple(plan.graph.order),
        iterations=dict.fromkeys(plan.graph.loops, 1),
        pending=dict(plan.pending),
        ready=plan.graph.roots,
    )


def incomplete(plan: Plan, rows: Mapping[str, StepRow]) -> list[str]:
    """The steps that are not complete, or were never created."""
    return [step_id for step_id in plan.graph.order if step_id not in rows or rows[step_id].status not in COMPLETE]


def beginning_at(
    start: Iterable[str], plan: Plan, rows: Mapping[str, StepRow], iterations: Mapping[str, int]
) -> Beginning:
    """What runs when the run begins with these steps."""
    wanted = frozenset(start)
    runs = _reachable(wanted, plan)
    open_loops = [header for header, loop in plan.graph.loops.items() if runs & loop.body]
    # What leads out of a loop counts when the loop ends, and those will end again.
    uncounted = {edge for header in open_loops for edge in plan.exits[header]}
    arrived: dict[str, int] = {}
    satisfied: dict[str, bool] = {}
    for step_id in plan.graph.order:
        if step_id in runs:
            before = [
                previous
                for previous in plan.graph.predecessors.get(step_id, ())
                if (previous, step_id) not in uncounted
            ]
            kept = [
                rows[previous]
                for previous in before
                if previous not in runs and previous in rows and rows[previous].status in COMPLETE
            ]
            arrived[step_id] = len(kept)
            # Whoever asks for a step by name, or has seen it fail, wants it to run whatever led to it.
            asked_for = step_id in wanted and step_id in rows
            satisfied[step_id] = asked_for or any(row.successors.get(step_id) for row in kept)
    return Beginning(
        steps=tuple(step_id for step_id in plan.graph.order if step_id in runs),
        arrived=arrived,
        satisfied=satisfied,
        iterations={header: 1 if header in runs else iterations.get(header, 1) for header in open_loops},
        pending={header: _pending(header, runs, open_loops, plan) for header in open_loops},
        again=tuple(header for header in open_loops if _repeats(header, plan.graph.loops[header].body - runs, rows)),
        ready=tuple(
            step_id for step_id in plan.graph.order if step_id in runs and _is_first(step_id, runs, plan, arrived)
        ),
    )


def _repeats(header: str, kept: Iterable[str], rows: Mapping[str, StepRow]) -> bool:
    """Whether a step that does not run again has led back to the beginning of the loop."""
    return any(rows[step_id].repeats.get(header, False) for step_id in kept if step_id in rows)


def _reachable(start: frozenset[str], plan: Plan) -> frozenset[str]:
    reached, left = set(start), list(start)
    while left:
        for following in _after(left.pop(), plan):
            if following not in reached:
                reached.add(following)
                left.append(following)
    return frozenset(reached)


def _after(step_id: str, plan: Plan) -> Iterator[str]:
    """What comes after a step: the next steps, and whatever waits for a loop that it is in."""
    yield from plan.graph.successors.get(step_id, ())
    for header in loops_of(plan.graph, step_id):
        yield from (target for _, target in plan.exits[header])


def _is_first(step_id: str, runs: frozenset[str], plan: Plan, arrived: Mapping[str, int]) -> bool:
    """Whether a step runs at once: nothing before it runs, and all of that is complete."""
    before = plan.graph.predecessors.get(step_id, ())
    return not any(previous in runs for previous in before) and arrived[step_id] == len(before)


def _pending(header: str, runs: frozenset[str], open_loops: list[str], plan: Plan) -> int:
    # As in `loops.end_iteration`, an inner loop counts as one pending part of the loop around it.
    steps = sum(
        1 for step_id in plan.graph.loops[header].body & runs if next(loops_of(plan.graph, step_id), None) == header
    )
    nested = sum(1 for nested in open_loops if plan.graph.loops[nested].parent == header)
    return steps + nested


def step_params(text: str, plan: Plan) -> dict[str, Any]:
    """The parameters that a restart gives for steps, or a `ParamError` that says why they cannot be merged.

    Those for steps inside a loop reach every iteration or round that has the step.
    """
    by_step = parsed_object(text)
    for step_id, given in by_step.items():
        steps = plan.all_steps(step_id)
        if not steps:
            raise ParamError(f"Expected a step of the workflow in step_run_params, but found {step_id[:80]!r}")
        if not isinstance(given, dict):
            raise ParamError(f"Expected step_run_params of {step_id!r} as an object, but found another value")
        check_run_params(given)
        for step in steps:
            # Merged only to find errors now: the step merges them again when it begins.
            step.definitions_with(definitions_of(given))
    return by_step


def check_size(*texts: str) -> None:
    """Refuse what the records of a restart cannot hold."""
    # A character has at most four bytes in UTF-8: texts are encoded only if they may be too long.
    size_bytes = sum(len(text.encode()) for text in texts) if 4 * sum(map(len, texts)) > RESTART_BYTES_MAX else 0
    if size_bytes > RESTART_BYTES_MAX:
        raise ParamError(f"Expected at most {RESTART_BYTES_MAX:,} bytes of parameters, but found {size_bytes:,}")


def with_step_params(text: str, more: Mapping[str, Any]) -> str:
    """What was given for steps before, as JSON, with what a restart gives."""
    if not more:
        return text
    given = parsed_object(text)
    return msgspec.json.encode(
        {**given, **{step_id: {**given.get(step_id, {}), **more[step_id]} for step_id in more}}
    ).decode()


def refused(request: c.RestartRun, plan: Plan, rows: Mapping[str, StepRow]) -> str | None:
    """Why an instance that has ended cannot be restarted like this; None if it can."""
    if request.policy is RestartPolicy.OTHER:
        known = ", ".join(policy for policy in RestartPolicy if policy is not RestartPolicy.OTHER)
        return f"Expected one of {known} as policy, but found another"
    if request.policy is RestartPolicy.RESTART_FROM_INCOMPLETE and not incomplete(plan, rows):
        return "Expected a step that is not complete, but all are: restart from the beginning, or from a step"
    if request.policy is RestartPolicy.RESTART_FROM_SPECIFIC:
        return step_refused(request.step_id, plan, rows)
    return None


def downstream_refused(request: c.RestartRun) -> str | None:
    """Why children cannot be restarted like this; None if they can, or if nobody asks for it."""
    if request.downstream_policy is None:
        return None
    if request.policy is not RestartPolicy.RESTART_FROM_SPECIFIC:
        return f"Expected downstream_policy only for the restart of a step, but found it with {request.policy}"
    if request.downstream_policy not in WHOLE:
        return f"Expected one of {', '.join(WHOLE)} as downstream_policy, but found {request.downstream_policy}"
    return None


def has_composites(start: str, plan: Plan) -> bool:
    """Whether a restart from a step runs steps that have children."""
    return any(plan.steps[step_id].step.kind is not StepKind.STEP for step_id in _reachable(frozenset({start}), plan))


def step_refused(step_id: str | None, plan: Plan, rows: Mapping[str, StepRow]) -> str | None:
    """Why a restart cannot begin with this step; None if it can."""
    if step_id not in plan.steps:
        return f"Expected a step of the workflow ({', '.join(plan.steps)}), but found {step_id!r:.80}"
    if step_id not in rows:
        return f"Expected step {step_id!r} to have been created, but it was not"
    return None


def rows_of(key: str, state: Runs) -> dict[str, StepRow]:
    """The steps of an instance as they are."""
    return {step_id: row for (_, step_id), row in state.steps.prefix((key,))}


def resumed(plan: Plan, runs: Iterable[str], rows: Mapping[str, StepRow], restart: Restart) -> tuple[str, ...]:
    """The composite steps that keep the children which have succeeded, of those that a restart runs.

    A step that was complete runs again because something before it does: its children run from the beginning. A while
    step that is restarted by its name begins with its first round, unless one of its rounds is meant.
    """
    if restart.policy is RestartPolicy.RESTART_FROM_BEGINNING and not restart.path:
        return ()
    named = restart.first_step
    composites = [step_id for step_id in runs if plan.steps[step_id].step.kind is not StepKind.STEP and step_id in rows]
    return tuple(
        step_id
        for step_id in composites
        if (step_id == named and (bool(restart.path) or plan.steps[step_id].step.kind is not StepKind.WHILE))
        or (step_id != named and rows[step_id].status not in COMPLETE)
    )
