"""Runs sinks side by side, each in a thread of its own. One that ends with an error is begun anew, and told of."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.relay.metrics import SINK, SINKS
from kapelle.sinks.courier import Receiver
from kapelle.sinks.models import Sink
from kapelle.sinks.relay import Counts, Log, SinkRelay
from kapelle.sinks.webhooks import Webhook
from kapelle.topology.exposition import Statistics, exposition_by

AGAIN_S: Final = 5.0
LOOK_S: Final = 0.25
LEAVE_S: Final = 3.0  # all of them together; a stop has 4.5 s in all

_log = logging.getLogger("kapelle.sinks")


def receiver_of(sink: Sink) -> Receiver:
    """The way to a sink. Raises `SinkLacks`."""
    if sink.webhook is not None:
        return Webhook(sink.webhook)
    assert sink.sns is not None  # noqa: S101 - the file was checked: it is one or the other
    from kapelle.sinks.sns import SnsTopic  # noqa: PLC0415 - an extra

    return SnsTopic(sink.sns)


class Supervised:
    """One sink, and whoever delivers to it now."""

    def __init__(self, name: str, sink: Sink, log: Log, stop: threading.Event) -> None:
        self.name = name
        self.counts = Counts()
        self._sink = sink
        self._log = log
        self._stop = stop
        self._relay: SinkRelay | None = None
        self.thread = threading.Thread(target=self._run, name=f"kapelle-sink-{name}", daemon=True)

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        return {} if self._relay is None else self._relay.statistics

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._relay = SinkRelay(self.name, self._sink, self._log, receiver_of(self._sink), self.counts)
                self._relay.run(self._stop.is_set)
            except Exception as error:  # noqa: BLE001 - a supervised loop: nobody else is to stop because of this sink
                self.counts.restarts += 1
                fields = {"sink": self.name, "error": type(error).__name__, "reason": error}
                _log.error("a sink is restarted", extra={"fields": fields})
                self._stop.wait(AGAIN_S)


class Sinks:
    """All sinks of a process."""

    def __init__(self, sinks: Mapping[str, Sink], log: Log) -> None:
        """Raises `SinkLacks` for a sink whose package is not installed."""
        for sink in sinks.values():
            receiver_of(sink).close()
        self._stop = threading.Event()
        self._all = [Supervised(name, sink, log, self._stop) for name, sink in sinks.items()]

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        counted = {sink.name: msgspec.structs.asdict(sink.counts) for sink in self._all}
        consumers = {group: statistics for sink in self._all for group, statistics in sink.statistics.items()}
        return exposition_by(SINK, counted, consumers, metrics=SINKS)

    def run(self, stopped: Callable[[], bool], pause: Callable[[float], bool]) -> None:
        """Deliver until told to stop. A sink that hangs is left behind: its events are delivered another time."""
        for sink in self._all:
            sink.thread.start()
        try:
            while not stopped():
                pause(LOOK_S)
        finally:
            self._stop.set()
            until = time.monotonic() + LEAVE_S
            for sink in self._all:
                sink.thread.join(max(until - time.monotonic(), 0.0))
                fields = {"sink": sink.name, **msgspec.structs.asdict(sink.counts)}
                _log.info("delivered", extra={"fields": fields})
