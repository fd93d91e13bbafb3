"""Kafka as the member's log: one transactional producer, one consumer for each processor, one for changelogs."""

import json
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import TopicPartition

from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.topology.build import Topology
from kapelle.topology.errors import ChangelogReplaced, CycleAborted, OffsetsLost, ProducerLost
from kapelle.topology.exposition import Statistics
from kapelle.topology.kafka import fencing
from kapelle.topology.kafka.answers import is_committed
from kapelle.topology.kafka.changelogs import ChangelogReader
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.inputs import InputWatch, forgotten, losses_of
from kapelle.topology.kafka.notes import Note, refuse_another
from kapelle.topology.kafka.offsets import Offsets
from kapelle.topology.kafka.reader import ProcessorReader
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.kafka.transactions import Transactor
from kapelle.topology.log import Cause, Listener, Loss, Place, Row, Taken

# How long each look at offsets may take, while live partitions wait; after the last, the transaction that holds them is
# ended. It is long enough for a broker that is merely slow.
LOOKS_S = (0.1, 0.3, 1.0)
SLICE_S = 0.001  # how long to wait for one of several consumers
SLICE_IDLE_S = 0.004  # the same, when nothing has come for a while
IDLE_AFTER_S = 1.0
ABORT_S = 1.0  # how long to try to abort before leaving: whoever comes next ends what we leave open
LEAVE_S = 3.0  # how long leaving the groups may take; who has not left by then is thrown out when its session ends


class KafkaLog:
    """The `Log` of a topology on Kafka."""

    def __init__(self, topology: Topology, settings: KafkaSettings, *, instance: str, hosted: Sequence[str]) -> None:
        self.statistics_text = ""
        self._topology = topology
        self._settings = settings
        self._hosted = tuple(hosted)
        self._readers: dict[str, ProcessorReader] = {}
        self._changelogs = ChangelogReader(settings, f"{topology.prefix}.restore")
        name = f"{topology.prefix}.{instance}"
        self._transactor = Transactor(settings, name, on_statistics=self._on_statistics)
        self._offsets = Offsets(settings)
        self._schemas = SchemaTopic(topology.schemas, settings)
        self._topics = Topics(topology, settings)
        self._identities = self._topics.identities([topology.changelog(p) for p in hosted])
        self._last_record_s = 0.0
        self._losses: dict[str, list[Loss]] = {}  # of inputs, when their offsets were last asked for, by processor
        self._uncommitted: dict[str, list[Place]] = {}
        self._starting: dict[tuple[str, Place], str] = {}  # the ids of their topics then
        self._watch = InputWatch(settings)
        self._looks = Counter[str]()  # at offsets that were not final, by processor
        # The hot ones are bound straight to their parts.
        self.send = self._transactor.send
        self.send_rows = self._transactor.send_rows
        self.begin = self._transactor.begin
        self.commit = self._transactor.commit
        self.row_end = self._transactor.row_end
        self.abort = self._transactor.abort
        self.renew = self._transactor.renew
        self.watch = self._changelogs.watch

    def join(self, listener: Listener) -> None:
        self._schemas.publish(self._topology.catalog())
        self._transactor.renew()
        for name in self._hosted:
            topics = [self._topology.topic(s) for s in self._topology.processors[name].inputs]
            reader = ProcessorReader(
                name, topics, group=self._topology.group(name), settings=self._settings, listener=listener
            )
            self._readers[name] = reader
            reader.subscribe()

    def take(self, records_max: int, wait_s: float) -> Taken:
        taken = Taken([], [])
        readers = list(self._readers.values())
        until = time.monotonic() + wait_s
        while True:
            room = records_max
            for number, reader in enumerate(readers):
                # Shared out evenly, or one processor's backlog would keep the others waiting. One at least: also a
                # full member must hear of partitions coming and going.
                room -= reader.drain(taken, max(-(-room // (len(readers) - number)), 1))
            if taken.runs or taken.ends or time.monotonic() >= until:
                break
            self._wait(readers, taken, until)
        self._watch.look()
        if taken.runs:
            self._last_record_s = time.monotonic()
        else:
            self._transactor.serve()
        return taken

    def _wait(self, readers: list[ProcessorReader], taken: Taken, until: float) -> None:
        """Wait until one of the consumers has something. One can be waited for; several are asked in turn."""
        left = until - time.monotonic()
        if len(readers) == 1:
            readers[0].wait(taken, max(left, 0))
            return
        idle = time.monotonic() - self._last_record_s > IDLE_AFTER_S
        for reader in readers:
            if reader.wait(taken, min(SLICE_IDLE_S if idle else SLICE_S, max(until - time.monotonic(), 0))):
                return

    def start(self, processor: str, offsets: Mapping[Place, int]) -> None:
        self._watch.begin({(processor, place): self._starting[processor, place] for place in offsets})
        self._readers[processor].start(offsets)

    def committed(self, processor: str, places: Sequence[Place]) -> dict[Place, int]:
        """Final offsets. If an open transaction holds them for a while, it is ended, and the caller asks again."""
        look = self._looks.pop(processor, 0)
        try:
            positions = self._readers[processor].committed(places, LOOKS_S[look])
        except CycleAborted:
            if look + 1 < len(LOOKS_S):
                self._looks[processor] = look + 1
            else:
                self.free(processor, places)
            raise
        changelog, topics = self._topology.changelog(processor), sorted({place.topic for place in places})
        ids = self._topics.identities([changelog, *topics])
        self._check_changelog(changelog, ids[changelog], positions)
        losses = losses_of(positions, ids, self._offsets, self._watch.read_by(processor))
        self._losses[processor] = losses
        self._uncommitted[processor] = [Place(tp.topic, tp.partition) for tp in positions if not is_committed(tp)]
        self._starting |= {(processor, place): ids[place.topic] for place in places}
        offsets = {Place(tp.topic, tp.partition): tp.offset for tp in positions}
        replaced = {loss.place for loss in losses if loss.cause is Cause.REPLACED}
        self._check_offsets(processor, {p: at for p, at in offsets.items() if p not in replaced}, positions)
        return offsets | self._offsets.beginnings([p for p, offset in offsets.items() if offset < 0])

    def uncommitted(self, processor: str, places: Sequence[Place]) -> Collection[Place]:  # noqa: ARG002 - as below
        return self._uncommitted.pop(processor, [])

    def losses(self, processor: str, places: Sequence[Place]) -> Sequence[Loss]:  # noqa: ARG002 - asked for already
        return self._losses.pop(processor, [])

    def _check_changelog(self, name: str, current: str, positions: Sequence[TopicPartition]) -> None:
        """The changelog must be the one that the offsets were committed with, and the one that we have written to."""
        if current != self._identities[name]:
            raise ChangelogReplaced(name, expected=self._identities[name], found=current)
        refuse_another(name, current, positions)

    def _check_offsets(self, processor: str, offsets: Mapping[Place, int], positions: Sequence[TopicPartition]) -> None:
        """Rows are committed together with offsets: where there are rows and no offsets, the offsets were lost.

        A shard has lost its offsets when none of its inputs has one, or when the others have noted one that is gone; an
        input alone without one is new.
        """
        inputs = [self._topology.topic(s) for s in self._topology.processors[processor].inputs]
        group = self._topology.group(processor)
        if gone := [place for place in forgotten(positions) if place in offsets]:
            raise OffsetsLost(group, changelog=self._topology.changelog(processor), inputs=[gone[0].topic])
        known = {place.partition for place, offset in offsets.items() if offset >= 0}
        changelog = self._topology.changelog(processor)
        fresh = [Place(changelog, n) for n in sorted({place.partition for place in offsets} - known)]
        written = [place for place, end in self._offsets.ends(fresh).items() if end > 0]
        if not written:
            return
        reader = ChangelogReader(self._settings, f"{self._topology.prefix}.restore")
        held = reader.any_of(written, self._settings.call_timeout_s)
        if held is not None:
            raise OffsetsLost(group, changelog=str(held), inputs=inputs)

    def free(self, processor: str, places: Sequence[Place]) -> None:
        owners = fencing.last_owners(self._settings, self._topology.group(processor), places)
        for owner in owners - {self._transactor.transactional_id}:
            fencing.fence(self._settings, owner)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._offsets.ends(places)

    def identity(self, topic: str) -> str:
        return self._identities[topic]

    def schemas(self) -> list[SchemaRecord]:
        return self._schemas.read()

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:
        return self._changelogs.rows(rows_max, wait_s)

    def send_offsets(self, processor: str, offsets: Mapping[Place, int]) -> None:
        reader = self._readers[processor]
        note = Note(self._transactor.transactional_id, self._identities[self._topology.changelog(processor)])
        ids: dict[int, dict[str, str]] = {}  # by partition: shards may have begun before and after a topic was replaced
        for place in offsets:
            ids.setdefault(place.partition, {})[place.topic] = self._watch.ids.get((processor, place), "")
        notes = {partition: note.with_inputs(of_shard) for partition, of_shard in ids.items()}
        self._transactor.send_offsets(reader.consumer, reader.member, offsets=offsets, notes=notes)

    def leave(self) -> None:
        try:
            with suppress(ProducerLost):  # what is open then ends with our next start, or by its time-out
                self._transactor.abort(ABORT_S)
        finally:
            until = time.monotonic() + LEAVE_S
            for leaving in [reader.close() for reader in self._readers.values()]:
                leaving.join(max(until - time.monotonic(), 0))
            self._readers.clear()
            for client in (self._changelogs, self._transactor, self._offsets, self._topics, self._watch):
                client.close()

    @property
    def consumer_statistics(self) -> dict[str, Statistics]:
        """librdkafka's own statistics of each processor's consumer, its lag among them."""
        return {name: json.loads(r.statistics_text) for name, r in list(self._readers.items()) if r.statistics_text}

    @property
    def statistics(self) -> Statistics:
        """librdkafka's own statistics of the producer, as it last told them."""
        statistics: Statistics = json.loads(self.statistics_text) if self.statistics_text else {}
        return statistics

    def _on_statistics(self, text: str) -> None:
        self.statistics_text = text
