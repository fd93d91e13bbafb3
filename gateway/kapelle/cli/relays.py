"""The parts that all relay commands use: logs, stop signals, errors of Kafka, and metrics."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from kapelle.cli import metrics
from kapelle.cli.member_reports import FILE_S, Every
from kapelle.cli.options.process import Process
from kapelle.cli.options.target import Target
from kapelle.cli.reach import reaching
from kapelle.cli.shutdown import Stopping, stopping
from kapelle.cli.topic_plan import mending
from kapelle.topology.kafka.config import KafkaSettings

_log = logging.getLogger("kapelle.metrics")


class Relaying(NamedTuple):
    """What a relay runs with: how to reach Kafka, whether it is to stop, and where its metrics are served."""

    kafka: KafkaSettings
    heard: Stopping
    server: metrics.MetricsServer | None


@contextmanager
def relaying(target: Target, process: Process) -> Iterator[Relaying]:
    """Run a relay within this block. Errors of Kafka are reported as all commands report them."""
    kafka = msgspec.structs.replace(target.kafka(), session_timeout_ms=process.session_timeout_ms)
    with (
        process.logged(),
        stopping() as heard,
        metrics.serving(process.metrics_port) as server,
        reaching(kafka),
        mending(target),
    ):
        yield Relaying(kafka, heard, server)


@contextmanager
def measured(
    heard: Stopping, text: metrics.Text, server: metrics.MetricsServer | None, file: Path | None
) -> Iterator[Callable[[], bool]]:
    """Tell metrics within this block. What it gives is to be asked between batches: whether to stop.

    The file is there as soon as the work begins: a relay that has nothing to do is measured like any other.
    """
    if server is not None:
        server.text, server.unready = text, str
        _log.info("serving metrics", extra={"fields": {"url": server.url}})
    due = Every(FILE_S)
    if file is not None:
        metrics.write(file, text())

    def stopped() -> bool:
        if file is not None and due():
            metrics.write(file, text())
        return heard.asked

    try:
        yield stopped
    finally:
        if file is not None:
            metrics.write(file, text())
