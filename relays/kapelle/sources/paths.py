"""Paths into documents: JSON pointers (`/order/lines/0`, RFC 6901) and, for plain names, dots (`order.lines.0`)."""

import re
from typing import Final

import msgspec

PATH_CHARS_MAX: Final = 1_000

_ESCAPE: Final = re.compile(r"~(?![01])")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")


class Nothing:
    """What stands where nothing stands; null is something else."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = Nothing()


class Path(msgspec.Struct, frozen=True):
    """Where in a document something stands. The empty path is the whole of it."""

    text: str
    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: object) -> "Path":
        """Raises `ValueError`."""
        if not isinstance(text, str) or len(text) > PATH_CHARS_MAX:
            raise ValueError(f"Expected a path such as /order/day or order.day, but found {str(text)[:80]!r}")
        if text == "" or text.startswith("/"):
            if _ESCAPE.search(text):
                raise ValueError(f"Expected ~0 for ~ and ~1 for / in a JSON pointer, but found {text!r}")
            parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])
            return cls(text, parts)
        parts = tuple(text.split("."))
        if not all(parts):
            raise ValueError(f"Expected names between dots, but found {text!r}")
        return cls(text, parts)

    def find(self, document: object) -> object:
        """What stands there, or `NOTHING`."""
        value = document
        for part in self.parts:
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
                value = value[int(part)]
            else:
                return NOTHING
        return value

    def __str__(self) -> str:
        return self.text or "the whole"
