"""The proof's side of Kafka: publishing a workload, and reading what came of it as any reader would."""

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.topology.build import Topology, partition_of
from tests.proof.checks import Seen
from tests.proof.workload import Published

READ_TIMEOUT_S = 120.0


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
        ends = {p: self._consumer.get_watermark_offsets(TopicPartition(topic, p), 10.0)[1] for p in range(partitions)}
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
                    low, high = consumer.get_watermark_offsets(TopicPartition(place.topic, place.partition), 20.0)
                    lag += high - max(place.offset, low)
        finally:
            consumer.close()
    return lag
