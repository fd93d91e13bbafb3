"""The transactional producer: begin, send, offsets, commit — and a new one when it is lost."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kapelle.broker import is_fenced
from kapelle.topology.errors import BrokerRefused, CycleAborted, InstanceFencedAgain, ProducerLost, Unanswered
from kapelle.topology.kafka.answers import real_offset
from kapelle.topology.kafka.bounded import BoundedCalls
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.notes import Note
from kapelle.topology.kafka.translate import commit_meaning, made, meaning, translated
from kapelle.topology.log import Out, Place

# Who takes over partitions may fence us now and then (see fencing.py); another process of our name does so always.
FENCES_MAX = 20
FENCES_WITHIN_S = 60.0


class Transactor:
    """One producer, one transaction at a time."""

    def __init__(self, settings: KafkaSettings, transactional_id: str, *, on_statistics: Callable[[str], None]) -> None:
        self.transactional_id = transactional_id
        self._settings = settings
        self._config: dict[str, object] = {**settings.producer(transactional_id), "stats_cb": on_statistics}
        self._producer: Producer | None = None
        self._calls = BoundedCalls()
        self._produce: Callable[..., None] = _closed
        self._open = False
        self._row_ends: dict[Place, int] = {}
        self._fenced_at_s: list[float] = []

    def renew(self) -> None:
        """Throw the producer away and make a new one. The broker ends the old one's transaction before this returns."""
        self._give_up_if_fenced_again()
        self.close()
        producer = made(Producer, self._config)
        try:
            with translated("initialise transactions"):
                producer.init_transactions(self._settings.call_timeout_s)
        except (CycleAborted, ProducerLost) as error:
            # The broker may be away. A half-made producer is of no use: the next attempt makes another.
            raise ProducerLost(str(error)) from error
        self._producer = producer
        self._produce = producer.produce
        self._calls = BoundedCalls()

    def begin(self) -> None:
        self._row_ends.clear()
        with translated("begin a transaction"):
            self._live().begin_transaction()
        self._open = True

    def send(self, outs: Sequence[Out]) -> None:
        produce, place = self._produce, None
        try:
            for place, key, value, headers in outs:
                try:
                    produce(place[0], value, key, place[1], None, None, 0, headers)
                except BufferError:
                    self._produce_late(place[0], value, key, place[1], None, None, 0, headers)
        except KafkaException as error:
            raise meaning(error.args[0], f"produce to {place}") from error

    def send_rows(self, place: Place, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Send changelog rows; the offset of the last one comes back with its delivery report."""
        topic, partition = place

        def delivered(error: KafkaError | None, message: Message) -> None:
            # A batch that was sent again and had been kept already is acknowledged without its offset.
            if error is None:
                with suppress(Unanswered):
                    self._row_ends[place] = real_offset(place, message.offset()) + 1

        produce = self._produce
        last = len(rows) - 1
        try:
            for n, (key, value) in enumerate(rows):
                report = delivered if n == last else None
                try:
                    produce(topic, value, key, partition, report)
                except BufferError:
                    self._produce_late(topic, value, key, partition, report)
        except KafkaException as error:
            raise meaning(error.args[0], f"produce to {place}") from error

    def send_offsets(
        self, consumer: Consumer, member: str, *, offsets: Mapping[Place, int], notes: Mapping[int, Note]
    ) -> None:
        """Put offsets into the transaction, in the name of the member that was assigned the partitions."""
        metadata = consumer.consumer_group_metadata()
        # A consumer that was thrown out forgets its member id, and the broker takes offsets without one from anybody.
        # Looking after taking the metadata proves that they were taken while we were still that member.
        if not member or consumer.memberid() != member:
            raise CycleAborted("the group assigned the partitions to another member")
        positions = [TopicPartition(*place, offset, str(notes[place.partition])) for place, offset in offsets.items()]
        send, timeout_s = self._live().send_offsets_to_transaction, self._settings.call_timeout_s
        try:
            with translated("send offsets"):
                self._calls.call(lambda: send(positions, metadata, timeout_s), timeout_s)
        except TimeoutError:
            raise ProducerLost(f"offsets could not be sent within {timeout_s} s") from None

    def commit(self) -> None:
        try:
            self._live().commit_transaction(self._settings.commit_timeout_s)
        except KafkaException as error:
            raise commit_meaning(error.args[0]) from error
        self._open = False

    def serve(self) -> None:
        """Let the producer tell its statistics; nothing else asks it while there is nothing to do."""
        if self._producer is not None:
            with suppress(KafkaException):  # what is wrong with it, the next transaction tells
                self._producer.poll(0)

    def row_end(self, place: Place) -> int:
        end = self._row_ends.get(place)
        if end is None:  # the changelog tells it, as after a crash at this moment
            raise Unanswered(place, "where the rows of this cycle were kept", "acknowledged without an offset")
        return end

    def abort(self, timeout_s: float | None = None) -> None:
        """Abort what is open. If that cannot be done, the producer is lost."""
        if not self._open:
            return
        self._open = False
        try:
            self._live().abort_transaction(self._settings.call_timeout_s if timeout_s is None else timeout_s)
        except KafkaException as error:
            cause = meaning(error.args[0], "abort")
            raise cause if isinstance(cause, BrokerRefused) else ProducerLost(str(cause)) from error

    def close(self) -> None:
        """Let the producer go without waiting for anything it still holds.

        Not with its own `close`, which would try to abort: what became of its transaction the next one settles.
        """
        producer, self._producer = self._producer, None
        self._produce = _closed
        self._open = False
        self._calls.close()
        if producer is not None:
            with suppress(KafkaException):  # polling tells a fatal error once more; that is why we are here
                producer.purge()
                producer.poll(0)

    def _live(self) -> Producer:
        if self._producer is None:
            raise ProducerLost("there is no producer")
        return self._producer

    def _produce_late(self, *arguments: object) -> None:
        """The producer's queue is full: wait for deliveries. This is the back-pressure of a slow broker."""
        while True:
            if self._live().poll(self._settings.call_timeout_s) == 0:
                raise CycleAborted(f"nothing was delivered for {self._settings.call_timeout_s} s")
            with suppress(BufferError):  # statistics were polled, and nothing was delivered
                return self._produce(*arguments)

    def _give_up_if_fenced_again(self) -> None:
        if self._producer is None or not _was_fenced(self._producer):
            return
        now = time.monotonic()
        self._fenced_at_s = [at for at in self._fenced_at_s if now - at < FENCES_WITHIN_S] + [now]
        if len(self._fenced_at_s) > FENCES_MAX:
            raise InstanceFencedAgain(self.transactional_id)


def _was_fenced(producer: Producer) -> bool:
    """Whether a newer producer of the same name is why this one is lost: a fatal error is the answer to every call."""
    try:
        producer.begin_transaction()
    except KafkaException as error:
        return is_fenced(error.args[0])
    return False


def _closed(*_: object, **__: object) -> None:
    raise ProducerLost("there is no producer")
