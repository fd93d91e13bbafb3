"""History and changelogs on Kafka: read as they are committed, one partition at a time, outside any group."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kapelle.broker import is_end, is_final, is_missing
from kapelle.schemas import Framing
from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.topology.build import Topology
from kapelle.topology.collector import at_rest
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.errors import BrokerRefused, CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.offsets import Offsets, asked_until
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place
from kapelle.topology.replay.errors import HistoryIncomplete
from kapelle.topology.replay.history import Records

BATCH: Final = 5_000
SLICE_S: Final = 0.2
STUCK_S: Final = 30.0  # longer than a dead member's transaction stands in the way
PREFETCH_KB: Final = 64 * 1024
END_WAIT_MS: Final = 10  # the broker tells of an end only after so long without records; the default is half a second


class CommittedReader:
    """One consumer, assigned one partition after the other."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        self._consumer = made(
            Consumer,
            settings.reader(group)
            | {
                "queued.max.messages.kbytes": PREFETCH_KB,
                "statistics.interval.ms": 0,
                "fetch.wait.max.ms": END_WAIT_MS,
            },
        )
        self._timeout_s = settings.request_timeout_s
        self._place: Place | None = None
        self.position = 0

    def open(self, place: Place, offset: int) -> None:
        """Read this partition from here on."""
        with translated(f"read {place}"):
            if self._place is None:
                # A topic that the client has not heard of is looked for first, for half a second or more: hear of all.
                self._consumer.list_topics(timeout=self._timeout_s)
            self._consumer.assign([TopicPartition(place.topic, place.partition, offset)])
        self._place, self.position = place, offset

    def read(self, end: int) -> Iterator[Records]:
        """The committed records from the position to this offset, waiting for transactions that are open before it."""
        until = time.monotonic() + STUCK_S
        while self.position < end:
            before = self.position
            with at_rest():
                records = self._records(end)
            if self.position > before:
                until = time.monotonic() + STUCK_S
            elif time.monotonic() > until:
                raise CycleAborted(
                    f"{self._place} could not be read from offset {before} to {end} within {STUCK_S:g} s"
                )
            if records:
                yield records
        if self._place is not None and self.position > end:
            self.open(self._place, end)  # what came with the last records is read again when it is asked for

    def close(self) -> None:
        self._consumer.close()

    def _records(self, end: int) -> list[LogRecord]:
        """What is there now of the records before this offset. What came with them moves the position all the same."""
        records: list[LogRecord] = []
        for message in self._consumed():
            error = message.error()
            if error is not None:
                self._event(message, error)
                continue
            offset = message.offset() or 0
            self.position = offset + 1
            if offset < end:
                headers: Any = message.headers()
                records.append(LogRecord(offset, message.timestamp()[1], message.key(), message.value(), headers))
        return records

    def _consumed(self) -> list[Message]:
        try:
            # One record is waited for; what came with it is taken along without a wait.
            first = self._consumer.consume(1, SLICE_S)
            return first + self._consumer.consume(BATCH, 0) if first else first
        except KafkaException as error:
            raise CycleAborted(f"read {self._place}: {error}") from error

    def _event(self, message: Message, error: KafkaError) -> None:
        """An end tells how far the markers of transactions reach. What is left librdkafka mends by itself."""
        if is_end(error):
            self.position = max(self.position, message.offset() or 0)
        elif is_final(error):
            raise BrokerRefused(f"The broker refused to read {self._place}: {error.str()}")
        elif is_missing(error):
            raise CycleAborted(f"{self._place} does not exist: {error.str()}")


class PatientOffsets:
    """Asks for offsets until there is an answer."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._offsets = Offsets(settings)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of the places, open transactions included."""
        return self._asked(lambda: self._offsets.ends(places))

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._asked(lambda: self._offsets.beginnings(places))

    def stable_ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of what is committed."""
        return self._asked(lambda: self._offsets.stable_ends(places))

    def _asked(self, ask: Callable[[], dict[Place, int]]) -> dict[Place, int]:
        return asked_until(self._settings.request_timeout_s, ask)


class PartitionTape:
    """A partition that is read on and on, for `Verifying`."""

    def __init__(self, reader: CommittedReader, offsets: PatientOffsets, place: Place, *, start: int = 0) -> None:
        self._reader = reader
        self._offsets = offsets
        self._place = place
        reader.open(place, start)

    def end(self) -> int:
        return self._offsets.ends([self._place])[self._place]

    def read(self, end: int) -> Iterator[Records]:
        return self._reader.read(end)


class KafkaHistory:
    """The histories of a topology on Kafka."""

    def __init__(self, topology: Topology, settings: KafkaSettings, *, framing: Framing | None = None) -> None:
        self.topology = topology
        self.framing = framing
        self.offsets = PatientOffsets(settings)
        self._settings = settings
        self._reader = CommittedReader(settings, f"{topology.prefix}.replay")
        self._changelogs = CommittedReader(settings, f"{topology.prefix}.replay")

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """The last stable offsets: what is behind them is not committed."""
        return self.offsets.stable_ends(places)

    def read(self, place: Place, start: int, end: int) -> Iterator[Records]:
        if start == 0:
            self.refuse_incomplete(place)
        self._reader.open(place, start)
        yield from self._reader.read(end)

    def refuse_incomplete(self, place: Place) -> None:
        """Refuse a history whose first events are gone."""
        begins = self.offsets.beginnings([place])[place]
        if begins > 0:
            raise HistoryIncomplete(place, begins)

    def tapes(self, history: Place, changelog: Place, *, start: int = 0) -> tuple[PartitionTape, PartitionTape]:
        """Both logs of a shard; the changelog from an offset on."""
        self.refuse_incomplete(history)
        return (
            PartitionTape(self._reader, self.offsets, history),
            PartitionTape(self._changelogs, self.offsets, changelog, start=start),
        )

    def changelog_id(self, topic: str) -> str:
        """What tells this changelog from another of the same name."""
        return Topics(self.topology, self._settings).identities([topic])[topic]

    def schemas(self) -> list[SchemaRecord]:
        return SchemaTopic(self.topology.schemas, self._settings).read()

    def close(self) -> None:
        self._reader.close()
        self._changelogs.close()
