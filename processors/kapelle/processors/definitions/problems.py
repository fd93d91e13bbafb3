"""What is wrong with a definition: every problem with its path, what was found there, and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from kapelle.processors.definitions.limits import PROBLEMS_MAX

SHOWN_CHARS_MAX: Final = 80
NOTHING: Final = "nothing"

_encoder = msgspec.json.Encoder(decimal_format="number")


class Problem(msgspec.Struct, frozen=True):
    """One thing to mend."""

    path: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: Expected {self.expected}, but found {self.value}"


class DefinitionRefused(Exception):
    """A definition, or a change of properties, that cannot be taken. `problems` are all that were found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class Report:
    """The problems found so far. It stops counting at a bound, so that a hostile definition has a short answer."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, path: str, found: object, expected: str) -> None:
        """Note what would be right, and what is there instead."""
        self.note(path, shown(found), expected)

    def missing(self, path: str, expected: str) -> None:
        """Note what would be right where there is nothing."""
        self.note(path, NOTHING, expected)

    def note(self, path: str, found: str, expected: str) -> None:
        """Note what would be right, and in words what is there instead."""
        problem = Problem(path, found, expected)
        if len(self.problems) < PROBLEMS_MAX and problem not in self.problems:
            self.problems.append(problem)

    def has(self, path: str) -> bool:
        """Whether something is wrong at that very place."""
        return any(problem.path == path for problem in self.problems)

    def refuse_if_any(self) -> None:
        """Raise what was found."""
        if self.problems:
            raise DefinitionRefused(self.problems)


def shown(value: object) -> str:
    """A value as JSON, no longer than a sentence can bear."""
    if isinstance(value, str) and len(value) > SHOWN_CHARS_MAX:
        return f"{_json(value[:SHOWN_CHARS_MAX])} and {len(value) - SHOWN_CHARS_MAX:,} characters more"
    if isinstance(value, dict | list | tuple) and len(value) > SHOWN_CHARS_MAX:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
    text = str(value) if isinstance(value, Decimal) else _json(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def _json(value: object) -> str:
    return _encoder.encode(value).decode()


def at(path: str, key: str | int) -> str:
    """The path of a member of an object or a list."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key
