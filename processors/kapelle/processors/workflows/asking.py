"""What the expressions of a workflow's parameters may ask about the start of its instance."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import count
from typing import Any, Final
from uuid import UUID

import msgspec

from kapelle.processors.params import Source
from kapelle.processors.sel import Budget, Extension, ExtensionFailed, Value

# How an instance may be started, and at which stage its run parameters are then merged.
STARTED_BY: Final[Mapping[str, Source]] = {
    "MANUAL": Source.LAUNCH,
    "TIME": Source.TIME_TRIGGER,
    "SIGNAL": Source.SIGNAL,
    "SUBWORKFLOW": Source.SUBWORKFLOW,
}


class Initiator(msgspec.Struct, frozen=True):
    """Who or what starts an instance. `body` is all that was said about it."""

    type: str
    body: Mapping[str, Any]

    @property
    def source(self) -> Source:
        """The stage at which run parameters are merged."""
        return STARTED_BY[self.type]

    @property
    def timezone(self) -> str:
        """The zone of the trigger, if it has one."""
        return str(self.body.get("timezone") or "")


class Asked(msgspec.Struct, frozen=True):
    """The instance that is about to be. Starts of the same command are given one budget to share."""

    workflow_id: str
    instance_id: int
    run_id: int
    owner: str
    author: str
    initiator: Initiator
    first_timezone: str = ""
    policy: str = "START_FRESH_NEW_RUN"
    budget: Budget | None = None

    @property
    def name(self) -> str:
        """The identity of the run."""
        return f"{self.workflow_id}:{self.instance_id}:{self.run_id}"


FIELDS: Final[Mapping[str, Callable[[Asked], Value]]] = {
    "INITIATOR_TIMEZONE": lambda asked: asked.initiator.timezone,
    "INITIATOR_TYPE": lambda asked: asked.initiator.type,
    "INITIATOR_RUNNER_NAME": lambda asked: asked.author,
    "RUN_POLICY": lambda asked: asked.policy,
    "owner": lambda asked: asked.owner,
    "FIRST_TIME_TRIGGER_TIMEZONE": lambda asked: asked.first_timezone,
    "workflow_id": lambda asked: asked.workflow_id,
    "workflow_instance_id": lambda asked: asked.instance_id,
    "workflow_run_id": lambda asked: asked.run_id,
}


class StartExtension(Extension):
    """Answers from the initiator and the identity of the instance; nothing of steps, for there are none yet."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._ids = count()

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        """One of the functions that make sense before the first step."""
        answers: dict[str, Callable[..., Value]] = {
            "getFromInstance": self._from_instance,
            "getFromSignal": self._from_signal,
            "getFromSignalOrDefault": self._from_signal_or_default,
            "nextUniqueId": self._next_id,
        }
        answer = answers.get(function)
        return self.missing(function, *args) if answer is None else answer(*args)

    def _from_instance(self, field: str) -> Value:
        if field not in FIELDS:
            raise ExtensionFailed(f"Expected one of {', '.join(FIELDS)}, but found {field!r}")
        return FIELDS[field](self.asked)

    def _from_signal(self, *names: str) -> Value:
        found = self._signal_values(names[:-1]).get(names[-1])
        if found is None:
            raise ExtensionFailed(f"Expected a signal that gives {'.'.join(names)!r}, but none does")
        return found

    def _from_signal_or_default(self, *args: Value) -> Value:
        found = self._signal_values(args[:-2]).get(args[-2])
        return args[-1] if found is None else found

    def _signal_values(self, signal: tuple[Value, ...]) -> Mapping[str, Value]:
        """The trigger's own parameters, or those of one of its signals."""
        given = self.asked.initiator.body
        found = given.get("signals", {}).get(signal[0]) if signal else given.get("params")
        return found if isinstance(found, dict) else {}

    def _next_id(self) -> str:
        """An id that a replay makes again: from the identity of the run and a count."""
        digest = sha256(f"{self.asked.name}/{next(self._ids)}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))
