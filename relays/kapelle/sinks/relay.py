"""Delivers public records to one sink, at least once: offsets are committed when the sink has taken them.

    reader ─▶ lanes, by key ─▶ courier ─▶ the sink
                                    └───▶ dead letters

So many records may be on their way at a time, and no more are read: a sink that hangs holds up nobody but itself. While
it does, the group still hears of us, so that others can join and leave.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from confluent_kafka import Message

from kapelle.relay.group import GroupReader
from kapelle.relay.letters import letter_about
from kapelle.relay.patience import Patience
from kapelle.relay.publication import Publisher, failure, sent
from kapelle.relay.records import headers_of, key_of, place_of
from kapelle.schemas import Codec, Framing, SchemaError
from kapelle.schemas.contracts import Stage
from kapelle.sinks.courier import Courier, Interrupted, Receiver
from kapelle.sinks.errors import NotDelivered, Undeliverable
from kapelle.sinks.events import CloudEvent, cloud_event
from kapelle.sinks.lanes import Lanes
from kapelle.sinks.models import PUBLIC, Begin, Sink
from kapelle.sinks.progress import Progress, Ticket
from kapelle.sources.mapping import passes
from kapelle.topology.build import DEAD_LETTERS, Topology
from kapelle.topology.exposition import Statistics
from kapelle.topology.journal import RECORD_FAULTS, JournalUnavailable
from kapelle.topology.journal.entries import Decoder, key_text
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.schemas import SchemaTopic
from kapelle.topology.log import Place

GROUPS: Final = "sinks"
IN_FLIGHT_MAX: Final = 200
WAIT_S: Final = 0.25
COMMIT_S: Final = 0.5
AGAIN_S: Final = 0.5
TELL_S: Final = 10.0  # how often, at most, a line tells that a sink does not take events

_log = logging.getLogger("kapelle.sinks")


class Counts(msgspec.Struct):
    """What became of records."""

    read: int = 0
    delivered: int = 0
    filtered: int = 0
    failed: int = 0
    set_aside: int = 0
    restarts: int = 0


class Job(msgspec.Struct, frozen=True):
    """A record on its way to the sink. Without an event it is to become a letter, because of `problem`."""

    ticket: Ticket
    message: Message
    event: CloudEvent | None = None
    problem: Exception | None = None


class Log(msgspec.Struct, frozen=True):
    """Where records are read and letters written, and how public records are framed."""

    topology: Topology
    settings: KafkaSettings
    journal: Publisher
    framing: Framing | None = None

    def decoder(self) -> Decoder:
        """One for each thread that decodes."""
        codec = Codec(self.topology.catalog(), self.framing, record_bytes_max=self.settings.wire_bytes_max)
        return Decoder(codec, SchemaTopic(self.topology.schemas, self.settings).read)


class SinkRelay:
    """One member of the group that reads for one sink."""

    def __init__(self, name: str, sink: Sink, log: Log, receiver: Receiver, counts: Counts) -> None:
        self.name = name
        self.counts = counts
        self._sink = sink
        self._log = log
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._patience = Patience(self._stop.is_set)
        self._progress = Progress()
        self._receiver = receiver
        self._decoder = log.decoder()
        self._told_s = self._committed_s = 0.0
        self._courier = Courier(receiver, sink.retry, self._stop, failed=self._not_taken)
        group = f"{log.topology.prefix}.{GROUPS}.{name}"
        self._reader = GroupReader(log.settings, group, _log, is_from_end=sink.begin is Begin.LATEST)
        self._is_held = False
        self._reader.use([log.topology.topic(PUBLIC[topic]) for topic in sink.topics], lost=self._leave)
        self._lanes = Lanes(sink.lanes, self._work, name=name, stop=self._stop)

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        return self._reader.statistics

    def run(self, stopped: Callable[[], bool]) -> None:
        """Deliver until told to stop; then leave the group. What is on its way is read again by whoever comes next."""
        try:
            while not stopped():
                self.step()
        finally:
            self._stop.set()
            self._lanes.close()
            self._reader.commit_ends(self._progress.ends())
            self._reader.close()
            self._receiver.close()

    def step(self) -> None:
        """Take what there is room for, and commit what is done."""
        self._lanes.check()
        has_room = self._progress.wait_below(IN_FLIGHT_MAX, WAIT_S)
        if not has_room:
            self._reader.hold()  # each time, for what we were given meanwhile
        elif self._is_held:
            self._reader.go_on()
        self._is_held = not has_room
        room = max(IN_FLIGHT_MAX - self._progress.count, 1)
        for message in self._reader.take(room, WAIT_S if has_room else 0.0):
            self._accept(message)
        if time.monotonic() - self._committed_s >= COMMIT_S:
            self._reader.commit_ends(self._progress.ends())
            self._committed_s = time.monotonic()

    def _leave(self, places: Sequence[Place]) -> None:
        """Others read these partitions from now on: they begin with what is not done."""
        self._reader.commit_ends(self._progress.ends())
        self._progress.forget(places)

    def _accept(self, message: Message) -> None:
        at, key = place_of(message), key_text(key_of(message))
        ticket = self._progress.begin(Place(at.topic, at.partition), at.offset)
        self._count("read")
        try:
            event = cloud_event(key, self._decoder.decode(message.value() or b""), headers_of(message))
            is_wanted = passes(self._sink, event.data)
        except (SchemaError, *RECORD_FAULTS) as error:
            self._lanes.put(key, Job(ticket, message, problem=error))
            return
        if is_wanted:
            self._lanes.put(key, Job(ticket, message, event))
        else:
            self._count("filtered")
            self._progress.end(ticket)

    def _work(self, job: Job) -> None:
        """Deliver a record, or put it aside. One that is neither, because we stop, stays as it is."""
        try:
            if job.event is None:
                self._put_aside(job.message, (Stage.DECODE, job.problem or SchemaError()))
            else:
                self._deliver(job, job.event)
        except Interrupted:
            return
        self._progress.end(job.ticket)

    def _deliver(self, job: Job, event: CloudEvent) -> None:
        try:
            self._courier.deliver(event, lambda: job.ticket.is_void)
        except Undeliverable as error:
            self._put_aside(job.message, (Stage.OTHER, error))
        else:
            self._count("delivered")

    def _put_aside(self, message: Message, why: tuple[Stage, Exception]) -> None:
        """Write a dead letter, and wait until it is there."""
        relay, bytes_max = f"{GROUPS}.{self.name}", self._log.settings.record_bytes_max
        letter, key = letter_about(message, relay, why, record_bytes_max=bytes_max), place_of(message).id
        while True:
            answer = sent(lambda: self._log.journal.publish(DEAD_LETTERS, key, letter), JournalUnavailable)
            reason = failure(answer, self._patience, JournalUnavailable)
            if reason is None:
                break
            self._tell("a dead letter could not be written", reason)
            if self._stop.wait(AGAIN_S):
                raise Interrupted
        self._count("set_aside")
        fields = {"sink": self.name, "record": key, "reason": why[1]}
        _log.warning("an event became a dead letter", extra={"fields": fields})

    def _not_taken(self, error: NotDelivered) -> None:
        self._count("failed")
        self._tell("the sink does not take events", error)

    def _tell(self, what: str, reason: Exception) -> None:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._told_s < TELL_S:
                return
            self._told_s = now_s
        _log.warning(what, extra={"fields": {"sink": self.name, "reason": reason}})

    def _count(self, what: str) -> None:
        with self._lock:
            setattr(self.counts, what, getattr(self.counts, what) + 1)
