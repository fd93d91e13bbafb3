"""A trigger as `workflows` sends it: self-contained, and named by its content.

The name is made from what the trigger says, so a version that says the same keeps the same trigger, with all that it
has kept; one that says something else has another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from kapelle.processors.params import Definition, definition_json, definitions_of
from kapelle.processors.signals.matching import Condition, Conditions, Operator, Scalar

TRIGGERS_CACHED: Final = 1_024


class SignalMatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which signals of one name a trigger takes, and by which parameters it joins them with those of other names."""

    match: Conditions = ()
    join_keys: tuple[str, ...] = ()
    is_latest: bool = False  # only the newest of those that wait counts


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """Signals that together start a workflow."""

    names: dict[str, SignalMatch]
    params: dict[str, object] = {}  # definitions as JSON
    condition: str | None = None
    dedup_expr: str | None = None
    since_at_ms: int | None = None
    expires_after_ms: int | None = None

    def json(self) -> str:
        """As text, always the same for the same trigger."""
        return msgspec.json.encode(self, order="sorted").decode()

    @property
    def id(self) -> str:
        """The name that it has by its content."""
        return sha256(self.json().encode()).hexdigest()[:16]

    def definitions(self) -> Mapping[str, Definition]:
        """The definitions of its parameters."""
        return definitions_of(self.params)


@lru_cache(maxsize=TRIGGERS_CACHED)
def trigger_of(text: str) -> Trigger:
    """Read a trigger."""
    return msgspec.json.decode(text, type=Trigger)


def written(definitions: Mapping[str, Definition]) -> dict[str, object]:
    """Definitions of parameters as JSON."""
    return {name: definition_json(definition) for name, definition in definitions.items()}


def condition(param: str, operator: str, value: Scalar | list[Scalar]) -> Condition:
    """One condition on a parameter."""
    return Condition(param, Operator(operator), value)
