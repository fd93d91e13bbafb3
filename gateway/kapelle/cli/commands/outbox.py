"""`kapelle outbox`: publish the signals that applications write to a table in their own transactions."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Annotated

import typer

from kapelle.cli.errors import BadParam, InTheWay, NotInTime
from kapelle.cli.options.process import MEASURED, Process, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.relays import measured, relaying
from kapelle.cli.text import output

group = typer.Typer(name="outbox", help="Publish signals from a PostgreSQL table.", no_args_is_help=True)

POLL_MS = 500

_log = logging.getLogger("kapelle.outbox")


@group.callback()
def _outbox() -> None:
    """Publish signals from a PostgreSQL table."""


Dsn = Annotated[
    str,
    typer.Option(
        "--dsn",
        metavar="DSN",
        envvar="KAPELLE_OUTBOX_DSN",
        show_envvar=True,
        help="Connect to this PostgreSQL database: postgresql://user@host/database. Put passwords into the variable.",
    ),
]


@group.command()
@takes_target(*KAFKA)
@takes_process(*MEASURED)
def run(
    *,
    dsn: Dsn,
    keep: Annotated[bool, typer.Option("--keep", help="Mark published rows instead of deleting them.")] = False,
    poll_ms: Annotated[
        int, typer.Option("--poll-ms", metavar="MS", min=1, max=600_000, help="Query for new rows at this interval.")
    ] = POLL_MS,
    target: Target,
    process: Process,
) -> None:
    """Publish the rows of the outbox as signals, until stopped.

    Rows are deleted, or marked, after the broker has acknowledged them. The id of a row is the id of its signal, so any
    number of processes can run, and a killed process causes no duplicates. A row that cannot become a signal stays,
    with the reason in its column `refused`. This needs the extra kapelle[postgres].

    \b
    Examples:
      kapelle outbox run --dsn postgresql://shop@127.0.0.1/shop --bootstrap-servers 127.0.0.1:9092
      kapelle outbox run --config client.properties --keep --poll-ms 50
    """
    with (
        relaying(target, process) as (kafka, heard, server),
        _explained(),
        ExitStack() as opened,
    ):
        outbox = _module()
        from kapelle.topology.journal import KafkaJournal  # noqa: PLC0415 - slow to import

        journal = KafkaJournal(target.topology(), kafka)
        opened.callback(journal.close, 0)
        relay = outbox.OutboxRelay(journal, dsn, keep=keep, poll_s=poll_ms / 1000)
        heard.working()
        _log.info("relaying", extra={"fields": {"table": outbox.TABLE}})
        with measured(heard, relay.metrics, server, process.metrics_file) as stopped:
            relay.run(stopped, heard.pause)


@group.command()
def sql() -> None:
    """Print the SQL that creates the outbox table. It can be run again safely.

    \b
    Examples:
      kapelle outbox sql
      kapelle outbox sql > migrations/outbox.sql
    """
    from importlib import resources  # noqa: PLC0415 - this command needs no driver, so it imports no module that does

    output.data(resources.files("kapelle.sources").joinpath("outbox.sql").read_text())


def _module() -> ModuleType:
    """The relay, if the driver of PostgreSQL is there."""
    try:
        from kapelle.sources import outbox  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise InTheWay(
            "Expected the driver of PostgreSQL, but it is not installed: pip install 'kapelle[postgres]'"
        ) from error
    return outbox


@contextmanager
def _explained() -> Iterator[None]:
    """What the errors of the outbox mean for a command."""
    from kapelle.sources.errors import BadDsn, DatabaseAway, DatabaseRefused  # noqa: PLC0415 - slow to import

    try:
        yield
    except BadDsn as error:
        raise BadParam(str(error)) from error
    except DatabaseAway as error:
        raise NotInTime(str(error)) from error
    except DatabaseRefused as error:
        raise InTheWay(str(error)) from error
