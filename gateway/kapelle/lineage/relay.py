"""Tells our history as events of OpenLineage, at least once: offsets are committed after Kafka has acknowledged them.

Nothing is remembered between records, so any number may run in one group, be killed, and be started again. What is told
twice is the same event, for the same run.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from openlineage.client.event_v2 import RunEvent

from kapelle.lineage.emitting import Emitter
from kapelle.lineage.errors import NotEmitted
from kapelle.lineage.events import Telling
from kapelle.processors.routes import RUN_EVENTS, SIGNAL_EVENTS, WORKFLOW_EVENTS
from kapelle.sources.history import HistoryReader
from kapelle.sources.metrics import OPENLINEAGE
from kapelle.sources.passing import told
from kapelle.sources.patience import Patience, Unanswered, apart
from kapelle.topology.build import Topology
from kapelle.topology.exposition import exposition
from kapelle.topology.journal import Entry
from kapelle.topology.kafka.config import KafkaSettings

NAME: Final = "openlineage"
FOLLOWED: Final = (WORKFLOW_EVENTS, RUN_EVENTS, SIGNAL_EVENTS)
AGAIN_S: Final = 0.5
TELL_S: Final = 30.0

_log = logging.getLogger("kapelle.openlineage")


class Counts(msgspec.Struct):
    """What became of records."""

    read: int = 0
    emitted: int = 0
    unreadable: int = 0
    waits: int = 0


class LineageRelay:
    """One member of the group that tells the history of a deployment."""

    def __init__(
        self,
        topology: Topology,
        settings: KafkaSettings,
        emitter: Emitter,
        telling: Telling,
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
        self._told_s = time.monotonic()

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        return exposition(msgspec.structs.asdict(self.counts), consumers=self._group.statistics, metrics=OPENLINEAGE)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Tell until told to stop; then leave the group."""
        patience = Patience(stopped)
        try:
            while not stopped():
                records = self._history.take()
                events = [event for one in records for event in self._events(one.entry)]
                if not self._emitted(events, stopped, patience):
                    break  # the batch is left to be read again
                self._group.commit([one.message for one in records])
                self._tell_now_and_then()
        finally:
            self._group.close()
            self._tell()

    def _events(self, entry: Entry) -> list[RunEvent]:
        self.counts.read += 1
        events = None if entry.value is None else told(entry, lambda: self._telling.of(entry), _log)
        if events is None:
            self.counts.unreadable += 1
        return events or []

    def _emitted(self, events: Sequence[RunEvent], stopped: Callable[[], bool], patience: Patience) -> bool:
        """Write until all is acknowledged. False: we are told to stop, and it is not."""
        while events:
            try:
                patience.wait(apart(lambda: self._emitter.emit_all(events)))
            except Unanswered:
                return False
            except NotEmitted as error:
                if stopped():
                    return False
                self.counts.waits += 1
                _log.warning("waiting", extra={"fields": {"reason": error}})
                time.sleep(AGAIN_S)
            else:
                self.counts.emitted += len(events)
                break
        return True

    def _tell_now_and_then(self) -> None:
        if time.monotonic() - self._told_s >= TELL_S:
            self._tell()

    def _tell(self) -> None:
        self._told_s = time.monotonic()
        _log.info("emitted", extra={"fields": msgspec.structs.asdict(self.counts)})
