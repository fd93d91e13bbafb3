"""`kapelle openlineage`: export the history of runs, steps and signals as OpenLineage events."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Annotated

import typer

from kapelle.cli.errors import InTheWay, NotThere
from kapelle.cli.options.process import RELAY, Begin, BeginOption, Process, takes_process
from kapelle.cli.options.target import KAFKA, Target, takes_target
from kapelle.cli.relays import measured, relaying

TOPIC = "openlineage.events"

group = typer.Typer(name="openlineage", help="Export lineage to OpenLineage.", no_args_is_help=True)

_log = logging.getLogger("kapelle.openlineage")


@group.callback()
def _openlineage() -> None:
    """Export lineage to OpenLineage."""


@group.command()
@takes_target(*KAFKA)
@takes_process(*RELAY)
def run(
    *,
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Write the events to this topic. It must exist.")
    ] = TOPIC,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", metavar="NAME", help="Use this namespace for jobs and datasets. Default: the prefix."
        ),
    ] = None,
    begin: BeginOption = Begin.EARLIEST,
    target: Target,
    process: Process,
) -> None:
    """Write an OpenLineage event for each start and end of an instance or a step, until stopped.

    Signals are the datasets. All processes with the same prefix form one group, PREFIX.openlineage. Any number of them
    can run. Run ids are derived from instances and steps, so a duplicate event has the same ids and content. This
    needs the extra kapelle[openlineage].

    \b
    Examples:
      kapelle openlineage run --bootstrap-servers 127.0.0.1:9092 --topic openlineage.events
      kapelle openlineage run --config client.properties --namespace shop --from latest
    """
    with (
        relaying(target, process) as (kafka, heard, server),
        _explained(),
        ExitStack() as opened,
    ):
        relays = _module()
        from kapelle.lineage.emitter import Emitter  # noqa: PLC0415 - an extra
        from kapelle.lineage.events import LineageEvents  # noqa: PLC0415
        from kapelle.topology.kafka.topics import Topics  # noqa: PLC0415 - slow to import

        topology = target.topology()
        Topics(topology, kafka).verify()
        emitter = Emitter(kafka, topic)
        opened.callback(emitter.close, 0)
        telling = LineageEvents(namespace or topology.prefix)
        relay = relays.LineageRelay(topology, kafka, emitter, telling, is_from_end=begin is Begin.LATEST)
        heard.working()
        _log.info("exporting", extra={"fields": {"topic": topic, "namespace": telling.namespace}})
        with measured(heard, relay.metrics, server, process.metrics_file) as stopped:
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
