"""Which parameters of its children a workflow reads, according to the texts of its definition.

    params.getFromForeach('loop', 'step', 'param')
    params.getFromSubworkflow('call', 'step', 'param')

A push refuses calls whose names are not literals, so the texts contain all of them. A child returns these parameters
when it ends, so that no instance has to read the tables of another one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

_NAME: Final = r"""\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*"""
_CALL: Final = re.compile(rf"\bgetFrom(?:Foreach|Subworkflow)\s*\({_NAME},{_NAME},{_NAME}\)")


def asked_of_children(text: str) -> dict[str, tuple[str, ...]]:
    """By composite step: the parameters of steps of its children, as `step/param`, each once, in a fixed order."""
    by_parent: dict[str, set[str]] = {}
    if "getFromForeach" not in text and "getFromSubworkflow" not in text:
        return {}
    for expression in _texts(msgspec.json.decode(text)):
        for call in _CALL.finditer(expression):
            parent, step_id, param = (
                a or b or "" for a, b in zip(call.groups()[::2], call.groups()[1::2], strict=True)
            )
            by_parent.setdefault(parent, set()).add(f"{step_id}/{param}")
    return {parent: tuple(sorted(asked)) for parent, asked in by_parent.items()}


def _texts(tree: object) -> Iterator[str]:
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, Mapping):
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
