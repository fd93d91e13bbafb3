"""`kapelle processors`: run them."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kapelle.cli.errors import NothingToRun, UnknownProcessor
from kapelle.cli.loading import DEFAULT_APP
from kapelle.cli.logs import LogFormat, LogLevel, log_to_stderr
from kapelle.cli.metrics import serving
from kapelle.cli.options import TIMEOUT_S, App, Config, Extra, Partitions, Prefix, Servers, Target, Timeout
from kapelle.cli.reach import reaching
from kapelle.cli.reporting import Reporter
from kapelle.cli.stopping import Stopping, stopping
from kapelle.cli.topics import planned, wrong
from kapelle.topology.build import Topology
from kapelle.topology.errors import TopicsDiffer
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.settings import MemberSettings, OnBug

group = typer.Typer(name="processors", help="Run the processors of a topology.", no_args_is_help=True)

_log = logging.getLogger("kapelle.run")


@group.callback()
def _processors() -> None:
    """Run the processors of a topology."""


@group.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAMES", help="The processors to host; all by default.")
    ] = None,
    *,
    state_dir: Annotated[
        Path,
        typer.Option(
            "--state-dir",
            metavar="DIR",
            file_okay=False,
            help="Where this process keeps its tables, and its name. One process at a time.",
        ),
    ],
    servers: Servers = None,
    app: App = DEFAULT_APP,
    prefix: Prefix = None,
    partitions: Partitions = None,
    config: Config = None,
    extra: Extra = None,
    timeout_s: Timeout = TIMEOUT_S,
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="How members share partitions out; consumer is KIP-848.")
    ] = Protocol.CLASSIC,
    on_bug: Annotated[
        OnBug, typer.Option("--on-bug", help="When a processor's own code raises: stop, or put the record aside.")
    ] = OnBug.STOP,
    same_cycle: Annotated[
        bool, typer.Option("--same-cycle/--no-same-cycle", help="Deliver commands within the cycle where that is safe.")
    ] = True,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Serve /metrics on 127.0.0.1; 0 takes any free port.",
        ),
    ] = None,
    metrics_file: Annotated[
        Path | None,
        typer.Option("--metrics", metavar="FILE", dir_okay=False, help="Write metrics to a file every five seconds."),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How log lines look.")] = LogFormat.PAIRS,
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="The least grave lines to show.")] = LogLevel.INFO,
) -> None:
    """Host processors on Kafka until told to stop.

    On SIGTERM or SIGINT the process leaves its groups in good order, within five seconds.

    Each process needs a state directory of its own. Start as many as there are partitions, anywhere; Kafka shares the
    partitions out. What a lost process had is restored elsewhere from the changelogs.

    \b
    Examples:
      kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state
      kapelle processors run counting --app shop.processors:topology --state-dir state --config client.properties
      kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state --metrics-port 9464
    """
    log_to_stderr(log_format, log_level)
    target = Target(
        servers=servers,
        app=app,
        prefix=prefix,
        partitions=partitions,
        config=config,
        extra=extra or (),
        timeout_s=timeout_s,
        protocol=protocol,
    )
    hosted = names or []
    topology, kafka = target.topology(), target.kafka()
    _check_hosted(topology, hosted, app)
    settings = MemberSettings(on_bug=on_bug, same_cycle=same_cycle)
    with stopping() as heard, reaching(kafka):
        _log.info("starting", extra={"fields": _started(topology, kafka, hosted, state_dir)})
        with _mending(target):
            running = KafkaMember(topology, kafka, state_dir, settings=settings, hosted=hosted)
        reporter = Reporter(running, metrics_file)
        with serving(metrics_port, reporter.text) as server:
            if server is not None:
                _log.info("serving metrics", extra={"fields": {"url": server.url}})
            _run(running, reporter, heard)


def _run(running: KafkaMember, reporter: Reporter, heard: Stopping) -> None:
    def done() -> bool:
        reporter.tick()
        return heard.asked

    running.run(done)
    reporter.end()


def _check_hosted(topology: Topology, hosted: Sequence[str], app: str) -> None:
    if not topology.processors:
        raise NothingToRun(f"Expected processors to run, but {app} has none: name a topology with --app")
    unknown = [name for name in hosted if name not in topology.processors]
    if unknown:
        raise UnknownProcessor(unknown, list(topology.processors))


@contextmanager
def _mending(target: Target) -> Iterator[None]:
    """A refusal of the topics gets the command that mends it, with the options that were given."""
    try:
        yield
    except TopicsDiffer as error:
        raise wrong(planned(target), target) from error


def _started(topology: Topology, kafka: KafkaSettings, hosted: Sequence[str], state_dir: Path) -> dict[str, object]:
    chosen = {"prefix": topology.prefix, "processors": ",".join(hosted or topology.processors), "state_dir": state_dir}
    return chosen | kafka.redacted()
