"""The conditions of a subscription on the parameters of signals, and the index entry that finds it.

| operator | true if the signal's parameter is there, has the type of the value, and |
|---|---|
| `=`, `!=` | is equal, is not |
| `<`, `<=`, `>`, `>=` | comes before, after: integers by size, strings by code points |
| `in` | is one of a list |
| `prefix` | is a string that begins so |

A subscription is entered in the index under one of its conditions, the most telling one; without any it is under `*`.
For a signal only those entries are looked at that its own parameters lead to, so what it costs depends on how many
subscriptions it concerns and not on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

Scalar = str | int
PREFIX_CHARS_MAX: Final = 256
LONG_OFFSET: Final = 1 << 63
CHAR_LAST: Final = "\U0010ffff"
SURROGATES_BEGIN, SURROGATES_END = 0xD800, 0xE000  # no characters
STRING, LONG = "s", "i"
AFTER_TYPE: Final = {STRING: "t", LONG: "j"}  # what comes after every text of that type


class Operator(StrEnum):
    """How a parameter of a signal is compared."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    PREFIX = "prefix"


class Condition(msgspec.Struct, frozen=True):
    """What one parameter must be."""

    param: str
    operator: Operator
    value: Scalar | list[Scalar]

    def holds(self, params: Mapping[str, Scalar]) -> bool:
        """Whether a signal with these parameters fulfils it."""
        value = params.get(self.param)
        if value is None:
            return False
        if self.operator is Operator.IN:
            return isinstance(self.value, list) and any(
                type(item) is type(value) and item == value for item in self.value
            )
        return type(value) is type(self.value) and COMPARE[self.operator](value, self.value)

    def __str__(self) -> str:
        return f"{self.param} {self.operator} {self.value!r}"


COMPARE: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: lambda actual, value: bool(actual == value),
    Operator.NOT_EQUAL: lambda actual, value: bool(actual != value),
    Operator.LESS: lambda actual, value: bool(actual < value),
    Operator.LESS_OR_EQUAL: lambda actual, value: bool(actual <= value),
    Operator.GREATER: lambda actual, value: bool(actual > value),
    Operator.GREATER_OR_EQUAL: lambda actual, value: bool(actual >= value),
    Operator.PREFIX: lambda actual, value: isinstance(actual, str) and actual.startswith(value),
}

Conditions = tuple[Condition, ...]
_decoder: Final = msgspec.json.Decoder(Conditions)


def conditions_of(text: str) -> Conditions:
    """Read conditions from JSON."""
    return _decoder.decode(text)


def conditions_json(conditions: Conditions) -> str:
    """Write conditions as JSON."""
    return msgspec.json.encode(conditions).decode()


def failing(conditions: Conditions, params: Mapping[str, Scalar]) -> Condition | None:
    """The first condition that a signal does not fulfil; None if it matches."""
    for condition in conditions:
        if not condition.holds(params):
            return condition
    return None


def text_of(value: Scalar) -> str:
    """A value as text that sorts as the values do: strings by code points, integers by size, never mixed."""
    return f"{STRING}{value}" if isinstance(value, str) else f"{LONG}{value + LONG_OFFSET:020d}"


class Entry(msgspec.Struct, frozen=True):
    """A place in the index: parameter, kind of comparison, value as text."""

    param: str
    kind: str
    text: str

    def __str__(self) -> str:
        return msgspec.json.encode((self.kind, self.param, self.text)).decode()

    @classmethod
    def parse(cls, written: str) -> Entry:
        """The entry that an event names."""
        kind, param, text = msgspec.json.decode(written, type=tuple[str, str, str])
        return cls(param, kind, text)


ALL: Final = Entry("", "*", "")
EQUALS, BELOW, ABOVE, BEGINS, DIFFERS = "=", "<", ">", "^", "!"
KINDS: Final[Mapping[Operator, str]] = {
    Operator.EQUAL: EQUALS,
    Operator.IN: EQUALS,
    Operator.LESS: BELOW,
    Operator.LESS_OR_EQUAL: BELOW,
    Operator.GREATER: ABOVE,
    Operator.GREATER_OR_EQUAL: ABOVE,
    Operator.PREFIX: BEGINS,
    Operator.NOT_EQUAL: DIFFERS,
}
# From what tells most to what tells least.
TELLING: Final = (EQUALS, BEGINS, BELOW, ABOVE, DIFFERS)
# In which order the kinds of one parameter are gone through.
ORDER: Final = ("*", EQUALS, BELOW, ABOVE, DIFFERS, BEGINS)
PLACES: Final = frozenset({"*", EQUALS, BEGINS})  # a signal leads to one value of these, and to a range of the others


def entries_of(conditions: Conditions, crowd: Callable[[Entry], int]) -> tuple[Entry, ...]:
    """Where a subscription is entered: under its most telling condition, and of equals under the least crowded."""
    choices = [(_entries(condition), KINDS[condition.operator]) for condition in conditions]
    if not choices:
        return (ALL,)
    best = min(
        choices, key=lambda choice: (TELLING.index(choice[1]), max((crowd(entry) for entry in choice[0]), default=0))
    )
    return best[0]


def _entries(condition: Condition) -> tuple[Entry, ...]:
    values = condition.value if isinstance(condition.value, list) else [condition.value]
    kind = KINDS[condition.operator]
    return tuple(dict.fromkeys(Entry(condition.param, kind, text_of(value)) for value in values))


def values_of(condition: Condition) -> Iterator[tuple[str, str]]:
    """The ranges of values, as text, of which each fulfils the condition: from (included) to (excluded)."""
    if isinstance(condition.value, list):
        yield from ((text, text + "\0") for text in sorted(map(text_of, condition.value)))
        return
    text = text_of(condition.value)
    first, last = text[0], AFTER_TYPE[text[0]]
    yield from {
        Operator.EQUAL: [(text, text + "\0")],
        Operator.NOT_EQUAL: [(first, text), (text + "\0", last)],
        Operator.LESS: [(first, text)],
        Operator.LESS_OR_EQUAL: [(first, text + "\0")],
        Operator.GREATER: [(text + "\0", last)],
        Operator.GREATER_OR_EQUAL: [(text, last)],
        Operator.PREFIX: [(text, _after_prefix(text))],
    }.get(condition.operator, [])


def _after_prefix(text: str) -> str:
    """What comes after every text that begins so."""
    known = text.rstrip(CHAR_LAST)
    following = ord(known[-1]) + 1
    return known[:-1] + chr(SURROGATES_END if following == SURROGATES_BEGIN else following)


class Scan(msgspec.Struct, frozen=True):
    """A range of the index: entries of one parameter and kind, from `start` (included) to `end` (excluded)."""

    param: str
    kind: str
    start: str
    end: str

    @property
    def order(self) -> tuple[str, int, str]:
        """The place among all scans: they are always gone through in this order."""
        return self.param, ORDER.index(self.kind), self.start

    @property
    def is_place(self) -> bool:
        """Whether all that it can find is at one place, `start`."""
        return self.kind in PLACES


# From where to where a signal looks among the entries of each kind, by its own value as text; in the order of `ORDER`.
RANGES: Final[Mapping[str, Callable[[str], tuple[str, str]]]] = {
    EQUALS: lambda text: (text, text + "\0"),
    BELOW: lambda text: (text, AFTER_TYPE[text[0]]),
    ABOVE: lambda text: (text[0], text + "\0"),
    DIFFERS: lambda text: (text[0], AFTER_TYPE[text[0]]),
}


def scans_of(params: Mapping[str, Scalar], used: Mapping[str, Mapping[str, int]]) -> Iterator[Scan]:
    """The ranges of the index that a signal leads to. `used` tells which parameters and kinds there are entries of."""
    if ALL.kind in used.get(ALL.param, {}):
        yield Scan(ALL.param, ALL.kind, "", "\x01")
    for param in sorted(params):
        kinds = used.get(param)
        if not kinds:
            continue
        value = params[param]
        text = text_of(value)
        for kind, range_of in RANGES.items():
            if kind in kinds:
                yield Scan(param, kind, *range_of(text))
        if BEGINS in kinds and isinstance(value, str):
            for length in range(min(len(value), PREFIX_CHARS_MAX) + 1):
                begin = text_of(value[:length])
                yield Scan(param, BEGINS, begin, begin + "\0")
