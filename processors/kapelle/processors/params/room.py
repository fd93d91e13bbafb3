"""How many characters a set of parameters may still take, counted before the texts are made.

A text that refers to others can be longer than all of them: ten references, seven times over, make ten million times as
much of it. So each piece is counted before it is joined to the rest, and a text that is too long is never made.
"""

from __future__ import annotations

from kapelle.processors.params.errors import ParamsTooLarge
from kapelle.processors.params.types import ParamValue
from kapelle.processors.sel import Budget
from kapelle.processors.sel.limits import CHARS_PER_VISIT
from kapelle.processors.sel.values import json_least, json_text

BETWEEN_CHARS = 6  # the quotes, the colon and the comma around a name, rounded up


class Room:
    """What is left for the values of one set of parameters, as JSON."""

    def __init__(self, where: str, chars_max: int, budget: Budget) -> None:
        self._where = where
        self._chars_max = chars_max
        self._left = chars_max
        self._budget = budget

    def text(self, name: str) -> Making:
        """The counter of the texts that the value of a parameter is made of."""
        return Making(self, name, self._left)

    def keep(self, name: str, value: ParamValue) -> None:
        """Count a value that is complete."""
        least = len(name) + BETWEEN_CHARS + json_least(value)
        if least > self._left:  # the JSON of a value that holds the same text many times may be too long to be made
            raise self.refusal(name, least - self._left)
        self._budget.scan(least)
        if isinstance(value, list | dict):
            self._budget.work(len(value) // 4)
        self._left -= len(name) + BETWEEN_CHARS + len(json_text(value))
        if self._left < 0:
            raise self.refusal(name, -self._left)

    def spend(self, chars: int) -> None:
        """Spend the time of copying that many characters. Short pieces are paid for by what refers to them."""
        self._budget.work(chars // CHARS_PER_VISIT)

    def refusal(self, name: str, chars_over: int) -> ParamsTooLarge:
        """The error for a parameter that does not fit."""
        return ParamsTooLarge(self._where, name, self._chars_max + chars_over, self._chars_max)


class Making:
    """The texts of one parameter in the making. Called with the length of each piece before it is added."""

    __slots__ = ("_left", "_name", "_room")

    def __init__(self, room: Room, name: str, left: int) -> None:
        self._room = room
        self._name = name
        self._left = left

    def __call__(self, chars: int) -> None:
        """Count a piece."""
        self._left -= chars
        if self._left < 0:
            raise self._room.refusal(self._name, -self._left)
        self._room.spend(chars)
