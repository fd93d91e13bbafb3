"""`$name`, `${name}` and `$$` in literal strings.

One pass: what is inserted is not looked at again. A dollar sign before anything else stays as it is.
"""

import re
from collections.abc import Callable
from typing import Any

from kapelle.processors.params.coercion import text_of_scalar
from kapelle.processors.sel.values import json_text

Lookup = Callable[[str], Any]
_REFERENCE = re.compile(r"\$(?:(\$)|\{([a-zA-Z][-_./a-zA-Z0-9]*)\}|([a-zA-Z][_a-zA-Z0-9]*))")


def references(text: str) -> list[str]:
    """The names that a text refers to, in order, each once."""
    if "$" not in text:
        return []
    found = (match[2] or match[3] for match in _REFERENCE.finditer(text))
    return list(dict.fromkeys(name for name in found if name))


def interpolated(text: str, lookup: Lookup) -> str:
    """The text with the values of its references. What `lookup` raises for an unknown one is the caller's to choose."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda match: "$" if match[1] else as_text(lookup(match[2] or match[3])), text)


def as_text(value: Any) -> str:
    """A value inside a text: arrays and maps as compact JSON."""
    if isinstance(value, list | tuple | dict):
        return json_text(value)
    return text_of_scalar(value)
