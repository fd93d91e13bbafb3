"""The proof's side of Kafka: publishing a workload, and reading what came of it as any reader would."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.topology.build import Topology, partition_of
from tests.proof.checks import Seen
from tests.proof.workload import Published

T = TypeVar("T")

READ_TIMEOUT_S = 120.0
PATIENCE_S = 60.0


def patiently(ask: Callable[[], T]) -> T:
    """Ask a broker that may just be coming up, or partitions that were just made and have no leader for a moment."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def low_and_high(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Where a partition begins and ends."""
    return patiently(lambda: consumer.get_watermark_offsets(TopicPartition(topic, partition), 10.0))


def publish(bootstrap_servers: str, topology: Topology, published: Iterable[Published], *, per_s: int = 0) -> None:
    """Publish in order; at most so many a second, if a rate is given."""
    codec = Codec(topology.catalog())
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
    began = time.monotonic()
    for n, (name, key, value) in enumerate(published):
        stream = topology.streams[name]
        partition = partition_of(key, topology.partitions(stream))
        while True:
            try:
                producer.produce(topology.topic(stream), codec.encode(value), key, partition)
                break
            except BufferError:
                producer.poll(0.1)
        if per_s and n % 100 == 99:
            producer.poll(0)
            time.sleep(max(0.0, began + n / per_s - time.monotonic()))
    while producer.flush(1.0):
        pass


class CommittedReader:
    """Reads a topic from its beginning to its end, `read_committed`, outside any group."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "proof-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )

    def read(self, topic: str, partitions: int) -> dict[int, list[tuple[bytes, bytes | None]]]:
        """All that is there now: each partition up to the end that it has when the reading begins."""
        ends = {p: low_and_high(self._consumer, topic, p)[1] for p in range(partitions)}
        found: dict[int, list[tuple[bytes, bytes | None]]] = {p: [] for p in range(partitions)}
        open_ = {p for p, end in ends.items() if end > 0}
        self._consumer.assign([TopicPartition(topic, p, 0) for p in open_])
        until = time.monotonic() + READ_TIMEOUT_S
        while open_:
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{topic}: partitions {sorted(open_)} can't be read to their ends: a transaction hangs"
                )
            for message in self._consumer.consume(5_000, 0.2):
                error, partition = message.error(), message.partition() or 0
                if error is None:
                    found[partition].append((message.key() or b"", message.value()))
                elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= ends[partition]:
                    open_.discard(partition)
        return found

    def close(self) -> None:
        self._consumer.close()


def seen(bootstrap_servers: str, topology: Topology, streams: Iterable[Stream] | None = None) -> Seen:
    """Everything on these streams (all by default), decoded."""
    codec = Codec(topology.catalog())
    reader = CommittedReader(bootstrap_servers)
    found: dict[str, dict[int, list[tuple[str, Any]]]] = defaultdict(dict)
    try:
        for stream in streams or topology.streams.values():
            partitions = reader.read(topology.topic(stream), topology.partitions(stream))
            for partition, rows in partitions.items():
                found[stream.name][partition] = [(key.decode(), codec.decode(value or b"")) for key, value in rows]
    finally:
        reader.close()
    return found


def unfolded(bootstrap_servers: str, topology: Topology) -> int:
    """How many records stand behind the committed offsets, as a `read_committed` reader sees them."""
    return sum(
        _behind(
            bootstrap_servers, topology.group(name), [(topology.topic(s), topology.partitions(s)) for s in p.inputs]
        )
        for name, p in topology.processors.items()
    )


def _behind(bootstrap_servers: str, group: str, topics: Iterable[tuple[str, int]]) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        places = [TopicPartition(topic, p) for topic, count in topics for p in range(count)]
        committed = patiently(lambda: consumer.committed(places, 20.0))
        # A topic that the client has not heard of takes it up to a second to find.
        patiently(lambda: consumer.list_topics(timeout=20.0))
        consumer.assign([TopicPartition(tp.topic, tp.partition, max(tp.offset, 0)) for tp in committed])
        open_ = {(tp.topic, tp.partition) for tp in committed}
        found = 0
        until = time.monotonic() + READ_TIMEOUT_S
        while open_ and time.monotonic() < until:
            for message in consumer.consume(5_000, 0.1):
                error = message.error()
                found += error is None
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    open_.discard((message.topic() or "", message.partition() or 0))
        return found + len(open_)
    finally:
        consumer.close()


def committed_lag(bootstrap_servers: str, topology: Topology) -> int:
    """How many offsets are left to fold, over all inputs. Markers count, so a little may always remain."""
    lag = 0
    for name, processor in topology.processors.items():
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": topology.group(name),
                "isolation.level": "read_uncommitted",
            }
        )
        try:
            for stream in processor.inputs:
                places = [TopicPartition(topology.topic(stream), p) for p in range(topology.partitions(stream))]
                for place in consumer.committed(places, 20.0):
                    low, high = low_and_high(consumer, place.topic, place.partition)
                    lag += high - max(place.offset, low)
        finally:
            consumer.close()
    return lag
