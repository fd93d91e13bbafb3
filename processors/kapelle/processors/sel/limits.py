"""The budgets of one evaluation and of one decision, and the frame that spends them.

All limits count things that the same expression does the same number of times everywhere, so that a replay stops where
the first run stopped. There is no clock among them: `visits` stands for time. One visit is about one node of the tree,
or sixteen characters that a member scans: 0.2 to 0.5 microseconds.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kapelle.processors.sel.errors import ExtensionFailed, LimitExceeded

# A value of the language: dynamic by design, which is why this is the one alias of `Any` in the package.
Value = Any

OBJECT_BYTES = 32
CHAR_BYTES = 2
WIDE_CHAR_BYTES = 4
CHARS_PER_VISIT = 16


class Limits(msgspec.Struct, frozen=True):
    """What an evaluation may use. The defaults are those of Maestro's server."""

    expression_chars: int = 10_000
    stack_depth: int = 128
    loop_iterations: int = 25_000
    array_length: int = 25_000
    visits: int = 100_000_000
    memory_bytes: int = 100_000_000


DEFAULT_LIMITS = Limits()


class Budget(msgspec.Struct, gc=False):
    """What all evaluations of one decision may use together, and what they have used.

    An evaluation has its own limits besides. What it spends is spent, whether it succeeds or fails.
    """

    visits_max: int
    bytes_max: int
    spent: int = 0
    made_bytes: int = 0
    compiled: set[str] = msgspec.field(default_factory=set)

    def work(self, visits: int) -> None:
        """Spend time."""
        self.spent += visits
        if self.spent > self.visits_max:
            raise LimitExceeded("decision_visits", self.visits_max)

    def scan(self, chars: int) -> None:
        """Spend the time of reading that many characters."""
        self.work(chars // CHARS_PER_VISIT + 1)

    def compile(self, text: str, visits: int) -> None:
        """Spend the time of compiling a text, the first time that it is asked for."""
        if text not in self.compiled:
            self.compiled.add(text)
            self.work(visits)

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing more can be evaluated."""
        return self.spent >= self.visits_max or self.made_bytes >= self.bytes_max


class Extension:
    """What `params.` can ask the engine. The engine overrides what it can answer; all else is a typed error."""

    def get(self, name: str) -> Value:
        """The workflow parameter of that name, or None."""
        return self.missing("get", name)

    def contains(self, name: str) -> bool:
        """Whether there is a workflow parameter of that name."""
        return bool(self.missing("containsKey", name))

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        """Answer one of the functions of `EXTENSION_FUNCTIONS`, such as `getFromStep`."""
        return self.missing(function, *args)

    def missing(self, function: str, *args: Value) -> Value:
        """Refuse: nothing here knows the answer."""
        shown = ", ".join(repr(a) for a in args)
        raise ExtensionFailed(f"Expected an engine that answers params.{function}({shown}), but none is connected")


class Host(msgspec.Struct, frozen=True):
    """All that an expression learns from outside. The caller fixes it, so that a replay sees the same."""

    now_ms: int | None = None
    random: Callable[[], float] | None = None
    new_id: Callable[[], str] | None = None
    extension: Extension | None = None
    functions: Mapping[str, Callable[..., Value]] = {}


NOWHERE = Host()


class Frame(msgspec.Struct, gc=False):
    """The state of one evaluation: names, variables and what is left of the budgets."""

    inputs: Mapping[str, Value]
    host: Host
    limits: Limits
    visits: int
    memory: int
    slots: list[Value]
    kinds: dict[int, type] | None = None
    boxed: dict[str, Value] | None = None
    result: Value = None

    def work(self, visits: int) -> None:
        """Spend time."""
        self.visits -= visits
        if self.visits < 0:
            raise LimitExceeded("visits", self.limits.visits)

    def scan(self, chars: int) -> None:
        """Spend the time of reading that many characters."""
        self.visits -= chars // CHARS_PER_VISIT + 1
        if self.visits < 0:
            raise LimitExceeded("visits", self.limits.visits)

    def spend(self, size: int) -> None:
        """Spend memory. Called before the object is made."""
        self.memory -= size
        if self.memory < 0:
            raise LimitExceeded("memory_bytes", self.limits.memory_bytes)

    def text(self, chars: int, *, of: tuple[str, ...] = ()) -> None:
        """Spend memory and time for a string of that length, about to be made out of the strings `of`."""
        width = CHAR_BYTES
        # Characters beyond the basic plane take four bytes each, and one of them widens the whole string.
        if chars > 1024 and any(s.__sizeof__() > 3 * len(s) + 80 for s in of):
            width = WIDE_CHAR_BYTES
        self.spend(OBJECT_BYTES + width * chars)
        self.scan(chars)

    def array(self, length: int, item_bytes: int = 8) -> None:
        """Spend memory and time for an array of that length."""
        if length > self.limits.array_length:
            raise LimitExceeded("array_length", self.limits.array_length)
        self.spend(OBJECT_BYTES + item_bytes * length)
        self.work(length)
