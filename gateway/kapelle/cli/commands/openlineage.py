"""`kapelle openlineage`: tell the history of runs, steps and signals to whoever understands OpenLineage."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Annotated

import typer

from kapelle.cli.errors import InTheWay, NotThere
from kapelle.cli.logs import LogFormat, LogLevel
from kapelle.cli.options.process import (
    SESSION_TIMEOUT_MS,
    Begin,
    LogFormatOption,
    LogLevelOption,
    MetricsFile,
    MetricsPort,
    SessionTimeout,
)
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.relays import measured, relaying

TOPIC = "openlineage.events"

group = typer.Typer(name="openlineage", help="Tell lineage as OpenLineage does.", no_args_is_help=True)

_log = logging.getLogger("kapelle.openlineage")


@group.callback()
def _openlineage() -> None:
    """Tell lineage as OpenLineage does."""


@group.command()
@takes_target(*KAFKA)
def run(
    *,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Where events are written. It must be there.")
    ] = TOPIC,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", help="Of jobs and datasets; else the prefix.")
    ] = None,
    begin: Annotated[Begin, typer.Option("--from", help="Where to begin, the first time.")] = Begin.EARLIEST,
    target: Target,
    session_timeout_ms: SessionTimeout = SESSION_TIMEOUT_MS,
    metrics_port: MetricsPort = None,
    metrics_file: MetricsFile = None,
    log_format: LogFormatOption = LogFormat.PAIRS,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Write an event of OpenLineage for each start and end of an instance or a step, until told to stop.

    Signals are the datasets that they read and write. All processes with the same prefix are one group,
    PREFIX.openlineage: start as many as you like. Ids of runs follow from what they are runs of, so an event that is
    written twice says the same twice. Needs the extra kapelle[openlineage].

    \b
    Examples:
      kapelle openlineage run --bootstrap-servers 127.0.0.1:9092 --topic openlineage.events
      kapelle openlineage run --config client.properties --namespace shop --from latest
    """
    with (
        relaying(
            target,
            port=metrics_port,
            form=log_format,
            level=log_level,
            session_timeout_ms=session_timeout_ms,
        ) as (kafka, heard, server),
        _explained(),
        ExitStack() as opened,
    ):
        relays = _module()
        from kapelle.lineage.emitting import Emitter  # noqa: PLC0415 - an extra
        from kapelle.lineage.events import Telling  # noqa: PLC0415
        from kapelle.topology.kafka.topics import Topics  # noqa: PLC0415 - slow to import

        topology = target.topology()
        Topics(topology, kafka).verify()
        emitter = Emitter(kafka, topic)
        opened.callback(emitter.close, 0)
        telling = Telling(namespace or topology.prefix)
        relay = relays.LineageRelay(topology, kafka, emitter, telling, is_from_end=begin is Begin.LATEST)
        heard.working()
        _log.info("telling", extra={"fields": {"topic": topic, "namespace": telling.namespace}})
        with measured(heard, relay.metrics, server, metrics_file) as stopped:
            relay.run(stopped)


def _module() -> ModuleType:
    """The relay, if the packages of OpenLineage are there."""
    try:
        from kapelle.lineage import relay  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("openlineage"):
            raise
        raise InTheWay(
            "Expected the packages of OpenLineage, but they are not installed: pip install 'kapelle[openlineage]'"
        ) from error
    return relay


@contextmanager
def _explained() -> Iterator[None]:
    """What the errors of lineage mean for a command."""
    from kapelle.lineage.errors import TopicMissing  # noqa: PLC0415 - an extra

    try:
        yield
    except TopicMissing as error:
        raise NotThere(str(error)) from error
