"""The start command that a trigger makes from its signals."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from uuid import UUID

import msgspec

from kapelle.processors.params import SEL, Context, Evaluated, ParamError, WorkflowScope, evaluate
from kapelle.processors.params.host import ParamsHost, SignalParams
from kapelle.processors.params.scopes import Known
from kapelle.processors.params.stored import values_json
from kapelle.processors.sel import SelError, Value, seeded
from kapelle.processors.signals.bounds import params_in
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


class TriggerHost(ParamsHost):
    """What `params.` answers inside a trigger: the parameters of its signals, and its own. There is no instance yet."""

    def __init__(self, signals: Mapping[str, Mapping[str, Value]], seed: str) -> None:
        only = next(iter(signals.values())) if len(signals) == 1 else None
        super().__init__(None, seed, signals=SignalParams(only, signals))
        self.own: dict[str, Evaluated] = {}

    def get(self, name: str) -> Value:
        """A parameter of the trigger."""
        return self.own[name].value if name in self.own else None

    def contains(self, name: str) -> bool:
        """Whether the trigger has it."""
        return name in self.own


def start_of(row: TriggerRow, trigger: Trigger, joined: Joined, now_ms: int) -> c.Start:
    """The start, always with the same id for the same signals. Raises `NotStarted`."""
    used = joined.signals
    signals = {signal.name: params_in(signal.params) for signal in used}
    identity = f"{row.workflow_id}/{row.trigger_id}/" + "/".join(f"{signal.name}:{signal.sequence}" for signal in used)
    host = TriggerHost(signals, identity)
    scope = WorkflowScope(row.workflow_id, host)
    context = Context(SEL, now_ms, identity, host)
    try:
        host.own = evaluate(trigger.definitions(), scope, context)
    except ParamError as error:
        raise NotStarted(str(error)) from error
    if trigger.condition is not None and not _true(trigger.condition, scope, host, context):
        raise NotStarted(f"The condition {trigger.condition!r} is not true")
    dedup = identity
    if trigger.dedup_expr is not None:
        value = _value(trigger.dedup_expr, scope, host, context)
        if value is None:
            raise NotStarted(f"Expected {trigger.dedup_expr!r} to have a value, but it is null")
        dedup = str(value)
    initiator: dict[str, object] = {
        "type": "SIGNAL",
        "trigger_uuid": row.trigger_id,
        "signal_id_map": {signal.name: signal.sequence for signal in used},
        "signals": signals,
        "params": msgspec.Raw(values_json(host.own).encode()),
    }
    if len(used) > 1:
        initiator["last_signal"] = used[joined.last].name
    return c.Start(
        request_id=str(UUID(bytes=md5(dedup.encode(), usedforsecurity=False).digest(), version=3)),
        initiator=msgspec.json.encode(initiator).decode(),
        persist_failed_run=True,
    )


def _true(text: str, scope: WorkflowScope, host: TriggerHost, context: Context) -> bool:
    value = _value(text, scope, host, context)
    if not isinstance(value, bool):
        raise NotStarted(f"Expected the condition {text!r} to be true or false, but it is {value!r}")
    return value


def _value(text: str, scope: WorkflowScope, host: TriggerHost, context: Context) -> Value:
    try:
        program = SEL.program(text, context.budget)
        inputs = {name: _input(name, scope, host) for name in program.names if name != "params"}
        return program.value(inputs, seeded(f"{context.seed}/{text}", context.now_ms, host), context.budget)
    except SelError as error:
        raise NotStarted(f"Expected {text!r} to have a value, but {error}") from error


def _input(name: str, scope: WorkflowScope, host: TriggerHost) -> Value:
    if name in host.own:
        return host.own[name].value
    value = scope.find(name, {}, {})
    if not isinstance(value, Known):
        raise NotStarted(f"Expected a parameter of the trigger or of its signals, but found {name!r}")
    return value.value
