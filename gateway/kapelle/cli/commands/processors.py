"""`kapelle processors`: run processors on Kafka."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from kapelle.cli.aside_records import records_at
from kapelle.cli.errors import NothingToRun, UnknownProcessor
from kapelle.cli.member_reports import Reporter
from kapelle.cli.metrics import MetricsServer, serving
from kapelle.cli.options.process import (
    MEASURED,
    SESSION_TIMEOUT_MS,
    STATISTICS_MS,
    TRANSACTION_TIMEOUT_MS,
    OnBugOption,
    Process,
    ProtocolOption,
    RegistryUrl,
    SessionTimeout,
    SetAside,
    TransactionTimeout,
    takes_process,
)
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.reach import reaching
from kapelle.cli.registry import framing
from kapelle.cli.shutdown import Stopping, stopping
from kapelle.cli.topic_plan import mending
from kapelle.topology.build import Topology
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.settings import Limits, MemberSettings, OnBug, OnLostInput

group = typer.Typer(name="processors", help="Run the processors of a topology.", no_args_is_help=True)

PATIENCE_MS = 100  # others hear of what happens so much later at most, and the engine has its transactions to itself

_log = logging.getLogger("kapelle.run")


@group.callback()
def _processors() -> None:
    """Run the processors of a topology."""


Names = Annotated[list[str] | None, typer.Argument(metavar="NAMES", help="Processors to run. Default: all.")]
StateDir = Annotated[
    Path,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        file_okay=False,
        help="Store the tables and the name of this process in this directory. Only one process can use it.",
    ),
]
OnLostInputOption = Annotated[
    OnLostInput,
    typer.Option(
        "--on-lost-input",
        help="Stop, or write a dead letter and continue, when input was deleted before it was read.",
    ),
]
SameCycle = Annotated[
    bool,
    typer.Option("--same-cycle/--no-same-cycle", help="Deliver commands within the same cycle where this is safe."),
]
Statistics = Annotated[
    int,
    typer.Option(
        "--statistics-ms",
        metavar="MS",
        min=0,
        help="Collect statistics of librdkafka at this interval. 0 disables them.",
    ),
]


@group.command()
@takes_target(*KAFKA)
@takes_process(*MEASURED)
def run(
    names: Names = None,
    *,
    state_dir: StateDir,
    target: Target,
    protocol: ProtocolOption = Protocol.CLASSIC,
    session_timeout_ms: SessionTimeout = SESSION_TIMEOUT_MS,
    transaction_timeout_ms: TransactionTimeout = TRANSACTION_TIMEOUT_MS,
    statistics_ms: Statistics = STATISTICS_MS,
    on_bug: OnBugOption = OnBug.STOP,
    set_aside: SetAside = None,
    on_lost_input: OnLostInputOption = OnLostInput.STOP,
    same_cycle: SameCycle = True,
    registry: RegistryUrl = None,
    process: Process,
) -> None:
    """Run processors on Kafka until stopped.

    On SIGTERM or SIGINT the process leaves its consumer groups and exits within five seconds.

    With --registry, records of public topics have the schema ids of the registry. The schemas must be registered.

    Each process needs its own state directory. Kafka distributes the partitions over the processes. If a process is
    lost, other processes restore its tables from the changelogs.

    \b
    Examples:
      kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state
      kapelle processors run counting --app shop.processors:topology --state-dir state --config client.properties
      kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state --metrics-port 9464
    """
    hosted = names or []
    topology = target.topology()
    kafka = msgspec.structs.replace(
        target.kafka(),
        protocol=protocol,
        session_timeout_ms=session_timeout_ms,
        transaction_timeout_ms=transaction_timeout_ms,
        statistics_ms=statistics_ms,
    )
    _check_hosted(topology, hosted, target.app)
    policies = MemberSettings(on_bug=on_bug, set_aside=records_at(set_aside), on_lost_input=on_lost_input)
    limits, written = Limits(patience_ms=PATIENCE_MS), framing(topology, registry)
    settings = msgspec.structs.replace(policies, same_cycle=same_cycle, limits=limits, framing=written)
    with process.logged(), stopping() as heard, serving(process.metrics_port) as server, reaching(kafka):
        _log.info("starting", extra={"fields": _started(topology, kafka, hosted, state_dir)})
        with mending(target):
            running = KafkaMember(topology, kafka, state_dir, settings=settings, hosted=hosted)
        reporter = Reporter(running, process.metrics_file)
        _tell(server, reporter)
        with reporter.weighing if server is not None or process.metrics_file is not None else nullcontext():
            _run(running, reporter, heard)


def _tell(server: MetricsServer | None, reporter: Reporter) -> None:
    """Let the server of metrics, if there is one, ask the reporter."""
    if server is None:
        return
    server.text, server.failed, server.unready = reporter.text, reporter.stuck, reporter.unready
    _log.info("serving metrics", extra={"fields": {"url": server.url}})


def _run(running: KafkaMember, reporter: Reporter, heard: Stopping) -> None:
    def done() -> bool:
        reporter.tick()
        return heard.asked

    heard.working()
    running.run(done)
    reporter.end()


def _check_hosted(topology: Topology, hosted: Sequence[str], app: str) -> None:
    if not topology.processors:
        raise NothingToRun(f"Expected processors to run, but {app} has none: name a topology with --app")
    unknown = [name for name in hosted if name not in topology.processors]
    if unknown:
        raise UnknownProcessor(unknown, list(topology.processors))


def _started(topology: Topology, kafka: KafkaSettings, hosted: Sequence[str], state_dir: Path) -> dict[str, object]:
    chosen = {"prefix": topology.prefix, "processors": ",".join(hosted or topology.processors), "state_dir": state_dir}
    return chosen | kafka.redacted()
