"""`kapelle traces`: export the history of signals, runs and steps as OpenTelemetry spans."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from types import ModuleType
from typing import Annotated

import typer

from kapelle.cli.errors import InTheWay
from kapelle.cli.options.process import RELAY, Begin, BeginOption, Process, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.relays import measured, relaying

ENDPOINT = "http://127.0.0.1:4318"

group = typer.Typer(name="traces", help="Export traces to OpenTelemetry.", no_args_is_help=True)

_log = logging.getLogger("kapelle.traces")


@group.callback()
def _traces() -> None:
    """Export traces to OpenTelemetry."""


@group.command()
@takes_target(*KAFKA)
@takes_process(*RELAY)
def run(
    *,
    endpoint: Annotated[
        str,
        typer.Option("--endpoint", metavar="URL", help="Send spans to the collector at this URL, with OTLP over HTTP."),
    ] = ENDPOINT,
    service: Annotated[
        str | None,
        typer.Option("--service", metavar="NAME", help="Use this service name in traces. Default: the prefix."),
    ] = None,
    sample: Annotated[
        float, typer.Option("--sample", min=0.0, max=1.0, metavar="RATIO", help="Export this fraction of traces.")
    ] = 1.0,
    begin: BeginOption = Begin.EARLIEST,
    target: Target,
    process: Process,
) -> None:
    """Send a span for each signal, trigger firing, run and step attempt to an OpenTelemetry collector, until stopped.

    A trace leads from a signal to the last step that it caused. All processes with the same prefix form one group,
    PREFIX.traces. Any number of them can run. Span ids are derived from what the spans describe, so a span that is sent
    twice has the same id. --sample applies to traces that start in Kapelle. Headers and certificates are read from the
    environment, for example OTEL_EXPORTER_OTLP_HEADERS. This needs the extra kapelle[otel].

    \b
    Examples:
      kapelle traces run --bootstrap-servers 127.0.0.1:9092 --endpoint http://127.0.0.1:4318
      kapelle traces run --config client.properties --sample 0.1 --from latest
    """
    with (
        relaying(target, process) as (kafka, heard, server),
        _explained(),
        ExitStack() as opened,
    ):
        module = _exporter_module()
        from kapelle.topology.kafka.topics import Topics  # noqa: PLC0415 - slow to import
        from kapelle.tracing.ids import Ids  # noqa: PLC0415
        from kapelle.tracing.relay import TraceRelay  # noqa: PLC0415

        topology = target.topology()
        exporter = opened.enter_context(closing(module.Exporter(endpoint, service or topology.prefix)))
        Topics(topology, kafka).verify()
        relay = TraceRelay(topology, kafka, exporter, Ids(topology.prefix, sample), is_from_end=begin is Begin.LATEST)
        heard.working()
        _log.info("exporting", extra={"fields": {"endpoint": exporter.url, "sample": sample}})
        with measured(heard, relay.metrics, server, process.metrics_file) as stopped:
            relay.run(stopped)


def _exporter_module() -> ModuleType:
    """The module that sends spans. It needs the packages of OpenTelemetry."""
    try:
        from kapelle.tracing import exporter  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise InTheWay(
            "Expected the packages of OpenTelemetry, but they are not installed: pip install 'kapelle[otel]'"
        ) from error
    return exporter


@contextmanager
def _explained() -> Iterator[None]:
    """Translate the errors of traces to errors of commands."""
    from kapelle.tracing.errors import BadEndpoint  # noqa: PLC0415

    try:
        yield
    except BadEndpoint as error:
        raise typer.BadParameter(str(error), param_hint="--endpoint") from error
