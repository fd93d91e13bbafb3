"""Which texts a definition of a parameter holds, and which other parameters they mention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kapelle.processors.params import Definition, ParamType, references
from kapelle.processors.sel import Limits, Program, Sel, SelError, tree
from kapelle.processors.sel.parser import parse
from kapelle.processors.sel.scope import children

PARAMS: Final = "params"


class Call(msgspec.Struct, frozen=True):
    """A call of a function of `params`. An argument that is not a literal text is None."""

    function: str
    arguments: tuple[str | None, ...]


def names_in(definition: Definition, sel: Sel) -> Iterator[str]:
    """All parameters that it cannot do without."""
    for program in programs_in(definition, sel):
        yield from program.names
    for value in _literals(definition):
        for text in _texts(value):
            yield from references(text)


def programs_in(definition: Definition, sel: Sel) -> Iterator[Program]:
    """Its expressions, as far as they can be compiled."""
    for text in expressions_in(definition):
        try:
            yield sel.program(text)
        except SelError:
            continue  # it is reported as an expression that cannot be compiled


def expressions_in(definition: Definition) -> Iterator[str]:
    """Its own expression, and those of the parameters inside it."""
    if definition.expression is not None:
        yield definition.expression
    elif definition.type is ParamType.MAP:
        for inner in definition.value.values():
            yield from expressions_in(inner)


def _literals(definition: Definition) -> Iterator[object]:
    if definition.type is not ParamType.MAP:
        yield definition.value
    elif definition.expression is None:
        for inner in definition.value.values():
            yield from _literals(inner)


def _texts(value: object) -> Iterator[str]:
    """The texts of a literal in which parameters can stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for text in pair)
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def calls_in(text: str, limits: Limits) -> Iterator[Call]:
    """The calls of functions of `params` in an expression that can be compiled."""
    pending: list[tree.Node] = [parse(text, limits)]
    while pending:
        node = pending.pop()
        if isinstance(node, tree.Access) and isinstance(node.base, tree.Name) and node.base.name == PARAMS:
            first = node.suffixes[0]
            if isinstance(first, tree.Call):
                yield Call(first.name, tuple(_text_of(argument) for argument in first.arguments))
        pending.extend(_parts(node))


def _parts(node: tree.Node) -> Iterator[tree.Node]:
    match node:
        case tree.Assign(index=index, value=value):
            yield from (part for part in (index, value) if part is not None)
        case tree.Declare(names=names):
            yield from (value for _, value in names if value is not None)
        case _:
            yield from children(node)


def _text_of(node: tree.Node) -> str | None:
    return node.value if isinstance(node, tree.Literal) and isinstance(node.value, str) else None
