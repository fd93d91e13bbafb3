"""Tells our history as spans, at least once: offsets are committed after the collector has taken them.

    1. take     records of the history
    2. fold     each into the memory of its partition; spans are what has ended
    3. export   the spans, until the collector has taken them
    4. commit   how far we are and, as a note beside it, the oldest record that the memory came from

Whoever gets a partition reads from that record on, and tells nothing until it is where the one before it had been. So
any number may run in one group, be killed, and be started again: the same spans with the same ids are told, some of
them twice, and none is lost.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from kapelle.relay.history import HistoryReader, Recorded
from kapelle.relay.metrics import TRACES, Tally, Waits
from kapelle.relay.patience import Patience
from kapelle.relay.unusable import told
from kapelle.topology.build import Topology
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.log import Place
from kapelle.tracing.errors import NotExported
from kapelle.tracing.fold import FOLDINGS, FOLLOWED, Folding
from kapelle.tracing.ids import Ids
from kapelle.tracing.spans import Past, Span

NAME: Final = "traces"
AGAIN_S: Final = 0.5

_log = logging.getLogger(f"kapelle.{NAME}")


class Exporting(Protocol):
    """Where spans go."""

    def export(self, spans: Sequence[Span]) -> None:
        """Send spans, and wait until all are taken. Raises `NotExported`."""
        ...


class Counts(Waits):
    """What became of records."""

    read: int = 0
    remembered: int = 0
    exported: int = 0
    unreadable: int = 0


class Partition(msgspec.Struct):
    """What is known of a partition that is ours."""

    folding: Folding
    told_to: int  # what stands before this was told by whoever had the partition before
    end: int


class TraceRelay:
    """One member of the group that tells the history of a deployment."""

    def __init__(
        self, topology: Topology, settings: KafkaSettings, exporter: Exporting, ids: Ids, *, is_from_end: bool = False
    ) -> None:
        """A group that is new begins at the beginning of the history, or at its end."""
        self.counts = Counts()
        self._exporter = exporter
        self._ids = ids
        self._partitions: dict[Place, Partition] = {}
        self._early: list[Recorded] = []  # what came while the collector was waited for, of partitions that are new
        self._touched: set[Place] = set()
        self._history = HistoryReader(topology, settings, NAME, streams=FOLLOWED, is_from_end=is_from_end)
        self._group = self._history.group
        self._group.use(self._history.topics, self._lost)
        self._tally = Tally(self.counts, TRACES, _log, "exported")

    def metrics(self) -> str:
        """All that is counted, as Prometheus reads it."""
        return self._tally.exposition(self._group.statistics)

    def run(self, stopped: Callable[[], bool]) -> None:
        """Tell until told to stop; then leave the group."""
        self._history.run(stopped, self._tally, self._relayed)

    def _relayed(self, patience: Patience) -> bool:
        spans = [span for record in self._taken() for span in self._folded(record)]
        if not self._exported(spans, patience):
            return False
        self._commit()
        return True

    def _taken(self) -> Iterable[Recorded]:
        """Records of partitions whose memory is complete. Those that are new to us are read from further back first."""
        records, self._early = self._early or self._history.take(), []
        self._touched = {record.place for record in records}
        new: dict[Place, int] = {}
        for record in records:
            if record.place not in self._partitions:
                new.setdefault(record.place, record.entry.offset)
        back = {place for place, offset in new.items() if self._began(place, offset)}
        return [record for record in records if record.place not in back]

    def _began(self, place: Place, offset: int) -> bool:
        """Begin with a partition at the record that was read first. Whether to read it from further back."""
        note = self._group.note(place)
        since = min(int(note), offset) if note.isdecimal() else offset
        stream = self._history.stream(place.topic)
        self._partitions[place] = Partition(FOLDINGS[stream](self._ids), offset, since)
        if since < offset:
            self._group.seek(place, since)
        return since < offset

    def _folded(self, record: Recorded) -> list[Span]:
        entry, partition = record.entry, self._partitions[record.place]
        partition.end = entry.offset + 1
        if entry.value is None:
            self.counts.unreadable += 1
            return []
        past = Past(entry, record.place.topic, record.trace)
        spans = told(entry, lambda: partition.folding.of(past), _log)
        if spans is None:
            self.counts.unreadable += 1
            return []
        if entry.offset < partition.told_to:
            self.counts.remembered += 1
            return []
        self.counts.read += 1
        return spans

    def _exported(self, spans: Sequence[Span], patience: Patience) -> bool:
        """Send until all is taken. False: we are told to stop, and it is not."""
        if spans and not patience.delivered(lambda: self._exporter.export(spans), NotExported, self._wait):
            return False
        self.counts.exported += len(spans)
        return True

    def _wait(self, error: Exception) -> None:
        """Give the collector time, and the group a sign of life."""
        self._tally.waits_for(error)
        self._group.hold()
        self._early += self._history.take(AGAIN_S)
        self._group.go_on()

    def _commit(self) -> None:
        """How far we are with each partition that had records, unless it went to somebody else meanwhile."""
        ends, notes = dict[Place, int](), dict[Place, str]()
        for place in self._touched & self._partitions.keys():
            partition = self._partitions[place]
            if partition.end > partition.told_to:
                since = partition.folding.since
                ends[place] = partition.end
                notes[place] = str(partition.end if since is None else since)
        self._group.commit_ends(ends, notes)

    def _lost(self, places: Sequence[Place]) -> None:
        for place in places:
            self._partitions.pop(place, None)
        self._early = [record for record in self._early if record.place not in places]
