"""`kapelle sources`: make the records of any topic into signals."""

import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from kapelle.cli.errors import BadFile, ExitCode, InTheWay
from kapelle.cli.options.process import RELAY, Process, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.relays import measured, relaying
from kapelle.cli.text import output

if TYPE_CHECKING:
    from kapelle.sources import TopicSource

group = typer.Typer(name="sources", help="Turn records of any topic into signals.", no_args_is_help=True)

_log = logging.getLogger("kapelle.sources")


@group.callback()
def _sources() -> None:
    """Turn records of any topic into signals."""


File = Annotated[
    Path,
    typer.Option(
        "--file", metavar="FILE", exists=True, dir_okay=False, readable=True, help="Read sources from this file."
    ),
]
Sample = Annotated[
    Path | None,
    typer.Option(
        "--sample", metavar="RECORD.json", exists=True, dir_okay=False, help="Show the signal that this record becomes."
    ),
]


@group.command()
@takes_target(*KAFKA)
@takes_process(*RELAY)
def run(
    *,
    file: File,
    target: Target,
    process: Process,
) -> None:
    """Publish a signal for each record of the topics in a file, until stopped.

    All processes with the same prefix form one group, PREFIX.sources. Any number of them can run. The file is reloaded
    when it changes, and on SIGHUP. An invalid file is logged and ignored. A topic that is new to the group is read from
    its beginning. Records that cannot become signals become dead letters.

    \b
    Examples:
      kapelle sources run --bootstrap-servers 127.0.0.1:9092 --file sources.yaml
      kapelle sources run --config client.properties --prefix staging --file sources.yaml
    """
    with (
        relaying(target, process) as (kafka, heard, server),
        explained(),
        ExitStack() as opened,
    ):
        from kapelle.processors.wiring import SIGNALS  # noqa: PLC0415 - slow to import
        from kapelle.sources import TopicRelay, WatchedFile  # noqa: PLC0415
        from kapelle.topology.journal import KafkaJournal  # noqa: PLC0415

        topology = target.topology()
        watched = WatchedFile(file, refused={topology.topic(SIGNALS), topology.dead_letters})
        opened.callback(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, lambda *_: watched.ask()))
        journal = KafkaJournal(topology, kafka)
        opened.callback(journal.close, 0)
        relay = TopicRelay(journal, watched, kafka, prefix=topology.prefix)
        heard.working()
        _log.info("relaying", extra={"fields": {"sources": len(watched.current.sources), "file": file}})
        with measured(heard, relay.metrics, server, process.metrics_file) as stopped:
            relay.run(stopped)


@group.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="File of sources.")],
    *,
    sample: Sample = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="TOPIC", help="Use only the sources of this topic. Default: the sources of all topics."
        ),
    ] = None,
) -> None:
    """Check a file of sources, and show the signal that a record becomes. This does not connect to anything.

    All problems of the file are reported at once. Give an Avro record in its JSON form. The exit code is 1 if a source
    refuses the record.

    \b
    Examples:
      kapelle sources check sources.yaml
      kapelle sources check sources.yaml --topic shop.orders --sample order.json
    """
    from kapelle.sources import read_sources  # noqa: PLC0415 - slow to import

    with explained():
        declared = read_sources(file.read_bytes())
    output.say(f"{output.counted(len(declared.sources), 'source')} in {file}")
    if sample is None:
        return
    document = _document(sample)
    shown = [_shown(source, document) for source in declared.sources if topic in {None, source.topic}]
    output.json(shown)
    if any("refused" in document for document in shown):
        raise typer.Exit(ExitCode.FAILURE)


def _document(path: Path) -> object:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFile(f"Expected JSON in {path}, but {error}") from error


def _shown(source: "TopicSource", document: object) -> dict[str, object]:
    """What a source makes of a record, which stands at the beginning of its topic."""
    from kapelle.processors.intake.forms import NotASignal  # noqa: PLC0415 - slow to import
    from kapelle.sources import Coordinates, signal_of  # noqa: PLC0415

    try:
        signal_ = signal_of(source, document, Coordinates(source.topic, 0, 0))
    except NotASignal as error:
        return {"topic": source.topic, "refused": str(error)}
    if signal_ is None:
        return {"topic": source.topic, "filtered": True}
    return {
        "topic": source.topic,
        "signal": {
            "name": signal_.name,
            "id": signal_.signal_id,
            "params": msgspec.json.decode(signal_.params),
            "payload": msgspec.json.decode(signal_.payload),
            "happened_at_ms": signal_.happened_at_ms,
        },
    }


@contextmanager
def explained() -> Iterator[None]:
    """What the errors of sources mean for a command."""
    from kapelle.sources import BadSources, SourcesError  # noqa: PLC0415 - slow to import

    try:
        yield
    except BadSources as error:
        raise BadFile(str(error)) from error
    except SourcesError as error:
        raise InTheWay(str(error)) from error
