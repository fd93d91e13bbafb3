"""Where the references of a parameter lead: in a workflow, and in a step.

| in a workflow | leads to |
|---|---|
| `name` | the workflow's parameter |
| `signal__param` | a parameter of the signal that started it |

| in a step | leads to the first of |
|---|---|
| `name` | the step's own, if it has its value already; the workflow's; the step's own |
| `step__param` | the step's own, if it names this step; a finished step's; a parameter of a signal |

A step's own parameter that has no value yet gives way to the workflow's: this is what makes `i: "i + 1"` count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from kapelle.processors.params.definitions import Definitions
from kapelle.processors.params.errors import ParamError
from kapelle.processors.sel import Extension, SelError, Value

SEPARATOR = "__"


class Known(msgspec.Struct, frozen=True):
    """The reference leads to this value."""

    value: Value


class Own(msgspec.Struct, frozen=True):
    """The reference leads to one of the parameters that are being evaluated."""

    name: str


Resolved = Known | Own


class HasValue(Protocol):
    """An evaluated parameter, as far as a scope looks at it."""

    @property
    def value(self) -> object: ...


class Scope(Protocol):
    """Answers what a name means."""

    @property
    def where(self) -> str:
        """The scope in words, for errors."""
        ...

    def find(self, reference: str, own: Definitions, done: Mapping[str, HasValue], /) -> Resolved | None:
        """What the reference leads to, or None if nothing."""
        ...

    def param(self, name: str, done: Mapping[str, HasValue], /) -> Value:
        """The workflow parameter of that name for `params.get`, or None."""
        ...

    def waits_for(self, name: str, own: Definitions, /) -> bool:
        """Whether `params.get` of that name means a parameter that is evaluated now."""
        ...


class WorkflowScope(msgspec.Struct, frozen=True):
    """The scope of a workflow's parameters."""

    workflow_id: str
    signals: Extension
    separator: str = SEPARATOR

    @property
    def where(self) -> str:
        """The scope in words."""
        return f"workflow {self.workflow_id!r}"

    def find(self, reference: str, own: Definitions, _: Mapping[str, HasValue], /) -> Resolved | None:
        """What the reference leads to."""
        if reference in own:
            return Own(reference)
        if self.separator in reference:
            signal, _sep, param = reference.partition(self.separator)
            return _from_signal(self.signals, signal, param)
        return None

    def param(self, name: str, done: Mapping[str, HasValue], /) -> Value:
        """A parameter of the workflow that has its value."""
        return done[name].value if name in done else None

    def waits_for(self, name: str, own: Definitions, /) -> bool:
        """All parameters of the workflow are evaluated together."""
        return name in own


class AmbiguousReference(ParamError):
    """A reference could mean two steps."""

    def __init__(self, reference: str, one: str, two: str) -> None:
        super().__init__(f"Expected {reference!r} to mean one step, but both {one!r} and {two!r} exist")
        self.reference = reference


class StepScope(msgspec.Struct, frozen=True):
    """The scope of a step's parameters: its own, the workflow's, and those of finished steps of the same run."""

    step_id: str
    workflow: Mapping[str, HasValue]
    steps: Mapping[str, Mapping[str, HasValue]]
    signals: Extension
    separator: str = SEPARATOR

    @property
    def where(self) -> str:
        """The scope in words."""
        return f"step {self.step_id!r}"

    def find(self, reference: str, own: Definitions, done: Mapping[str, HasValue], /) -> Resolved | None:
        """What the reference leads to."""
        if reference in done:
            return Own(reference)
        if reference in self.workflow:
            return Known(self.workflow[reference].value)
        if reference in own:
            return Own(reference)
        if self.separator in reference:
            return self._find_elsewhere(reference, own)
        return None

    def _find_elsewhere(self, reference: str, own: Definitions) -> Resolved | None:
        step, param = self._split(reference)
        if step == self.step_id:
            return Own(param) if param in own else None
        if step in self.steps:
            value = self.steps[step].get(param)
            return None if value is None else Known(value.value)
        return _from_signal(self.signals, step, param)

    def _split(self, reference: str) -> tuple[str, str]:
        """The step and the parameter. A step whose id ends in an underscore makes the separator longer by one."""
        at = reference.index(self.separator)
        first, second = reference[:at], reference[: at + 1]
        if reference.startswith(self.separator, at + 1):
            known = [step for step in (first, second) if step in self.steps or step == self.step_id]
            if len(known) == 2:
                raise AmbiguousReference(reference, first, second)
            if known == [second]:
                return second, reference[len(second) + len(self.separator) :]
        return first, reference[at + len(self.separator) :]

    def param(self, name: str, _: Mapping[str, HasValue], /) -> Value:
        """A parameter of the workflow, or of a finished step by its two names."""
        if name in self.workflow:
            return self.workflow[name].value
        step, param = self._split(name) if self.separator in name else ("", "")
        found = self.steps.get(step, {}).get(param)
        return None if found is None else found.value

    def waits_for(self, _: str, __: Definitions, /) -> bool:
        """The workflow's parameters have their values before any step begins."""
        return False


def _from_signal(signals: Extension, signal: str, param: str) -> Known | None:
    try:
        return Known(signals.call("getFromSignal", (signal, param)))
    except SelError:
        return None  # no such signal: the caller reports the reference as unknown
