"""How deep JSON may nest: what is deeper would end in Python's stack somewhere, and not always in the same place."""

from collections.abc import Iterable
from typing import Final

NESTED_JSON_MAX: Final = 100


def is_deep(value: object) -> bool:
    """Whether objects and lists nest deeper than they may. It is walked level by level, so it takes no stack."""
    level = [value]
    for _ in range(NESTED_JSON_MAX + 1):
        inner = (_inner(value) for value in level)
        level = [value for items in inner for value in items if isinstance(value, dict | list | tuple)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def nests_too_deep(text: str | bytes, value: object) -> bool:
    """Whether the value of a JSON text nests too deep. A text that opens few brackets cannot, and is not walked."""
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    return opened > NESTED_JSON_MAX and is_deep(value)
