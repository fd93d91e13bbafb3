"""`kapelle api`: serve the HTTP API over Kafka, and rebuild its view."""

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from kapelle.cli.api_server import api_settings, reloading, serving_api
from kapelle.cli.member_reports import PROGRESS_S, Every
from kapelle.cli.options.process import LOGS, HooksFile, Host, Port, Process, TokensFile, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.reach import reaching
from kapelle.cli.shutdown import Stopping, stopping
from kapelle.cli.text import output
from kapelle.cli.topic_plan import mending

if TYPE_CHECKING:
    from kapelle.api import ApiSettings

group = typer.Typer(
    name="api", help="Serve the HTTP API, and rebuild its view.", no_args_is_help=True, rich_markup_mode=None
)

WATCH_S = 0.5
DAY_MS = 24 * 60 * 60 * 1000

_log = logging.getLogger("kapelle.run")


@group.callback()
def _api() -> None:
    """Serve the HTTP API, and rebuild its view."""


@group.command()
@takes_target(*KAFKA)
@takes_process(*LOGS)
def run(
    *,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    tokens: TokensFile = None,
    hooks: HooksFile = None,
    views_dir: Annotated[
        Path | None,
        typer.Option(
            "--views-dir", metavar="DIR", file_okay=False, help="Store the view in this directory. Default: in memory."
        ),
    ] = None,
    keep_days: Annotated[
        float | None,
        typer.Option(
            "--keep-days",
            metavar="DAYS",
            min=0.01,
            help="Remove old data from the view after this many days. Default: keep all data.",
        ),
    ] = None,
    target: Target,
    process: Process,
) -> None:
    """Serve the HTTP API over Kafka until stopped.

    Each node builds its own view from the history. Any number of nodes can run. Processors run in other processes:
    `kapelle processors run`.

    \b
    Examples:
      kapelle api run --bootstrap-servers 127.0.0.1:9092
      kapelle api run --bootstrap-servers kafka:9092 --host 0.0.0.0 --tokens tokens.txt --views-dir views
    """
    kafka = target.kafka()
    with (
        process.logged(),
        stopping() as heard,
        serving_api(),
        reaching(kafka),
        mending(target),
        ExitStack() as opened,
    ):
        options = ApiOptions(host, port, views_dir, None if keep_days is None else round(keep_days * DAY_MS))
        _serve(opened, heard, target, options, api_settings(tokens, hooks))


class ApiOptions(msgspec.Struct, frozen=True):
    """Where the API answers, and where its view is and for how long it keeps what has ended."""

    host: str
    port: int
    views_dir: Path | None
    keep_ms: int | None


def _serve(
    opened: ExitStack,
    heard: Stopping,
    target: Target,
    options: ApiOptions,
    settings: "ApiSettings",
) -> None:
    from kapelle.api import ApiServer, check_exposure, create_app  # noqa: PLC0415 - FastAPI is slow to import
    from kapelle.api.connections import raise_descriptor_limit  # noqa: PLC0415
    from kapelle.topology.journal import KafkaJournal  # noqa: PLC0415
    from kapelle.views import Views  # noqa: PLC0415

    raise_descriptor_limit()
    check_exposure(options.host, settings.tokens)
    journal = KafkaJournal(target.topology(), target.kafka())
    opened.callback(journal.close)
    views = opened.enter_context(Views(journal, options.views_dir, keep_ms=options.keep_ms))
    server = opened.enter_context(ApiServer(create_app(journal, views, settings), options.host, options.port))
    heard.working()
    output.data(server.url)
    _log.info("serving", extra={"fields": {"url": server.url}})
    look = opened.enter_context(reloading(settings))
    while not heard.pause(WATCH_S):
        look()
        failure = journal.failure or views.failure
        if failure is not None:
            raise failure


@group.command()
@takes_target(*KAFKA)
@takes_process(*LOGS)
def rebuild(
    *,
    views_dir: Annotated[
        Path, typer.Option("--views-dir", metavar="DIR", file_okay=False, help="Rebuild the view in this directory.")
    ],
    target: Target,
    process: Process,
) -> None:
    """Rebuild the view of a node from the log, then exit.

    The command logs the progress and the remaining time. It deletes the old view first, so the node must not run. If
    the rebuild is stopped, the node continues it when it starts.

    \b
    Examples:
      kapelle api rebuild --bootstrap-servers 127.0.0.1:9092 --views-dir views
    """
    kafka = target.kafka()
    with (
        process.logged(),
        stopping() as heard,
        serving_api(),
        reaching(kafka),
        mending(target),
        ExitStack() as opened,
    ):
        _rebuild(opened, heard, target, views_dir)


def _rebuild(opened: ExitStack, heard: Stopping, target: Target, views_dir: Path) -> None:
    from kapelle.topology.journal import KafkaJournal  # noqa: PLC0415 - slow to import
    from kapelle.views import Views  # noqa: PLC0415
    from kapelle.views.progress import Progress, ends_of, folded_of  # noqa: PLC0415

    journal = KafkaJournal(target.topology(), target.kafka())
    opened.callback(journal.close)
    views = Views(journal, views_dir, anew=True)
    opened.callback(views.close)
    heard.working()
    ends, progress, due = ends_of(journal), Progress(0), Every(PROGRESS_S)
    while folded_of(views.watermark, ends) < sum(ends.values()) and not heard.asked:
        views.folding.step(WATCH_S)
        if due():
            _log.info("rebuilding", extra={"fields": progress.fields(views.watermark, ends)})
    told = progress.fields(views.watermark, ends)
    _log.info("stopped" if heard.asked else "rebuilt", extra={"fields": told})
    output.data(str(views_dir))
