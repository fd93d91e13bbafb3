"""`kapelle worker`: serve steps that are written as Python functions."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from kapelle.cli.metrics import WORKER, MetricsServer, serving
from kapelle.cli.options.client import URL, Url
from kapelle.cli.options.process import CONCURRENCY, SERVED, Concurrency, HttpAllow, Process, takes_process
from kapelle.cli.options.target import TASKS, Target, takes_target
from kapelle.cli.worker_modules import load_workers
from kapelle.cli.workers import http_transport, serve_http, served
from kapelle.topology.exposition import exposition

if TYPE_CHECKING:
    from kapelle.worker import Dispatch, Runner, Transport

group = typer.Typer(name="worker", help="Run workers.", no_args_is_help=True, rich_markup_mode=None)

CONSUMER = "consumer"
DRAIN_S = 30.0

_log = logging.getLogger("kapelle.worker")


@group.callback()
def _worker() -> None:
    """Run workers."""


Modules = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE[:WORKER]…",
        help="Modules with a `Worker`: names or files. The current directory is searched too.",
    ),
]
DispatchOption = Annotated[
    str,
    typer.Option(
        "--dispatch",
        metavar="consumer|share",
        help="Take tasks from Kafka through a consumer group or a share group. share needs Kafka 4.1 or later.",
    ),
]


@group.command()
@takes_target(*TASKS)
@takes_process(*SERVED)
def run(
    modules: Modules,
    *,
    url: Url = URL,
    target: Target,
    dispatch: DispatchOption = CONSUMER,
    concurrency: Concurrency = CONCURRENCY,
    drain_s: Annotated[
        float,
        typer.Option(
            "--drain", metavar="SECONDS", min=0, help="Wait this long for running steps to end after a stop signal."
        ),
    ] = DRAIN_S,
    name: Annotated[
        str,
        typer.Option(
            "--name", metavar="NAME", help="Give the worker this name. It must be unique. Default: a generated name."
        ),
    ] = "",
    http_allow: HttpAllow = None,
    process: Process,
) -> None:
    """Run the steps of workers until stopped.

    Tasks come from the server at --url, or directly from Kafka with --bootstrap-servers. On SIGTERM or SIGINT the
    worker takes no more tasks and finishes the running ones. After a second signal it returns them at once.

    \b
    Examples:
      kapelle worker run steps
      kapelle worker run shop.steps:worker --concurrency 32
      kapelle worker run steps --bootstrap-servers 127.0.0.1:9092 --dispatch share
      kapelle worker run steps --http-allow api.example.com
      kapelle worker run steps --metrics-port 9465
    """
    from kapelle.worker import WorkerSettings  # noqa: PLC0415 - slow to import

    settings = WorkerSettings(concurrency=concurrency, drain_timeout_s=drain_s, name=name)
    over_kafka = target.servers is not None or target.config is not None
    if not over_kafka:
        _refuse_alone({"--prefix": target.prefix, "-X": target.extra, "--dispatch": dispatch != CONSUMER})
    worker = load_workers(modules)
    serve_http(worker, http_allow)
    with process.logged(), served(), serving(process.metrics_port) as server:
        transport = _kafka_transport(target, dispatch) if over_kafka else http_transport(url)
        worker.run(transport, settings, started=lambda runner: _watched(runner, server))
        _log.info("stopped")


def _watched(runner: "Runner", server: MetricsServer | None) -> None:
    """Tell of a runner where that was asked for."""
    if server is None:
        return
    server.text = lambda: worker_text(runner)
    server.failed = lambda: str(runner.failure or "")
    server.unready = lambda: "" if runner.is_connected else "not connected to the source of tasks"
    _log.info("serving metrics", extra={"fields": {"url": server.url}})


def worker_text(runner: "Runner") -> str:
    """The metrics of a worker."""
    counted = {**msgspec.structs.asdict(runner.counts), "in_hand": runner.in_hand}
    return exposition(counted, metrics=WORKER)


def _refuse_alone(given: Mapping[str, object]) -> None:
    """Options that mean something for Kafka only: over HTTP they would be passed over in silence."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter("it requires --bootstrap-servers or --config", param_hint=f"'{option}'")


def _kafka_transport(target: Target, dispatch: str) -> "Transport":
    from kapelle.worker import KafkaTransport  # noqa: PLC0415 - slow to import

    servers, config = target.client()
    return KafkaTransport(servers, target.prefix or "kapelle", dispatch=_dispatch(dispatch), config=config)


def _dispatch(text: str) -> "Dispatch":
    from kapelle.worker import Dispatch  # noqa: PLC0415 - slow to import

    try:
        return Dispatch(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not one of 'consumer', 'share'", param_hint="'--dispatch'") from error
