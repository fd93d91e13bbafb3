"""The start that a trigger makes of its signals."""

from __future__ import annotations

from hashlib import md5
from typing import Any
from uuid import UUID

import msgspec

from kapelle.processors.params import SEL, Context, Evaluated, ParamError, WorkflowScope, evaluate
from kapelle.processors.params.scopes import Known
from kapelle.processors.params.stored import values_json
from kapelle.processors.sel import Extension, ExtensionFailed, SelError, Value, seeded
from kapelle.processors.signals.applying import params_decoder
from kapelle.processors.triggers.definition import Trigger
from kapelle.processors.triggers.tables import TriggerRow
from kapelle.schemas import contracts as c


class NotStarted(Exception):
    """The signals of a trigger are together, but nothing is to be started. The message says why."""


class Joined(msgspec.Struct, frozen=True, gc=False):
    """The signals of a trigger that are together, in its order, and which of them came last."""

    value: str
    signals: tuple[c.JoinedSignal, ...]
    last: int


class SignalFacts(Extension):
    """What `params.` answers inside a trigger: the parameters of its signals, and its own."""

    def __init__(self, used: tuple[c.JoinedSignal, ...]) -> None:
        self._signals: dict[str, dict[str, Value]] = {one.name: params_decoder.decode(one.params) for one in used}
        self.own: dict[str, Evaluated] = {}

    def get(self, name: str) -> Value:
        """A parameter of the trigger."""
        return self.own[name].value if name in self.own else None

    def contains(self, name: str) -> bool:
        """Whether the trigger has it."""
        return name in self.own

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        """`getFromSignal` and its form with a default."""
        match function, args:
            case "getFromSignal", (str(param),):
                return self._found(self._only(), param)
            case "getFromSignal", (str(name), str(param)):
                return self._found(name, param)
            case "getFromSignalOrDefault", (str(param), default):
                return self._signals.get(self._only(), {}).get(param, default)
            case "getFromSignalOrDefault", (str(name), str(param), default):
                return self._signals.get(name, {}).get(param, default)
            case _:
                return self.missing(function, *args)

    def _only(self) -> str:
        if len(self._signals) > 1:
            raise ExtensionFailed(f"Expected the name of one of the signals ({', '.join(self._signals)})")
        return next(iter(self._signals))

    def _found(self, name: str, param: str) -> Value:
        if name not in self._signals or param not in self._signals[name]:
            raise ExtensionFailed(f"Expected a signal {name!r} with a parameter {param!r}, but there is none")
        return self._signals[name][param]


def start_of(row: TriggerRow, trigger: Trigger, joined: Joined, now_ms: int) -> c.Start:
    """The start, always with the same id for the same signals. Raises `NotStarted`."""
    used = joined.signals
    facts = SignalFacts(used)
    identity = f"{row.workflow_id}/{row.trigger_id}/" + "/".join(f"{one.name}:{one.sequence}" for one in used)
    scope = WorkflowScope(row.workflow_id, facts)
    context = Context(SEL, now_ms, identity, facts)
    try:
        facts.own = evaluate(trigger.definitions(), scope, context)
    except ParamError as error:
        raise NotStarted(str(error)) from error
    if trigger.condition is not None and not _true(trigger.condition, scope, facts, context):
        raise NotStarted(f"The condition {trigger.condition!r} is not true")
    dedup = identity
    if trigger.dedup_expr is not None:
        value = _value(trigger.dedup_expr, scope, facts, context)
        if value is None:
            raise NotStarted(f"Expected {trigger.dedup_expr!r} to have a value, but it is null")
        dedup = str(value)
    initiator: dict[str, Any] = {
        "type": "SIGNAL",
        "trigger_uuid": row.trigger_id,
        "signal_id_map": {one.name: one.sequence for one in used},
        "signals": {one.name: params_decoder.decode(one.params) for one in used},
        "params": msgspec.Raw(values_json(facts.own).encode()),
    }
    if len(used) > 1:
        initiator["last_signal"] = used[joined.last].name
    return c.Start(
        request_id=str(UUID(bytes=md5(dedup.encode(), usedforsecurity=False).digest(), version=3)),
        initiator=msgspec.json.encode(initiator).decode(),
        persist_failed_run=True,
    )


def _true(text: str, scope: WorkflowScope, facts: SignalFacts, context: Context) -> bool:
    value = _value(text, scope, facts, context)
    if not isinstance(value, bool):
        raise NotStarted(f"Expected the condition {text!r} to be true or false, but it is {value!r}")
    return value


def _value(text: str, scope: WorkflowScope, facts: SignalFacts, context: Context) -> Value:
    try:
        program = SEL.program(text, context.budget)
        inputs = {name: _input(name, scope, facts) for name in program.names if name != "params"}
        host = seeded(f"{context.seed}/{text}", context.now_ms, facts)
        return program.value(inputs, host, context.budget)
    except SelError as error:
        raise NotStarted(f"Expected {text!r} to have a value, but {error}") from error


def _input(name: str, scope: WorkflowScope, facts: SignalFacts) -> Value:
    if name in facts.own:
        return facts.own[name].value
    found = scope.find(name, {}, {})
    if not isinstance(found, Known):
        raise NotStarted(f"Expected a parameter of the trigger or of its signals, but found {name!r}")
    return found.value
