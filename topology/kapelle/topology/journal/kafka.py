"""The journal of Kafka: an idempotent producer, and consumers outside any group that read what is committed.

A record that the broker did not acknowledge in time may stand in the log all the same. Whoever publishes commands gives
them ids for that: the same one again changes nothing.
"""

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from hashlib import sha256
from typing import Final, overload

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kapelle.broker import is_end, is_final, is_out_of_range, is_refused
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.schemas.contract import Contract
from kapelle.schemas.headers import HeaderForm, rfc3339
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.errors import BrokerRefused, CycleAborted, Unanswered
from kapelle.topology.journal.entries import Decoder, Raw
from kapelle.topology.journal.errors import JournalUnavailable
from kapelle.topology.journal.journal import Entry, Mode, Point, Position, pending
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.answers import COMMITTED, LATEST, list_offsets, real_offset
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.offsets import Offsets
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.kafka.translate import made
from kapelle.topology.log import Place

_log = logging.getLogger("kapelle.journal")

POLL_S: Final = 0.1
RETRY_S: Final = 0.05
ASK_S: Final = 2.0  # an answer takes milliseconds: a client that has none by then asks anew
FLUSH_S: Final = 5.0
DELIVERY_MS: Final = 10_000  # then whoever published is told that the log cannot be reached
END_WAIT_MS: Final = 100  # how soon the broker tells of an end: it is asked this often while nothing happens
WAIT_S_MAX: Final = 0.25  # a follower that is closed while it waits is heard within this
# A follower that is far behind reads many partitions: in small pieces, so that they come on together, and what belongs
# together is read at about the same time.
FETCH_BYTES: Final = 128 * 1024


class KafkaJournal:
    """Publishes to and follows the topics of a topology, which must be there."""

    mode: Final = Mode.KAFKA

    def __init__(self, topology: Topology, settings: KafkaSettings) -> None:
        self._topology = topology
        self._settings = settings
        topics = Topics(topology, settings)
        topics.verify()
        # At a start there is time: a topic that has just been made may take seconds to have a leader.
        patient = max(settings.call_timeout_s, settings.request_timeout_s)
        self._schemas = SchemaTopic(topology.schemas, msgspec.structs.replace(settings, call_timeout_s=patient))
        self._schemas.publish(topology.catalog())
        self._codec = Codec(topology.catalog(), record_bytes_max=settings.record_bytes_max)
        self._forms: dict[type[Contract], HeaderForm] = {}
        self._topics = topics
        self._admin = Admin(settings)
        self._producer = made(Producer, self._config())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kapelle-journal", daemon=True)
        self._thread.start()

    def _config(self) -> dict[str, object]:
        ours = {
            "message.max.bytes": self._settings.wire_bytes_max,
            "linger.ms": 0,
            "compression.type": "lz4",
            "delivery.timeout.ms": DELIVERY_MS,
        }
        return {**ours, **self._settings.plain_producer()}

    @cached_property
    def identity(self) -> str:
        names = [self._topology.topic(p.events) for p in self._topology.processors.values()]
        identities = self._topics.identities(names)
        return sha256("/".join(identities[name] for name in sorted(identities)).encode()).hexdigest()[:32]

    @property
    def failure(self) -> BaseException | None:
        """None: librdkafka reconnects by itself, and a producer without transactions is not fenced."""
        return None

    def publish(self, stream: Stream, key: str, value: Contract, trace: str | None = None) -> "Future[Position]":
        answer = pending()
        data = self._codec.encode(value)
        topic = self._topology.topic(stream)
        partition = partition_of(key, self._topology.partitions(stream))

        def delivered(error: KafkaError | None, message: Message) -> None:
            place = Place(topic, partition)
            if error is not None:
                answer.set_exception(JournalUnavailable("keep a record", error.str()))
                return
            try:
                answer.set_result(Position(place, real_offset(place, message.offset(), "where it keeps a record")))
            except Unanswered as unknown:
                answer.set_exception(JournalUnavailable("tell where it keeps a record", unknown))

        try:
            self._producer.produce(
                topic, data, key.encode(), partition, on_delivery=delivered, headers=self._headers(value, trace)
            )
        except (BufferError, KafkaException, RuntimeError) as error:  # the last of them if it is closed
            raise JournalUnavailable("take a record", error) from error
        return answer

    def follow(self, streams: Sequence[Stream], starts: Mapping[Point, int]) -> "KafkaFollower":
        return KafkaFollower(self._topology, self._settings, streams, starts)

    def ends(self, stream: Stream) -> dict[int, int]:
        until = time.monotonic() + self._settings.call_timeout_s
        while True:
            try:
                return self._asked_ends(stream)
            except (KafkaException, Unanswered) as error:
                # A partition without a leader has one in a moment; what takes longer is no longer a moment.
                is_final = isinstance(error, KafkaException) and is_refused(error.args[0])
                if is_final or time.monotonic() > until:
                    raise JournalUnavailable(f"tell where {stream.name} ends", error) from error
            time.sleep(RETRY_S)
            # After an election a client may go on asking by the leader's old epoch: a new one does not.
            self._admin.close()

    def _asked_ends(self, stream: Stream) -> dict[int, int]:
        topic, count = self._topology.topic(stream), self._topology.partitions(stream)
        timeout_s = min(ASK_S, self._settings.call_timeout_s)
        places = [Place(topic, number) for number in range(count)]
        ends = list_offsets(self._admin.client, places, LATEST, isolation=COMMITTED, timeout_s=timeout_s)
        return {place.partition: end for place, end in ends.items()}

    def close(self, wait_s: float = FLUSH_S) -> None:
        """Wait a little for what is on its way, then let go of it. Who has waited for all answers need not wait."""
        self._producer.flush(wait_s)
        self._stop.set()
        self._thread.join(FLUSH_S)
        self._producer.purge()
        for client in (self._producer, self._admin, self._topics):
            client.close()

    def _headers(self, value: Contract, trace: str | None) -> list[tuple[str, str | bytes | None]]:
        kind = type(value)
        form = self._forms.get(kind)
        if form is None:
            form = self._forms[kind] = HeaderForm(f"/{self._topology.prefix}/journal", kind.FULL_NAME)
        return [*form.make(uuid.uuid4().hex, rfc3339(time.time_ns() // 1_000_000), trace)]

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(POLL_S)


class KafkaFollower:
    """A consumer that was assigned every partition of some streams."""

    def __init__(
        self, topology: Topology, settings: KafkaSettings, streams: Sequence[Stream], starts: Mapping[Point, int]
    ) -> None:
        schemas = SchemaTopic(topology.schemas, settings)
        self._closed = threading.Event()
        self._busy = threading.Lock()
        self._decoder = Decoder(Codec(topology.catalog(), record_bytes_max=settings.wire_bytes_max), schemas.read)
        self._streams = {topology.topic(stream): stream for stream in streams}
        # By topic, for each partition the offset that comes next.
        self._next = {
            topology.topic(stream): [starts.get((stream.name, n), 0) for n in range(topology.partitions(stream))]
            for stream in streams
        }
        # A position that is not there must be told, not corrected: see `_lost`.
        ours = {"fetch.wait.max.ms": END_WAIT_MS, "fetch.message.max.bytes": FETCH_BYTES, "auto.offset.reset": "error"}
        config = settings.reader(f"{topology.prefix}.journal") | ours
        self._settings = settings
        self._consumer = made(Consumer, config)
        self._assign()

    def _assign(self) -> None:
        self._consumer.assign(
            [TopicPartition(topic, n, offset) for topic, all_ in self._next.items() for n, offset in enumerate(all_)]
        )

    @property
    def positions(self) -> Mapping[Point, int]:
        return {
            (self._streams[topic].name, number): offset
            for topic, offsets in self._next.items()
            for number, offset in enumerate(offsets)
        }

    def take(self, records_max: int, wait_s: float) -> Sequence[Entry]:
        with self._busy:
            if self._closed.is_set():
                return []
            until = time.monotonic() + min(wait_s, WAIT_S_MAX)
            while True:
                records = self._records(self._consumed(records_max, max(until - time.monotonic(), 0)))
                if records:
                    return Taken(records, self._streams, self._decoder)
                if time.monotonic() >= until or self._closed.is_set():
                    return []

    def close(self) -> None:
        self._closed.set()
        with self._busy:
            self._consumer.close()

    def _consumed(self, records_max: int, wait_s: float) -> list[Message]:
        """One record is waited for; what came with it is taken along without a wait."""
        try:
            first = self._consumer.consume(1, wait_s)
            return first + (self._consumer.consume(records_max - 1, 0) if first and records_max > 1 else [])
        except KafkaException as error:
            raise JournalUnavailable("be read", error) from error

    def _records(self, messages: Sequence[Message]) -> list[Message]:
        """The messages that are records. All of them move the positions."""
        records: list[Message] = []
        following = self._next
        for message in messages:
            error = message.error()
            if error is None:
                following[message.topic() or ""][message.partition() or 0] = (message.offset() or 0) + 1
                records.append(message)
            else:
                self._event(message, error)
        return records

    def _event(self, message: Message, error: KafkaError) -> None:
        """An end tells how far the markers of transactions reach. What is left librdkafka mends by itself."""
        if is_end(error):
            offsets, partition = self._next[message.topic() or ""], message.partition() or 0
            offsets[partition] = max(message.offset() or 0, offsets[partition])
        elif is_out_of_range(error):
            self._lost(Place(message.topic() or "", message.partition() or 0))
        elif is_final(error):
            raise BrokerRefused(f"The broker refused to read {message.topic()}: {error.str()}")

    def _lost(self, place: Place) -> None:
        """The next record to read is not there. Continue at the first record that is, and report what was lost."""
        offsets = Offsets(self._settings)
        try:
            first, next_offset = offsets.beginnings([place])[place], self._next[place.topic][place.partition]
        except BrokerRefused as error:
            raise JournalUnavailable(f"tell where {place} begins", error) from error
        except CycleAborted as error:
            # Unanswered is not lost. librdkafka reports a position once: after `assign` it reports this one again.
            _log.warning("cannot get the first offset of %s, retrying: %s", place, error)
            self._assign()
            return
        finally:
            offsets.close()
        if next_offset > first:
            _log.error("%s ends before the next offset %d; reading continues from %d", place, next_offset, first)
        elif next_offset > 0:  # a new reader has not lost what was deleted before
            count = first - next_offset
            _log.error(
                "%s: up to %d records were deleted before they were read, from offset %d", place, count, next_offset
            )
        self._next[place.topic][place.partition] = first
        self._assign()


class Taken(Sequence[Entry]):
    """Records that were taken. Each is decoded when it is looked at: thousands of values at once would take longer."""

    def __init__(self, records: Sequence[Message], streams: Mapping[str, Stream], decoder: Decoder) -> None:
        self._records = records
        self._streams = streams
        self._decoder = decoder

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, at: int) -> Entry: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...

    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(at, slice):
            return Taken(self._records[at], self._streams, self._decoder)
        return next(iter(Taken([self._records[at]], self._streams, self._decoder)))

    def __iter__(self) -> Iterator[Entry]:
        streams, entry_of = self._streams, self._decoder.entry
        for message in self._records:
            raw = Raw(message.offset() or 0, message.key(), message.value(), message.timestamp()[1])
            yield entry_of(streams[message.topic() or ""], message.partition() or 0, raw)
