"""`kapelle dlq`: show dead letters, and publish their records again."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from kapelle.cli.letters import last_records, records_at
from kapelle.cli.options.client import URL, Url, Yes
from kapelle.cli.options.output import Output
from kapelle.cli.options.target import DEAD_LETTERS, Target, takes_target
from kapelle.cli.reach import reaching
from kapelle.cli.redrive import redrive_of, redriven
from kapelle.cli.server import connected
from kapelle.cli.text import output
from kapelle.cli.text.letters import Letter, as_lines
from kapelle.cli.text.output import Form
from kapelle.schemas import Codec
from kapelle.topology.build import Topology
from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.letters import Redrive, shown

LETTERS_MAX: Final = 10_000
SERVED_MAX: Final = 1_000  # a server shows no more at a time

group = typer.Typer(
    name="dlq",
    help="Show dead letters, and publish their records again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


Offsets = Annotated[
    list[int],
    typer.Argument(metavar="OFFSET…", min=0, help="Offsets of dead letters, as `kapelle dlq list` shows them."),
]


def codec_of(topology: Topology, kafka: KafkaSettings) -> Codec:
    """What reads letters, as large as they can be."""
    return Codec(topology.catalog(), record_bytes_max=letter_bytes_max(kafka.record_bytes_max))


def _served(url: str, *parts: str | int, **query: int) -> Letter:
    """A dead letter of the server, or a page of them."""
    from kapelle.client.calls import read  # noqa: PLC0415 - slow to import
    from kapelle.client.results import Object  # noqa: PLC0415 - the same

    with connected(url) as client:
        return client.send(read(Object, "dead-letters", *parts, **query))


def show_last(target: Target, count: int, form: Form, url: str = URL) -> None:
    """The last letters."""
    if not target.names_kafka:
        letters, where = _served(url, count=min(count, SERVED_MAX))["elements"], url
    else:
        letters, where = _last(target, count), target.topology().dead_letters
    output.show(letters, form, _show)
    output.say(f"{output.counted(len(letters), 'dead letter')} from {where}")


def _last(target: Target, count: int) -> Sequence[Letter]:
    topology, kafka = target.topology(), target.kafka()
    codec = codec_of(topology, kafka)
    with reaching(kafka):
        records = last_records(kafka, topology.dead_letters, count)
    return [shown(codec, offset, data) for offset, data in records]


def _show(letters: Sequence[Letter]) -> None:
    if letters:
        output.data("\n\n".join("\n".join(as_lines(letter)) for letter in letters))


@group.command("list")
@takes_target(*DEAD_LETTERS)
def list_(
    *,
    url: Url = URL,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", min=1, max=LETTERS_MAX, help="Show the last N dead letters.")
    ] = 20,
    target: Target,
    form: Output = Form.TEXT,
) -> None:
    """Show the last dead letters, oldest first: the record, its position, the stage that failed, and the reason.

    Values are decoded with the contracts of the topology (--app) if possible. Without --bootstrap-servers, the dead
    letters of the `kapelle dev` at --url are shown.

    \b
    Examples:
      kapelle dlq list
      kapelle dlq list --bootstrap-servers 127.0.0.1:9092
      kapelle dlq list --config client.properties --prefix staging -n 100 -o json
    """
    show_last(target, count, form, url)


@group.command()
@takes_target(*DEAD_LETTERS)
def show(
    offsets: Offsets,
    *,
    url: Url = URL,
    target: Target,
    form: Output = Form.TEXT,
) -> None:
    """Show dead letters by their offsets.

    \b
    Examples:
      kapelle dlq show 12
      kapelle dlq show 12 --bootstrap-servers 127.0.0.1:9092
      kapelle dlq show 12 13 --bootstrap-servers 127.0.0.1:9092 -o json
    """
    if not target.names_kafka:
        output.show([_served(url, offset) for offset in offsets], form, _show)
        return
    topology, kafka = target.topology(), target.kafka()
    codec = codec_of(topology, kafka)
    with reaching(kafka):
        records = records_at(kafka, topology.dead_letters, offsets)
    output.show([shown(codec, offset, data) for offset, data in records], form, _show)


@group.command()
@takes_target(*DEAD_LETTERS)
def redrive(
    offsets: Offsets,
    *,
    yes: Yes = False,
    url: Url = URL,
    target: Target,
    form: Output = Form.TEXT,
) -> None:
    """Publish the records of dead letters again, to their topics, with their keys and headers.

    Fix the cause first. The header kapelle-redriven counts how often a record was published again. The dead letter
    stays where it is. Each redrive of an offset publishes its record again.

    \b
    Examples:
      kapelle dlq redrive 12
      kapelle dlq redrive 12 --bootstrap-servers 127.0.0.1:9092
      kapelle dlq redrive 12 13 --bootstrap-servers 127.0.0.1:9092 --yes -o json
    """
    done = _redriven(target, offsets, yes=yes) if target.names_kafka else _redriven_here(url, offsets, yes=yes)
    output.show(done, form, _show_places)
    output.say(f"published {output.counted(len(done), 'record')} again")


def _show_places(done: Sequence[Letter]) -> None:
    for place in done:
        output.data(f"{place['topic']} partition {place['partition']} offset {place['offset']}")


def _redriven(target: Target, offsets: Sequence[int], *, yes: bool) -> Sequence[Letter]:
    topology, kafka = target.topology(), target.kafka()
    codec = codec_of(topology, kafka)
    with reaching(kafka):
        records = records_at(kafka, topology.dead_letters, offsets)
        redrives = [redrive_of(codec, offset, data) for offset, data in records]
        if not yes:
            _confirm(redrives)
        return redriven(kafka, redrives)


def _redriven_here(url: str, offsets: Sequence[int], *, yes: bool) -> Sequence[Letter]:
    """All letters are looked at before the first record is published."""
    from kapelle.client.calls import write  # noqa: PLC0415 - slow to import
    from kapelle.client.results import Object  # noqa: PLC0415 - the same

    letters = [_served(url, offset) for offset in dict.fromkeys(offsets)]
    if not yes:
        for letter in letters:
            output.say(f"letter {letter['offset']}: {letter.get('reason') or letter.get('unreadable')}")
        typer.confirm(f"Publish {output.counted(len(letters), 'record')} again?", abort=True, err=True)
    with connected(url) as client:
        paths = [("dead-letters", letter["offset"], "actions", "redrive") for letter in letters]
        return [client.send(write("POST", Object, *path)) for path in paths]


def _confirm(redrives: Sequence[Redrive]) -> None:
    for redrive in redrives:
        before = f", redriven {output.counted(redrive.count - 1, 'time')} before" if redrive.count > 1 else ""
        output.say(f"letter {redrive.letter}: to {redrive.topic} partition {redrive.partition}{before}")
    typer.confirm(f"Publish {output.counted(len(redrives), 'record')} again?", abort=True, err=True)
