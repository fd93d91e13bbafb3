"""Dead letters as lines for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

PREVIEW_CHARS: Final = 500

Letter: TypeAlias = Mapping[str, Any]  # a dead letter in the JSON of the API


def as_lines(letter: Letter) -> Iterator[str]:
    """A letter for people."""
    if "unreadable" in letter:
        yield f"letter {letter['offset']} cannot be read"
        yield _line("reason", letter["unreadable"])
        return
    record = letter["record"]
    where = "delivered within a cycle" if record["offset"] is None else f"offset {record['offset']}"
    yield f"letter {letter['offset']}  {letter['at']}  {letter['processor']}  {letter['stage']}  {letter['error']}"
    yield _line("record", f"{record['topic']} partition {record['partition']} {where}")
    yield _line("reason", letter["reason"])
    yield _line("key", _text(letter["key"]))
    yield _line("value", _text(letter["value"]))
    for header in letter["headers"]:
        yield _line("header", f"{header['name']}: {_text(header['value'])}")


def _line(label: str, text: str) -> str:
    lines = text.splitlines() or [""]
    return "\n".join([f"  {label:8}{lines[0]}", *(f"  {'':8}{line}" for line in lines[1:])])


def _text(value: Letter | None) -> str:
    match value:
        case None:
            text = "none"
        case {"contract": contract, "fields": fields}:
            text = f"{contract} {json.dumps(fields, ensure_ascii=False)}"
        case {"text": plain}:
            text = plain
        case _:
            text = f"base64 {value['base64']}"
    return text if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS]}… ({len(text)} characters)"
