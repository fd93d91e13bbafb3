"""`kapelle dev`: everything in one process on one directory, for development and trials."""

import importlib.metadata
import tempfile
import time
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kapelle.cli.api_server import api_settings, reloading, serving_api
from kapelle.cli.aside_records import records_at
from kapelle.cli.damaged_logs import LOG, VIEWS, damage_told, record, salvaged
from kapelle.cli.errors import DataInUse, NotAWorker
from kapelle.cli.logs import LogLevel
from kapelle.cli.options.client import TOKEN_VARIABLE
from kapelle.cli.options.process import (
    CONCURRENCY,
    LOGS,
    Concurrency,
    HooksFile,
    Host,
    HttpAllow,
    OnBugOption,
    Port,
    Process,
    SetAside,
    TokensFile,
    takes_process,
)
from kapelle.cli.server import token
from kapelle.cli.shutdown import Stopping, stopping
from kapelle.cli.text import output
from kapelle.cli.worker_modules import load_workers
from kapelle.cli.workers import http_transport, serve_http, served
from kapelle.topology.settings import MemberSettings, OnBug, RecordAt

if TYPE_CHECKING:
    from kapelle.api import ApiSettings
    from kapelle.topology.build import Topology
    from kapelle.topology.embedded import EmbeddedSettings
    from kapelle.worker import Worker

WATCH_S: Final = 0.2
DRAIN_S: Final = 2.0  # a developer who stops does not want to wait

Failure = Callable[[], BaseException | None]
Salvage = Annotated[
    bool,
    typer.Option(
        "--salvage", help="Use the readable part of a damaged --data directory. A copy of the directory is kept."
    ),
]


class DevOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command, as far as the parts need them."""

    host: str
    port: int
    data: Path | None
    workers: Sequence[str]
    concurrency: int
    http_allow: Sequence[str]
    tokens: Path | None
    hooks: Path | None
    registry: bool = False
    salvage: bool = False
    on_bug: OnBug = OnBug.STOP
    set_aside: frozenset[RecordAt] = frozenset()


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", file_okay=False, help="Store all data in this directory. Without it, nothing is kept."
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open the documentation of the API in a browser.")]
WorkerModules = Annotated[
    list[str] | None,
    typer.Option("--worker", metavar="MODULE[:WORKER]", help="Also run the steps of this worker. Repeatable."),
]
Registry = Annotated[
    bool, typer.Option("--registry", help="Also run a schema registry, and write public records with its schema ids.")
]


@takes_process(*LOGS, log_level=LogLevel.WARNING)
def dev(
    *,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    data: DataDir = None,
    worker: WorkerModules = None,
    concurrency: Concurrency = CONCURRENCY,
    http_allow: HttpAllow = None,
    tokens: TokensFile = None,
    hooks: HooksFile = None,
    registry: Registry = False,
    salvage: Salvage = False,
    on_bug: OnBugOption = OnBug.STOP,
    set_aside: SetAside = None,
    open_browser: Open = False,
    process: Process,
) -> None:
    """Run everything in one process: the engine on an embedded log, the HTTP API, and workers.

    Kafka is not needed. With --data, acknowledged requests survive a crash and a restart. Only one process can use a
    data directory at a time. Press Ctrl-C to stop.

    A data directory is refused if it lacks acknowledged records, because files are damaged, missing or outdated. With
    --salvage, it is used anyway. The loss is reported here, in the dead letters, and in a file next to the copy.

    \b
    Examples:
      kapelle dev
      kapelle dev --data kapelle-data --worker steps
      kapelle dev --data kapelle-data --salvage
      kapelle dev --port 9000 --http-allow api.example.com
    """
    began_s = time.monotonic()
    options = DevOptions(
        host=host,
        port=port,
        data=data,
        workers=worker or (),
        concurrency=concurrency,
        http_allow=http_allow or (),
        tokens=tokens,
        hooks=hooks,
        registry=registry,
        salvage=salvage,
        on_bug=on_bug,
        set_aside=records_at(set_aside),
    )
    with (
        process.logged(),
        stopping() as heard,
        serving_api(),
        served(),
        ExitStack() as opened,
    ):
        heard.working()
        if data is not None:
            opened.enter_context(damage_told(data))
        url, failures = _opened(opened, options)
        output.data(url)
        _welcome(url, options, time.monotonic() - began_s)
        if open_browser:
            webbrowser.open(f"{url}/docs")
        _watch(heard, failures)
    output.say("stopped")


def _opened(opened: ExitStack, options: DevOptions) -> tuple[str, Sequence[Failure]]:
    """Start the parts, each on top of the one before; they are closed the other way round."""
    from kapelle.api import ApiServer, check_exposure, create_app  # noqa: PLC0415 - FastAPI is slow to import
    from kapelle.api.connections import raise_descriptor_limit  # noqa: PLC0415
    from kapelle.topology.embedded import EmbeddedRuntime  # noqa: PLC0415
    from kapelle.topology.journal import EmbeddedJournal  # noqa: PLC0415
    from kapelle.topology.page import topology  # noqa: PLC0415
    from kapelle.topology.tables import StoreLocked  # noqa: PLC0415
    from kapelle.views import Views  # noqa: PLC0415
    from kapelle.views.witness import witness_of  # noqa: PLC0415

    raise_descriptor_limit()
    settings = api_settings(options.tokens, options.hooks)
    check_exposure(options.host, settings.tokens)
    steps = _steps(options, settings)
    directory = options.data or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kapelle-dev-")))
    whole = topology()
    how = _written(opened, whole, options)
    saved = salvaged(options.data, whole, how.member.framing) if options.salvage else None
    witness = None if saved is not None else witness_of(directory / VIEWS, whole)
    try:
        runtime = opened.enter_context(
            EmbeddedRuntime(whole, directory / LOG, msgspec.structs.replace(how, witness=witness))
        )
    except StoreLocked as error:
        raise DataInUse(directory, error.holder) from error
    runtime.start()
    if saved is not None:
        record(runtime, saved)
    journal = EmbeddedJournal(runtime)
    views = opened.enter_context(Views(journal, directory / VIEWS, anew=saved is not None))
    server = opened.enter_context(ApiServer(create_app(journal, views, settings), options.host, options.port))
    # Looking at the file of hooks fails never: one that cannot be used is told of, and changes nothing.
    failures: list[Failure] = [
        lambda: runtime.failure,
        lambda: views.failure,
        opened.enter_context(reloading(settings)),
    ]
    if steps is not None:
        failures.append(_working(opened, steps, server.url, options.concurrency))
    return server.url, failures


def _written(opened: ExitStack, topology: "Topology", options: DevOptions) -> "EmbeddedSettings":
    """How the engine writes: with a registry of its own, public records by the ids of their schemas."""
    from kapelle.registry import PublicSchemas, RegistryClient, RegistryServer  # noqa: PLC0415 - slow to import
    from kapelle.topology.embedded import EmbeddedSettings  # noqa: PLC0415

    member = MemberSettings(on_bug=options.on_bug, set_aside=options.set_aside)
    if not options.registry:
        return EmbeddedSettings(member=member)
    server = opened.enter_context(RegistryServer())
    output.say(f"schema registry at {server.url}")
    schemas = PublicSchemas(topology)
    with RegistryClient(server.url) as client:
        schemas.apply(client)
        return EmbeddedSettings(member=msgspec.structs.replace(member, framing=schemas.framing(client)))


def _steps(options: DevOptions, settings: "ApiSettings") -> "Worker | None":
    """The steps that this process serves itself; None if it serves none."""
    if not options.workers and not options.http_allow:
        return None
    if settings.tokens is not None and token() is None:
        raise NotAWorker(f"Expected a token of the role operator in {TOKEN_VARIABLE} for --worker, but found none")
    steps = load_workers(options.workers)
    serve_http(steps, options.http_allow)
    return steps


def _working(opened: ExitStack, steps: "Worker", url: str, concurrency: int) -> Failure:
    from kapelle.worker import WorkerSettings  # noqa: PLC0415 - slow to import

    runner = steps.start(http_transport(url), WorkerSettings(concurrency=concurrency, drain_timeout_s=DRAIN_S))
    opened.callback(runner.stop)
    return lambda: runner.failure


def _watch(heard: Stopping, failures: Sequence[Failure]) -> None:
    """Wait until told to stop. A part that has failed ends the whole, with its reason."""
    while not heard.pause(WATCH_S):
        for failure in failures:
            reason = failure()
            if reason is not None:
                raise reason


def _welcome(url: str, options: DevOptions, took_s: float) -> None:
    kept = f"in {options.data}" if options.data else "not kept: use --data DIR to keep it"
    at = "" if url == "http://127.0.0.1:8080" else f" --url {url}"
    output.say(f"Kapelle {importlib.metadata.version('kapelle')} is ready after {took_s:.1f} s", style="bold green")
    output.say(f"  API      {url}/api/v3, documentation at {url}/docs")
    output.say(f"  data     {kept}")
    output.say(f"  workers  {', '.join(options.workers) or 'none in this process: kapelle worker run MODULE' + at}")
    output.say(f"  next     kapelle workflow push FILE{at}")
    output.say(f"           kapelle run start WORKFLOW --watch{at}")
    output.say("  Press Ctrl-C to stop")
