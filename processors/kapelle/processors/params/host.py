"""What `params.` answers about an instance and its initiator, wherever an expression stands.

| expression | facts |
|---|---|
| a definition that is pushed (dry run) | those of an instance that nobody starts: its initiator is VALIDATION |
| a parameter of a workflow | those of the run that is about to be created |
| a parameter of a step, a condition | those of the run |
| a trigger | its signals only: there is no instance yet |

All places share the facts, the table of fields and the look-up of signals, so one question has one answer. The facts
are texts of events, unchanged, so a replay gives the same answers. JSON is decoded when an expression asks for a field.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from kapelle.processors.initiators import Initiator, initiator_of
from kapelle.processors.keys import run_key
from kapelle.processors.lazy import lazy
from kapelle.processors.sel import Extension, ExtensionFailed, Value, seeded

FRESH: Final = "START_FRESH_NEW_RUN"
RESTARTED: Final = "RESTART_FROM_BEGINNING"  # of a restart that does not say how
ENVIRONMENT: Final = ""  # no deployment has a name yet

_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode


class SignalParams(msgspec.Struct, frozen=True):
    """The parameters of the signals that a trigger fired with, and those that are meant if no signal is named."""

    unnamed: Mapping[str, Any] | None  # None if a signal must be named
    by_name: Mapping[str, Any]

    def find(self, *names: Value) -> Value:
        """The value of `param`, or of `signal, param`; None if there is none."""
        return self._of(names[:-1]).get(names[-1])

    def get(self, *names: Value) -> Value:
        """The same, or an error that lists the parameters that there are."""
        value = self.find(*names)
        if value is None:
            whose = f"signal {names[0]!r}" if len(names) > 1 else "trigger"
            known = ", ".join(self._of(names[:-1])) or "none"
            raise ExtensionFailed(f"Expected a parameter of the {whose} ({known}), but found {names[-1]!r}")
        return value

    def _of(self, signal: tuple[Value, ...]) -> Mapping[str, object]:
        if not signal and self.unnamed is None:
            raise ExtensionFailed(f"Expected the name of one of the signals ({', '.join(self.by_name)})")
        params = self.by_name.get(signal[0]) if signal else self.unnamed
        return params if isinstance(params, dict) else {}


class _Owned(msgspec.Struct):
    owner: str | dict[str, Any] | None = None


class _Restarted(msgspec.Struct):
    policy: str = RESTARTED


_decode_owner: Final = msgspec.json.Decoder(_Owned).decode
_decode_restart: Final = msgspec.json.Decoder(_Restarted).decode


class InstanceFacts(msgspec.Struct, frozen=True, dict=True):
    """An instance, one of its runs, and what started it. JSON is kept as the events hold it."""

    workflow_id: str
    instance_id: int
    run_id: int
    author: str  # of the start or restart that asked for the run
    initiated_by: str
    properties: str  # as they were when the instance was created
    restart: str | None
    first_timezone: str  # of the first time trigger

    @property
    def name(self) -> str:
        """The identity of the run."""
        return f"{self.workflow_id}:{self.instance_id}:{self.run_id}"

    @property
    def key(self) -> str:
        """The key of the instance."""
        return run_key(self.workflow_id, self.instance_id)

    @lazy
    def initiator(self) -> Initiator:
        """What started the instance."""
        return initiator_of(self.initiated_by)

    @lazy
    def signals(self) -> SignalParams:
        """The parameters of the trigger that started the instance, and those of its signals."""
        unnamed, by_name = _decode(self.initiator.params), _decode(self.initiator.signals)
        return SignalParams(unnamed or {}, by_name if isinstance(by_name, dict) else {})

    @lazy
    def owner(self) -> str:
        """The name of the owner of the workflow."""
        owner = _decode_owner(self.properties).owner or ""
        return owner if isinstance(owner, str) else str(owner.get("name") or "")

    @lazy
    def policy(self) -> str:
        """How the run began: afresh, or as which restart."""
        if self.restart is None:
            return FRESH
        try:
            return _decode_restart(self.restart).policy
        except msgspec.MsgspecError:
            return RESTARTED


# What `params.getFromInstance` knows.
FIELDS: Final[Mapping[str, Callable[[InstanceFacts], Value]]] = {
    "INITIATOR_TIMEZONE": lambda facts: facts.initiator.timezone or "",
    "INITIATOR_TYPE": lambda facts: facts.initiator.kind,
    "INITIATOR_RUNNER_NAME": lambda facts: facts.author,
    "SCHEDULED_TIME": lambda facts: facts.initiator.trigger_time or 0,  # always a LONG, also where nothing is scheduled
    "RUN_POLICY": lambda facts: facts.policy,
    "owner": lambda facts: facts.owner,
    "FIRST_TIME_TRIGGER_TIMEZONE": lambda facts: facts.first_timezone,
    "workflow_id": lambda facts: facts.workflow_id,
    "workflow_instance_id": lambda facts: facts.instance_id,
    "workflow_run_id": lambda facts: facts.run_id,
}


class ParamsHost(Extension):
    """Answers the functions of `params`. A replay makes the same ids: they come from the seed and a count."""

    def __init__(self, facts: InstanceFacts | None, seed: str, *, signals: SignalParams | None = None) -> None:
        self.facts = facts
        self.seed = seed
        self._given_signals = signals

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        """Answer one function of `params`."""
        match function, args:
            case "getFromInstance", (str(field),) if self.facts is not None:
                return self._field(field, self.facts)
            case "getFromSignal", (str(),) | (str(), str()):
                return self._signals.get(*args)
            case "getFromSignalOrDefault", (str(), default) | (str(), str(), default):
                value = self._signals.find(*args[:-1])
                return default if value is None else value
            case "nextUniqueId", () if self._next_id is not None:
                return self._next_id()
            case "getExecutionEnvironment", ():
                return ENVIRONMENT
            case _:
                return self.missing(function, *args)

    def _field(self, field: str, facts: InstanceFacts) -> Value:
        answer = FIELDS.get(field)
        if answer is None:
            raise ExtensionFailed(f"Expected a field of the instance ({', '.join(FIELDS)}), but found {field!r}")
        return answer(facts)

    @lazy
    def _signals(self) -> SignalParams:
        if self._given_signals is not None:
            return self._given_signals
        return NO_SIGNALS if self.facts is None else self.facts.signals

    @lazy
    def _next_id(self) -> Callable[[], str] | None:
        return seeded(f"{self.seed}/ids", 0).new_id


NO_SIGNALS: Final = SignalParams({}, {})
