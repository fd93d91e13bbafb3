"""From the models back to JSON: what is at its default is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.definitions.json_text import write_json
from kapelle.processors.definitions.models import (
    PREDEFINED,
    Backoff,
    BackoffType,
    RetryPolicy,
    SignalDependency,
    SignalOutput,
    SignalTrigger,
    Step,
    StepKind,
    TimeTrigger,
    TimeTriggerType,
    Workflow,
)
from kapelle.processors.params import Definition, definition_json

Raw = dict[str, Any]
LATEST: Final = {"match": "latest"}
PREDEFINED_BY_CRON: Final = {cron: name for name, cron in reversed(PREDEFINED.items())}


def workflow_json(workflow: Workflow) -> str:
    """The workflow as JSON, from which the same workflow can be parsed."""
    special = {
        "name": None if workflow.name == workflow.id else workflow.name,
        "tags": [tag.as_json() for tag in workflow.tags],
        "params": _params(workflow.params),
        "steps": [_step(step) for step in workflow.steps],
        "time_triggers": [_time_trigger(trigger) for trigger in workflow.time_triggers],
        "signal_triggers": [_signal_trigger(trigger) for trigger in workflow.signal_triggers],
    }
    return write_json(_without_defaults(workflow, special, keep={"steps"}))


def _without_defaults(model: msgspec.Struct, special: Raw, *, keep: set[str] | None = None) -> Raw:
    """The fields of a model that say something; `special` are those with a form of their own."""
    out: Raw = {}
    for field in msgspec.structs.fields(model):
        if field.name in special:
            value = special[field.name]
            is_default = not value
        else:
            value = getattr(model, field.name)
            is_default = value == _default(field)
        if not is_default or field.name in (keep or ()):
            out[field.name] = value
    return out


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _params(params: Mapping[str, Definition]) -> Raw:
    return {name: definition_json(definition) for name, definition in params.items()}


def _step(step: Step) -> Raw:
    special = {
        "kind": None,
        "type": step.type if step.kind is StepKind.STEP else None,
        "name": None if step.name == step.id else step.name,
        "params": _params(step.params),
        "successors": None,
        "tags": [tag.as_json() for tag in step.tags],
        "retry_policy": _retry_policy(step.retry_policy),
        "signal_dependencies": [_dependency(dependency) for dependency in step.signal_dependencies],
        "signal_outputs": [_output(output) for output in step.signal_outputs],
        "steps": [_step(inner) for inner in step.steps],
    }
    has_steps = step.kind in (StepKind.FOREACH, StepKind.WHILE)
    out = _without_defaults(step, special, keep={"steps"} if has_steps else None)
    if step.successors:
        out["transition"] = {"successors": dict(step.successors)}
    return {str(step.kind): out}


def _retry_policy(policy: RetryPolicy) -> Raw:
    return _without_defaults(policy, {"backoff": _backoff(policy.backoff)})


def _backoff(backoff: Backoff) -> Raw:
    out = _without_defaults(backoff, {})
    if backoff.type is BackoffType.FIXED_BACKOFF:
        return {name: value for name, value in out.items() if name == "type" or name.endswith("backoff_in_secs")}
    return out


def _dependency(dependency: SignalDependency) -> Raw:
    matches = {
        name: {"param": definition_json(match.param), "operator": str(match.operator)}
        for name, match in dependency.match_params.items()
    }
    out = _without_defaults(dependency, {"match_params": matches, "is_latest": None})
    return {**out, **LATEST} if dependency.is_latest else out


def _output(output: SignalOutput) -> Raw:
    return _without_defaults(output, {"params": _params(output.params)})


def _signal_trigger(trigger: SignalTrigger) -> Raw:
    definitions = {
        name: {
            "match_params": {
                key: {"value": match.value, "operator": str(match.operator)}
                for key, match in signal.match_params.items()
            },
            "join_keys": list(signal.join_keys),
            **(LATEST if signal.is_latest else {}),
        }
        for name, signal in trigger.definitions.items()
    }
    special = {"definitions": definitions, "params": _params(trigger.params), "since_at_ms": None}
    out = _without_defaults(trigger, special)
    return out if trigger.since_at_ms is None else {**out, "from": trigger.since_at_ms or "earliest"}


def _time_trigger(trigger: TimeTrigger) -> Raw:
    out = _without_defaults(trigger, {})
    if trigger.type is TimeTriggerType.PREDEFINED:
        out["expression"] = PREDEFINED_BY_CRON[out.pop("cron")]
    return out
