"""Signals that a step waits for, and signals that it announces.

A step with dependencies waits until each of them has a signal that matches; one of the past will do, and many steps may
use the same one. What it has it keeps over retries and restarts. A step that has succeeded announces its outputs, each
with an id made from its name and parameters, so that doing the step again does not announce them twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from kapelle.processors.definitions.models import SignalDependency
from kapelle.processors.params import Definition, Evaluated, ParamError, ParamType
from kapelle.processors.routes import SIGNAL_INTERNAL
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.causes import cause_of
from kapelle.processors.runs.states import UP_TO_SIGNALS
from kapelle.processors.signals.bounds import NAME_CHARS_MAX, divided, is_param, too_large
from kapelle.processors.signals.matching import Condition, Operator, Scalar, conditions_json
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus

if TYPE_CHECKING:
    from kapelle.processors.runs.execution import Execution
    from kapelle.processors.runs.plan import StepPlan

SIGNALS_MAX: Final = 100
BYPASSED: Final = 0  # the number of no signal


class BadSignal(ParamError):
    """A signal that cannot be waited for or announced."""


class Said(msgspec.Struct, frozen=True):
    """A signal as the work itself describes it."""

    name: str
    params: dict[str, Any] = {}
    payload: dict[str, Any] = {}


_said_decoder: Final = msgspec.json.Decoder(list[Said])


def are_there(execution: Execution, step: StepPlan, attempt: Attempt) -> bool:
    """Whether a step has all its signals. If not it waits, and asks for those that it lacks."""
    wanted = list(_wanted(execution, step, attempt))
    key, step_id, run = execution.key, attempt.step_id, execution.run
    rows = [execution.state.waits.get((key, step_id, index)) for index in range(len(wanted))]
    missing = [index for index, row in enumerate(rows) if row is None or row.sequence is None]
    if not missing:
        return True
    execution.change(attempt, UP_TO_SIGNALS)
    names, matches = tuple(name for name, _ in wanted), tuple(match for _, match in wanted)
    dependencies = step.step.signal_dependencies
    execution.draft.emit(
        c.DependenciesSet(run.run_id, step_id, attempt.attempt, attempt.iteration, names, matches, execution.now_ms)
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
        execution.draft.send(SIGNAL_INTERNAL, names[index], asked)
    return False


def _wanted(execution: Execution, step: StepPlan, attempt: Attempt) -> Iterator[tuple[str, str]]:
    """The name and the conditions of each dependency, its expressions evaluated."""
    for dependency in step.step.signal_dependencies:
        found = execution.expressions.values(_definitions(dependency), step, attempt, {})
        name = _name(found.pop("").value)
        conditions = (
            _condition(param, dependency.match_params[param].operator, one.value) for param, one in found.items()
        )
        yield name, conditions_json(tuple(conditions))


def _condition(param: str, operator: Operator, value: Any) -> Condition:
    if operator is not Operator.IN:
        return Condition(param, operator, _scalar(param, value))
    if not isinstance(value, list | tuple):
        raise BadSignal(f"Expected a list that {param!r} of a signal is in, but found {value!r}")
    return Condition(param, operator, [_scalar(param, one) for one in value])


def _definitions(dependency: SignalDependency) -> dict[str, Definition]:
    named = Definition(type=ParamType.STRING, value=dependency.name)
    return {"": named, **{param: one.param for param, one in dependency.match_params.items()}}


def matched(execution: Execution, told: c.MatchDependency) -> None:
    """A signal is there: if it was the last one that was missing, the step goes on."""
    key, step_id = execution.key, told.step_id
    row, wait = execution.state.steps.get((key, step_id)), execution.state.waits.get((key, step_id, told.index))
    asked = (told.run_id, told.iteration, told.attempt)
    if row is None or row.status is not StepStatus.WAITING_FOR_SIGNALS or wait is None or wait.sequence is not None:
        return  # it does not wait for this any more
    if (row.run_id, row.iteration, row.attempt) != asked:
        return  # an earlier attempt had asked, maybe for something else; this one has asked itself
    execution.draft.emit(
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
            at_ms=execution.now_ms,
        )
    )
    if all(one.sequence is not None for _, one in execution.state.waits.prefix((key, step_id))):
        go_on(execution, step_id)


def bypass(execution: Execution, step_id: str) -> None:
    """Somebody wants a step to go on without the signals that it lacks. A retry will not wait for them again."""
    row = execution.state.steps.get((execution.key, step_id))
    for (_, _, index), wait in list(execution.state.waits.prefix((execution.key, step_id))):
        if wait.sequence is None:
            bypassed = c.DependencyMatched(
                run_id=execution.run.run_id,
                step_id=step_id,
                attempt=row.attempt if row else 1,
                iteration=row.iteration if row else 1,
                index=index,
                name=wait.name,
                signal_id="",
                sequence=BYPASSED,
                params="{}",
                at_ms=execution.now_ms,
            )
            execution.draft.emit(bypassed)
    go_on(execution, step_id)


def go_on(execution: Execution, step_id: str) -> None:
    """A waiting step waits no more."""
    row = execution.state.steps.get((execution.key, step_id))
    if row is not None:
        execution.work(execution.plan.steps[step_id], attempt_of(step_id, row), ())


def forget(execution: Execution, step_id: str) -> None:
    """Ask for no more signals for a step."""
    run = execution.run
    for (_, _, index), wait in execution.state.waits.prefix((execution.key, step_id)):
        if wait.sequence is None:
            asked = c.ForgetAwait(run.workflow_id, run.instance_id, step_id, index)
            execution.draft.send(SIGNAL_INTERNAL, wait.name, asked)


def outputs(
    execution: Execution, step: StepPlan, attempt: Attempt, params: Mapping[str, Evaluated], said: str | None
) -> list[c.AnnounceSignal]:
    """The signals that a step announces: those of its definition, then those that its work asks for."""
    found: list[c.AnnounceSignal] = []
    for output in step.step.signal_outputs:
        definitions = {"": Definition(type=ParamType.STRING, value=output.name), **output.params}
        values = execution.expressions.values(definitions, step, attempt, params)
        name = _name(values.pop("").value)
        scalars = {param: _scalar(param, one.value) for param, one in values.items()}
        found.append(_announcement(execution, attempt, name, (scalars, output.payload)))
    if said is not None:
        found += [_announcement(execution, attempt, _name(one.name), _divided(one)) for one in _parsed(said)]
    return found


def _parsed(said: str) -> list[Said]:
    try:
        found = _said_decoder.decode(said)
    except msgspec.MsgspecError as error:
        raise BadSignal(f"Expected signals as a list of objects with a name, but {error}") from None
    if len(found) > SIGNALS_MAX:
        raise BadSignal(f"Expected at most {SIGNALS_MAX} signals of one step, but found {len(found)}")
    return found


def _divided(said: Said) -> tuple[dict[str, str | int], Mapping[str, Any]]:
    """Strings and integers of 64 bits are parameters, all else is payload."""
    params, rest = divided(said.params)
    return params, {**rest, **said.payload}


def _announcement(
    execution: Execution, attempt: Attempt, name: str, content: tuple[Mapping[str, str | int], Mapping[str, Any]]
) -> c.AnnounceSignal:
    run, (params, payload) = execution.run, content
    source = {
        "workflow_id": run.workflow_id,
        "workflow_instance_id": run.instance_id,
        "workflow_run_id": run.run_id,
        "step_id": attempt.step_id,
        "step_attempt_id": attempt.attempt,
        "iteration": attempt.iteration,
        "cause": cause_of(run.initiator),
    }
    made = c.AnnounceSignal(
        name=name,
        signal_id=signal_id(name, params),
        params=msgspec.json.encode(params, order="sorted").decode(),
        payload=msgspec.json.encode(payload).decode(),
        happened_at_ms=execution.now_ms,
        source=msgspec.json.encode(source).decode(),
    )
    if (reason := too_large(made)) is not None:
        raise BadSignal(reason)
    return made


def signal_id(name: str, params: Mapping[str, str | int]) -> str:
    """The id of a signal that was given none: the same name and parameters are the same signal."""
    text = msgspec.json.encode({"name": name, "params": params}, order="sorted")
    return str(UUID(bytes=md5(text, usedforsecurity=False).digest(), version=3))


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARS_MAX:
        raise BadSignal(f"Expected the name of a signal with at most {NAME_CHARS_MAX} characters, but found {value!r}")
    return value


def _scalar(param: str, value: Any) -> Scalar:
    if not is_param(value):
        raise BadSignal(f"Expected a string or an integer for {param!r} of a signal, but found {value!r}")
    return value
