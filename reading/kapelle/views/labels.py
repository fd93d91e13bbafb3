"""Labels, which instances are filtered by besides status, workflow and time: tags, parameters, initiators."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

from kapelle.processors.initiators import initiator_of

TEXTS_CACHED: Final = 4_096
VALUE_CHARS_MAX: Final = 200  # nobody looks for more, and what is longer is no label
PARAMS_MAX: Final = 64


class _Tagged(msgspec.Struct):
    tags: list[str | dict[str, object]] | None = None


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def tag_label(name: str) -> str:
    """An instance has a tag: its own, of its version, or of its workflow's properties."""
    return f"tag:{name}"


def param_label(name: str, value: str) -> str:
    """A parameter of an instance has a value, in one of its runs."""
    return f"param:{name}={value}"


def backfill_label(backfill_id: str) -> str:
    """An instance was started by a backfill."""
    return f"backfill:{backfill_id}"


def initiator_label(kind: str) -> str:
    """What started an instance, or a run of it."""
    return f"initiator:{kind.upper()}"


def labels_of(params: str, runtime_tags: str, initiator: str) -> tuple[str, ...]:
    """The labels of a run that was created."""
    return (*_initiated(initiator), *_tags(runtime_tags), *_valued(params))


def declared_tags(text: str) -> tuple[str, ...]:
    """The names of the tags in a definition or in properties."""
    return tuple(_names(msgspec.json.decode(text, type=_Tagged).tags or ()))


def _initiated(text: str) -> tuple[str, ...]:
    kind = initiator_of(text).kind
    return (initiator_label(kind),) if kind else ()


@lru_cache(TEXTS_CACHED)
def _tags(text: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    return tuple(tag_label(name) for name in _names(msgspec.json.decode(text)))


def _names(tags: Iterable[object]) -> Iterator[str]:
    """Tags are written as their names, or as objects with more to tell."""
    for tag in tags:
        name = tag.get("name") if isinstance(tag, Mapping) else tag
        if isinstance(name, str):
            yield name


def _valued(params: str) -> Iterator[str]:
    """Of values that are one word each; the words are those of JSON, but for strings."""
    if params == "{}":
        return
    for name, value in islice(_members(params).items(), PARAMS_MAX):
        text = bytes(value).decode()
        if text[0] in "{[" or len(text) > VALUE_CHARS_MAX + 2:
            continue
        yield param_label(name, msgspec.json.decode(value) if text[0] == '"' else text)
