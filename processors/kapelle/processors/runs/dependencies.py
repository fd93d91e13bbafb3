"""Signals that a step waits for.

A step with dependencies waits until each of them has a signal that matches; one of the past will do, and many steps may
use the same one. What it has it keeps over retries and restarts.

Two keys decide here: `signals` knows what was announced, `runs` knows who waits. A signal may be matched while the
attempt that asked for it is ended, and its answer then finds another attempt, or none. So an answer names the run, the
iteration and the attempt that asked, and counts for nothing else.
"""

from collections.abc import Iterator

from kapelle.processors.definitions.models import SignalDependency
from kapelle.processors.params import Definition, ParamType
from kapelle.processors.runs.announcements import BadSignal, checked_name, scalar_of
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.states import UP_TO_SIGNALS
from kapelle.processors.runs.tables import BYPASSED
from kapelle.processors.signals.matching import Condition, Operator, conditions_json
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus


def are_there(context: RunContext, step: StepPlan, attempt: Attempt) -> bool:
    """Whether a step has all its signals. If not it waits, and asks for those that it lacks."""
    wanted = list(_wanted(context, step, attempt))
    key, step_id, run = context.key, attempt.step_id, context.run
    rows = [context.state.waits.get((key, step_id, index)) for index in range(len(wanted))]
    missing = [index for index, row in enumerate(rows) if row is None or row.sequence is None]
    if not missing:
        return True
    context.change(attempt, UP_TO_SIGNALS)
    names, matches = tuple(name for name, _ in wanted), tuple(match for _, match in wanted)
    dependencies = step.step.signal_dependencies
    context.draft.emit(
        c.DependenciesSet(
            run_id=run.run_id,
            step_id=step_id,
            attempt=attempt.attempt,
            iteration=attempt.iteration,
            names=names,
            matches=matches,
            at_ms=context.now_ms,
        )
    )
    for index in missing:
        asked = c.AwaitSignal(
            workflow_id=run.workflow_id,
            instance_id=run.instance_id,
            run_id=run.run_id,
            step_id=step_id,
            attempt=attempt.attempt,
            iteration=attempt.iteration,
            index=index,
            match=matches[index],
            is_latest=dependencies[index].is_latest,
        )
        context.draft.send(SIGNAL_INTERNAL, names[index], asked)
    return False


def is_waiting(context: RunContext, step_id: str) -> bool:
    """Whether another attempt at a step would wait for a signal: for one that the last attempt has waited for."""
    return any(row.sequence is None for _, row in context.state.waits.prefix((context.key, step_id)))


def _wanted(context: RunContext, step: StepPlan, attempt: Attempt) -> Iterator[tuple[str, str]]:
    """The name and the conditions of each dependency, its expressions evaluated."""
    for dependency in step.step.signal_dependencies:
        values = context.expressions.values(_definitions(dependency), step, attempt, {})
        name = checked_name(values.pop("").value)
        conditions = (
            _condition(param, dependency.match_params[param].operator, value.value) for param, value in values.items()
        )
        yield name, conditions_json(tuple(conditions))


def _condition(param: str, operator: Operator, value: object) -> Condition:
    if operator is not Operator.IN:
        return Condition(param, operator, scalar_of(param, value))
    if not isinstance(value, list | tuple):
        raise BadSignal(f"Expected a list of values for {param!r} of a signal, but found {value!r}")
    return Condition(param, operator, [scalar_of(param, item) for item in value])


def _definitions(dependency: SignalDependency) -> dict[str, Definition]:
    named = Definition(type=ParamType.STRING, value=dependency.name)
    return {"": named, **{param: match.param for param, match in dependency.match_params.items()}}


def match(context: RunContext, told: c.MatchDependency) -> bool:
    """A signal is there. Says whether it was the last one that a step waited for, so that the step goes on."""
    key, step_id = context.key, told.step_id
    row, wait = context.row(step_id), context.state.waits.get((key, step_id, told.index))
    asked = (told.run_id, told.iteration, told.attempt)
    if row is None or row.status is not StepStatus.WAITING_FOR_SIGNALS or wait is None or wait.sequence is not None:
        return False  # it does not wait for this any more
    if (row.run_id, row.iteration, row.attempt) != asked:
        return False  # an earlier attempt had asked, maybe for something else; this one has asked itself
    context.draft.emit(
        c.DependencyMatched(
            run_id=told.run_id,
            step_id=step_id,
            attempt=told.attempt,
            iteration=told.iteration,
            index=told.index,
            name=told.name,
            signal_id=told.signal_id,
            sequence=told.sequence,
            params=told.params,
            at_ms=context.now_ms,
        )
    )
    return all(wait.sequence is not None for _, wait in context.state.waits.prefix((key, step_id)))


def bypass(context: RunContext, step_id: str) -> None:
    """Somebody wants a step to go on without the signals that it lacks. A retry will not wait for them again."""
    row = context.row(step_id)
    for (_, _, index), wait in list(context.state.waits.prefix((context.key, step_id))):
        if wait.sequence is None:
            bypassed = c.DependencyMatched(
                run_id=context.run.run_id,
                step_id=step_id,
                attempt=row.attempt if row else 1,
                iteration=row.iteration if row else 1,
                index=index,
                name=wait.name,
                signal_id="",
                sequence=BYPASSED,
                params="{}",
                at_ms=context.now_ms,
            )
            context.draft.emit(bypassed)


def forget(context: RunContext, step_id: str) -> None:
    """Ask for no more signals for a step."""
    run = context.run
    for (_, _, index), wait in context.state.waits.prefix((context.key, step_id)):
        if wait.sequence is None:
            asked = c.ForgetAwait(
                workflow_id=run.workflow_id, instance_id=run.instance_id, step_id=step_id, index=index
            )
            context.draft.send(SIGNAL_INTERNAL, wait.name, asked)
