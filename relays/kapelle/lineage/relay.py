"""Tells our history as events of OpenLineage, at least once: offsets are committed after Kafka has acknowledged them.

Nothing is remembered between records, so any number may run in one group, be killed, and be started again. What is told
twice is the same event, for the same run.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from openlineage.client.event_v2 import RunEvent

from kapelle.lineage.emitter import Emitter
from kapelle.lineage.errors import NotEmitted
from kapelle.lineage.events import LineageEvents
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, WORKFLOW_EVENTS
from kapelle.relay.history import HistoryReader
from kapelle.relay.metrics import OPENLINEAGE, Tally, Waits
from kapelle.relay.patience import Patience
from kapelle.relay.unusable import told
from kapelle.topology.build import Topology
from kapelle.topology.journal import Entry
from kapelle.topology.kafka.config import KafkaSettings

NAME: Final = "openlineage"
FOLLOWED: Final = (WORKFLOW_EVENTS, RUN_EVENTS, SIGNAL_EVENTS)
AGAIN_S: Final = 0.5

_log = logging.getLogger("kapelle.openlineage")


class Counts(Waits):
    """What became of records."""

    read: int = 0
    emitted: int = 0
    unreadable: int = 0


class LineageRelay:
    """One member of the group that tells the history of a deployment."""

    def __init__(
        self,
        topology: Topology,
        settings: KafkaSettings,
        emitter: Emitter,
        telling: LineageEvents,
        *,
        is_from_end: bool = False,
    ) -> None:
        """A group that is new begins at the beginning of the history, or at its end."""
        self.counts = Counts()
        self._emitter = emitter
        self._telling = telling
        self._history = HistoryReader(topology, settings, NAME, streams=FOLLOWED, is_from_end=is_from_end)
        self._group = self._history.group
        self._group.use(self._history.topics)
        self._tally = Tally(self.counts, OPENLINEAGE, _log, "emitted")

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        return self._tally.exposition(self._group.statistics)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Tell until told to stop; then leave the group."""
        self._history.run(stopped, self._tally, self._relayed)

    def _relayed(self, patience: Patience) -> bool:
        records = self._history.take()
        events = [event for record in records for event in self._events(record.entry)]
        if not self._emitted(events, patience):
            return False
        self._group.commit([record.message for record in records])
        return True

    def _events(self, entry: Entry) -> list[RunEvent]:
        self.counts.read += 1
        events = None if entry.value is None else told(entry, lambda: self._telling.of(entry), _log)
        if events is None:
            self.counts.unreadable += 1
        return events or []

    def _emitted(self, events: Sequence[RunEvent], patience: Patience) -> bool:
        """Write until all is acknowledged. False: we are told to stop, and it is not."""
        if events and not patience.delivered(lambda: self._emitter.emit_all(events), NotEmitted, self._wait):
            return False
        self.counts.emitted += len(events)
        return True

    def _wait(self, error: Exception) -> None:
        self._tally.waits_for(error)
        time.sleep(AGAIN_S)
