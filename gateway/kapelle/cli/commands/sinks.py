"""`kapelle sinks`: deliver public events to webhooks and Amazon SNS."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kapelle.cli.errors import BadFile, InTheWay
from kapelle.cli.options.process import RELAY, Process, RegistryUrl, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.registry import framing
from kapelle.cli.relays import measured, relaying
from kapelle.cli.text import output

group = typer.Typer(name="sinks", help="Deliver public events to webhooks and Amazon SNS.", no_args_is_help=True)

_log = logging.getLogger("kapelle.sinks")


@group.callback()
def _sinks() -> None:
    """Deliver public events to webhooks and Amazon SNS."""


File = Annotated[
    Path,
    typer.Option(
        "--file", metavar="FILE", exists=True, dir_okay=False, readable=True, help="Read sinks from this file."
    ),
]


@group.command()
@takes_target(*KAFKA)
@takes_process(*RELAY)
def run(
    *,
    file: File,
    registry: RegistryUrl = None,
    target: Target,
    process: Process,
) -> None:
    """Deliver the events of public topics to the sinks in a file, until stopped.

    Each sink has its own group, PREFIX.sinks.NAME. Any number of processes can run. An event is delivered at least
    once, always with the same id. Events of one key are delivered in order. An event that a sink refuses becomes a dead
    letter. A sink that does not answer is retried and does not delay other sinks. Amazon SNS needs the extra
    kapelle[sns].

    \b
    Examples:
      kapelle sinks run --bootstrap-servers 127.0.0.1:9092 --file sinks.yaml
      kapelle sinks run --config client.properties --prefix staging --file sinks.yaml
    """
    with (
        relaying(target, process) as (kafka, heard, server),
        explained(),
        ExitStack() as opened,
    ):
        from kapelle.sinks import Log, Sinks, read_sinks  # noqa: PLC0415 - slow to import
        from kapelle.topology.journal import KafkaJournal  # noqa: PLC0415

        declared, topology = read_sinks(file.read_bytes()), target.topology()
        framed = framing(topology, registry)
        journal = KafkaJournal(topology, kafka)
        opened.callback(journal.close, 0)
        sinks = Sinks(declared, Log(topology, kafka, journal, framed))
        heard.working()
        _log.info("delivering", extra={"fields": {"sinks": len(declared), "file": file}})
        with measured(heard, sinks.metrics, server, process.metrics_file) as stopped:
            sinks.run(stopped, heard.pause)


@group.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="File of sinks.")],
) -> None:
    """Check a file of sinks. All problems are reported at once. This does not connect to anything.

    \b
    Examples:
      kapelle sinks check sinks.yaml
    """
    from kapelle.sinks import read_sinks  # noqa: PLC0415 - slow to import

    with explained():
        declared = read_sinks(file.read_bytes())
    output.say(f"{output.counted(len(declared), 'sink')} in {file}")


@contextmanager
def explained() -> Iterator[None]:
    """What the errors of sinks mean for a command."""
    from kapelle.sinks import BadSinks, SinksError  # noqa: PLC0415 - slow to import

    try:
        yield
    except BadSinks as error:
        raise BadFile(str(error)) from error
    except SinksError as error:
        raise InTheWay(str(error)) from error
