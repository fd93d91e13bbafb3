"""YAML as plain values: safe, bounded, and with the words of YAML 1.2.

Only `true`, `false` and `null` are words of their own, so that `no`, `on` and `2026-01-31` stay text. A number with a
point is an exact decimal. Values are built from the parser's events: nothing but objects, lists and scalars can come of
them, an alias counts for all that it stands for, and what is wrong is told by its path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import yaml

from kapelle.processors.definitions.json_text import LONG_MAX, LONG_MIN, NUMBER_CHARS_MAX, is_unicode
from kapelle.processors.definitions.limits import PUSH_BYTES_MAX, YAML_NODES_MAX
from kapelle.processors.definitions.problems import DefinitionRefused, Problem, at
from kapelle.processors.params.nesting import NESTED_JSON_MAX

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CORE: Final = "tag:yaml.org,2002:"
MERGE: Final = "<<"
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
TAGS: Final = frozenset(f"{CORE}{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))


def read_yaml(text: str | bytes) -> Any:
    """What the one document of the text says."""
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > PUSH_BYTES_MAX:
        raise _refused("the request", f"{size:,} bytes", f"at most {PUSH_BYTES_MAX:,} bytes")
    try:
        return _Builder(yaml.parse(text, Loader=LOADER)).document()
    except (yaml.YAMLError, UnicodeError) as error:
        raise _refused("the request", " ".join(str(error).split())[:200], "YAML") from None


def _refused(path: str, found: str, expected: str) -> DefinitionRefused:
    return DefinitionRefused([Problem(path or "the request", found, expected)])


class _Builder:
    """Turns events into values."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.events = events
        self.anchors: dict[str, tuple[object, int]] = {}
        self.nodes = 0

    def document(self) -> object:
        """The value of the only document."""
        next(self.events)
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise _refused("", "nothing", "a document")
        value = self._value(next(self.events), "", 0)
        next(self.events)
        if not isinstance(next(self.events), yaml.StreamEndEvent):
            raise _refused("", "a second", "one document")
        return value

    def _value(self, event: yaml.Event, path: str, depth: int) -> object:
        if depth > NESTED_JSON_MAX:
            raise _refused(path, "deeper nesting", f"YAML that nests at most {NESTED_JSON_MAX} deep")
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, path)
        self._count(1, path)
        tag = getattr(event, "tag", None)
        if tag not in (None, "!") and tag not in TAGS:
            raise _refused(path, f"the tag {tag}", "plain YAML without tags of its own")
        before = self.nodes
        value = self._built(event, path, depth)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = (value, self.nodes - before + 1)
        return value

    def _built(self, event: yaml.Event, path: str, depth: int) -> object:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, path)
        raise _refused(path, f"a {type(event).__name__}", "an object, a list or a scalar")

    def _aliased(self, event: yaml.AliasEvent, path: str) -> object:
        if event.anchor not in self.anchors:
            raise _refused(path, f"*{event.anchor}", "an alias of an earlier anchor")
        value, nodes = self.anchors[event.anchor]
        self._count(nodes, path)
        return value

    def _count(self, nodes: int, path: str) -> None:
        self.nodes += nodes
        if self.nodes > YAML_NODES_MAX:
            raise _refused(path, "more", f"at most {YAML_NODES_MAX:,} values, those behind aliases included")

    def _sequence(self, path: str, depth: int) -> list[object]:
        made: list[object] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            made.append(self._value(event, at(path, len(made)), depth + 1))
        return made

    def _mapping(self, path: str, depth: int) -> dict[str, object]:
        made: dict[str, object] = {}
        merged: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _refused(path, f"another key {_line(event)}", "keys that are text")
            key = event.value
            value = self._value(next(self.events), at(path, key), depth + 1)
            if key == MERGE and _is_plain(event):
                merged = {**_merged(value, at(path, key)), **merged}
            elif key in made:
                raise _refused(at(path, key), f"it again {_line(event)}", "each key once")
            else:
                made[key] = value
        return {**merged, **made} if merged else made


def _merged(value: object, path: str) -> dict[str, object]:
    """What `<<` adds: an object, or objects of which the earlier count more."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise _refused(path, "another value", "an object or a list of objects")
    return {key: inner for part in reversed(parts) for key, inner in part.items()}


def _line(event: yaml.Event) -> str:
    return f"in line {event.start_mark.line + 1}" if event.start_mark else "once more"


def _is_plain(event: yaml.ScalarEvent) -> bool:
    return not event.style  # quoted and block scalars have one; the C parser says "" where the other says None


def _scalar(event: yaml.ScalarEvent, path: str) -> object:
    text: str = event.value
    if not is_unicode(text):
        raise _refused(path, "an unpaired surrogate", "text in Unicode")
    if event.tag in ("!", f"{CORE}str") or (event.tag is None and not _is_plain(event)):
        return text
    if text in WORDS:
        return WORDS[text]
    if len(text) <= NUMBER_CHARS_MAX:
        for pattern, made in NUMBERS:
            if pattern.fullmatch(text):
                return made(text)
    if _NOT_FINITE.fullmatch(text):
        raise _refused(path, text, "a finite number, or text in quotes")
    return text


def _integer(text: str) -> int | Decimal:
    number = int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    return number if LONG_MIN <= number <= LONG_MAX else Decimal(number)


def _decimal(text: str) -> Decimal:
    return Decimal(text)


NUMBERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...]] = (
    (_INTEGER, _integer),
    (_OTHER_BASE, _integer),
    (_DECIMAL, _decimal),
)
