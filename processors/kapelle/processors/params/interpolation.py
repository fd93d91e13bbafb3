"""`$name`, `${name}` and `$$` in literal strings.

One pass: what is inserted is not looked at again. A dollar sign before anything else stays as it is. Every piece is
counted before it is added, so that a text can be refused before it is made.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from kapelle.processors.params.coercion import text_of_scalar
from kapelle.processors.params.errors import TextTooLong
from kapelle.processors.sel.values import json_least, json_text

Lookup = Callable[[str], Any]
Count = Callable[[int], None]
TEXT_CHARS_MAX: Final = 750_000
_REFERENCE = re.compile(r"\$(?:(\$)|\{([a-zA-Z][-_./a-zA-Z0-9]*)\}|([a-zA-Z][_a-zA-Z0-9]*))")


def references(text: str) -> list[str]:
    """The names that a text refers to, in order, each once."""
    if "$" not in text:
        return []
    names = (match[2] or match[3] for match in _REFERENCE.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def interpolated(text: str, lookup: Lookup, count: Count | None = None) -> str:
    """The text with the values of its references. What `lookup` raises for an unknown one is the caller's to choose.

    `count` is told the length of each piece before it is added, and raises when that is too much. Without one the text
    may have `TEXT_CHARS_MAX` characters.
    """
    count = count or at_most(TEXT_CHARS_MAX)
    if "$" not in text:
        count(len(text))
        return text
    pieces: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        start = match.start()
        count(start - at)
        pieces.append(text[at:start])
        if match[1]:
            count(1)
            pieces.append("$")
        else:
            pieces.append(_counted(lookup(match[2] or match[3]), count))
        at = match.end()
    count(len(text) - at)
    pieces.append(text[at:])
    return "".join(pieces)


def at_most(chars_max: int) -> Count:
    """A count for one text on its own."""
    left = chars_max

    def count(chars: int) -> None:
        nonlocal left
        left -= chars
        if left < 0:
            raise TextTooLong(chars_max)

    return count


def _counted(value: object, count: Count) -> str:
    """A value inside a text: arrays and maps as compact JSON."""
    if not isinstance(value, list | tuple | dict):
        text = text_of_scalar(value)
        count(len(text))
        return text
    least = json_least(value)
    count(least)
    text = json_text(value)
    count(len(text) - least)
    return text
