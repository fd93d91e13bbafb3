"""Python source text laid out as a formatter would, so that generated modules need none."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

WIDTH: Final = 120

_TOKENS: Final = re.compile(r"\\u[0-9a-f]{4}|\\.|.")

Argument = str | tuple[str, "Sequence[Argument]"]
"""An expression, or a call: what stands before its arguments, and those."""


def _flat(argument: Argument) -> str:
    if isinstance(argument, str):
        return argument
    before, arguments = argument
    return f"{before}({', '.join(map(_flat, arguments))})"


def layout(before: str, arguments: Sequence[Argument], after: str) -> list[str]:
    """A call or a tuple on one line, or with its arguments on one line, or with each on lines of its own."""
    flat = ", ".join(map(_flat, arguments))
    if len(before) + len(flat) + len(after) <= WIDTH:
        return [before + flat + after]
    indent = _indent(before)
    inner = indent + "    "
    if len(inner) + len(flat) <= WIDTH and not before.endswith(" ("):
        return [before, inner + flat, indent + after]
    lines = [before]
    for argument in arguments:
        if isinstance(argument, str):
            lines.append(f"{inner}{argument},")
        else:
            lines += layout(f"{inner}{argument[0]}(", argument[1], "),")
    return [*lines, indent + after.lstrip(",")]


def long_text(before: str, text: str) -> Iterator[str]:
    """A schema's normal JSON as a raw string, one field per line if it is long."""
    if len(before) + len(text) + 3 <= WIDTH:
        yield f"{before}r'{text}'"
        return
    indent = _indent(before) + "    "
    yield before + "("
    for field in text.replace('{"name":', '\n{"name":').strip().split("\n"):
        for piece in _pieces(field, WIDTH - len(indent) - 3):
            quote = "'" if '"' in piece else '"'
            yield f"{indent}r{quote}{piece}{quote}"
    yield _indent(before) + ")"


def _pieces(text: str, width: int) -> Iterator[str]:
    """A text in pieces, none of which ends inside of an escape."""
    piece = ""
    for token in _TOKENS.findall(text):
        if len(piece) + len(token) > width:
            yield piece
            piece = ""
        piece += token
    yield piece


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
