"""Signals that a step announces. Signals that a step waits for are in `dependencies`.

A step that has succeeded announces its outputs, each with an id made from its name and parameters, so that doing the
step again does not announce them twice.
"""

from collections.abc import Mapping
from hashlib import md5
from typing import Any, Final
from uuid import UUID

import msgspec

from kapelle.processors.params import Definition, Evaluated, ParamError, ParamType
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.causes import cause_of
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.signals.bounds import NAME_CHARS_MAX, divided, is_param, too_large
from kapelle.processors.signals.matching import Scalar
from kapelle.schemas import contracts as c

SIGNALS_MAX: Final = 100


class BadSignal(ParamError):
    """A signal that cannot be waited for or announced."""


class ReportedSignal(msgspec.Struct, frozen=True):
    """A signal as a worker reports it."""

    name: str
    params: dict[str, Any] = {}
    payload: dict[str, Any] = {}


_reported_decoder: Final = msgspec.json.Decoder(list[ReportedSignal])


def outputs(
    context: RunContext, step: StepPlan, attempt: Attempt, params: Mapping[str, Evaluated], reported: str | None
) -> list[c.AnnounceSignal]:
    """The signals that a step announces: those of its definition, then those that its worker reports."""
    announced: list[c.AnnounceSignal] = []
    for output in step.step.signal_outputs:
        definitions = {"": Definition(type=ParamType.STRING, value=output.name), **output.params}
        values = context.expressions.values(definitions, step, attempt, params)
        name = checked_name(values.pop("").value)
        scalars = {param: scalar_of(param, evaluated.value) for param, evaluated in values.items()}
        announced.append(_announcement(context, attempt, name, (scalars, output.payload)))
    if reported is not None:
        announced += [
            _announcement(context, attempt, checked_name(signal.name), _divided(signal)) for signal in _parsed(reported)
        ]
    return announced


def _parsed(reported: str) -> list[ReportedSignal]:
    try:
        signals = _reported_decoder.decode(reported)
    except msgspec.MsgspecError as error:
        raise BadSignal(f"Expected signals as a list of objects with a name, but {error}") from None
    if len(signals) > SIGNALS_MAX:
        raise BadSignal(f"Expected at most {SIGNALS_MAX} signals of one step, but found {len(signals)}")
    return signals


def _divided(signal: ReportedSignal) -> tuple[dict[str, str | int], Mapping[str, object]]:
    """Strings and integers of 64 bits are parameters, all else is payload."""
    params, rest = divided(signal.params)
    return params, {**rest, **signal.payload}


def _announcement(
    context: RunContext, attempt: Attempt, name: str, content: tuple[Mapping[str, str | int], Mapping[str, object]]
) -> c.AnnounceSignal:
    run, (params, payload) = context.run, content
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
        happened_at_ms=context.now_ms,
        source=msgspec.json.encode(source).decode(),
    )
    if (reason := too_large(made)) is not None:
        raise BadSignal(reason)
    return made


def signal_id(name: str, params: Mapping[str, str | int]) -> str:
    """The id of a signal that was given none: the same name and parameters are the same signal."""
    text = msgspec.json.encode({"name": name, "params": params}, order="sorted")
    return str(UUID(bytes=md5(text, usedforsecurity=False).digest(), version=3))


def checked_name(value: object) -> str:
    """The name of a signal, or a `BadSignal` that says why it is none."""
    if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARS_MAX:
        raise BadSignal(f"Expected the name of a signal with at most {NAME_CHARS_MAX} characters, but found {value!r}")
    return value


def scalar_of(param: str, value: object) -> Scalar:
    """The value of a parameter of a signal, or a `BadSignal` that says why it is none."""
    if not is_param(value):
        raise BadSignal(f"Expected a string or an integer for {param!r} of a signal, but found {value!r}")
    return value
