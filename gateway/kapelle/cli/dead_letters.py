"""`kapelle dead-letters`: the records that were put aside, with where they stood and why."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kapelle.cli import output
from kapelle.cli.letters import last_records, shown
from kapelle.cli.loading import DEFAULT_APP
from kapelle.cli.options import TIMEOUT_S, App, Config, Extra, Prefix, Servers, Target, Timeout
from kapelle.cli.reach import reaching
from kapelle.schemas import Codec
from kapelle.topology.deadletters import letter_bytes_max

LETTERS_MAX: Final = 10_000
PREVIEW_CHARS: Final = 500

group = typer.Typer(name="dead-letters", help="Look at the records that were put aside.", no_args_is_help=True)


class Form(StrEnum):
    """How letters are shown."""

    TEXT = "text"
    JSON = "json"


@group.callback()
def _dead_letters() -> None:
    """Look at the records that were put aside."""


@group.command("list")
def list_(
    *,
    servers: Servers = None,
    app: App = DEFAULT_APP,
    prefix: Prefix = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=LETTERS_MAX, help="The last so many.")] = 20,
    config: Config = None,
    extra: Extra = None,
    timeout_s: Timeout = TIMEOUT_S,
    form: Annotated[Form, typer.Option("-o", "--output", help="A page, or data.")] = Form.TEXT,
) -> None:
    """Show the last dead letters, oldest first: what failed, at which stage, why, and where the record stands.

    Values are shown as contracts of the topology (--app) where they can be read so.

    \b
    Examples:
      kapelle dead-letters list --bootstrap-servers 127.0.0.1:9092
      kapelle dead-letters list --config client.properties --prefix staging -n 100 -o json
    """
    target = Target(servers=servers, app=app, prefix=prefix, config=config, extra=extra or (), timeout_s=timeout_s)
    topology, kafka = target.topology(), target.kafka()
    codec = Codec(topology.catalog(), record_bytes_max=letter_bytes_max(kafka.record_bytes_max))
    with reaching(kafka):
        found = last_records(kafka, topology.dead_letters, count)
    letters = [shown(codec, offset, data) for offset, data in found]
    if form is Form.JSON:
        output.json(letters)
    elif letters:
        output.data("\n\n".join("\n".join(as_lines(letter)) for letter in letters))
    output.say(f"{output.counted(len(letters), 'dead letter')} from {topology.dead_letters}")


def as_lines(letter: Mapping[str, Any]) -> Iterator[str]:
    """A letter for people."""
    if "unreadable" in letter:
        yield f"letter {letter['offset']} cannot be read"
        yield _line("reason", letter["unreadable"])
        return
    record = letter["record"]
    where = "delivered within a cycle" if record["offset"] is None else f"offset {record['offset']}"
    yield f"{letter['at']}  {letter['processor']}  {letter['stage']}  {letter['error']}"
    yield _line("record", f"{record['topic']} partition {record['partition']} {where}")
    yield _line("reason", letter["reason"])
    yield _line("key", _text(letter["key"]))
    yield _line("value", _text(letter["value"]))
    for header in letter["headers"]:
        yield _line("header", f"{header['name']}: {_text(header['value'])}")


def _line(label: str, text: str) -> str:
    lines = text.splitlines() or [""]
    return "\n".join([f"  {label:8}{lines[0]}", *(f"  {'':8}{line}" for line in lines[1:])])


def _text(value: Mapping[str, Any] | None) -> str:
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
