"""The proof's side of Kafka: publishing a workload, and reading what came of it as any reader would."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.offsets import Offsets, committed
from kapelle.topology.log import Place
from tests.proof.checks import Seen
from tests.proof.workload import Published

T = TypeVar("T")
R = TypeVar("R")
Pair = tuple[bytes, bytes | None]  # key and value

READ_TIMEOUT_S = 120.0
PATIENCE_S = 60.0
ASK_S = 20.0


def patiently(ask: Callable[[], T]) -> T:
    """Ask a broker that may just be coming up, or partitions that were just made and have no leader for a moment."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except (KafkaException, CycleAborted):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def ends(bootstrap_servers: str, places: Sequence[Place]) -> dict[Place, int]:
    """Where partitions end, open transactions and markers included."""
    return _bounds(bootstrap_servers, places)[1]


def _bounds(bootstrap_servers: str, places: Sequence[Place]) -> tuple[dict[Place, int], dict[Place, int]]:
    """Where partitions begin and where they end."""
    offsets = Offsets(KafkaSettings(bootstrap_servers=bootstrap_servers))
    try:
        return patiently(lambda: (offsets.beginnings(places), offsets.ends(places)))
    finally:
        offsets.close()


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


def read_committed(bootstrap_servers: str, topics: Mapping[str, int]) -> dict[str, dict[int, list[Pair]]]:
    """All keys and values that readers see of these topics, given with their partitions, up to their ends now."""
    return _read(bootstrap_servers, topics, lambda message: (message.key() or b"", message.value()))


def written_ms(bootstrap_servers: str, topology: Topology, stream: Stream) -> dict[int, list[int]]:
    """When each record of a stream was written, by the wall clock of its writer, in the order of `seen`."""
    topic = topology.topic(stream)
    return _read(bootstrap_servers, {topic: topology.partitions(stream)}, lambda message: message.timestamp()[1])[topic]


def _read(
    bootstrap_servers: str, topics: Mapping[str, int], take: Callable[[Message], R]
) -> dict[str, dict[int, list[R]]]:
    """What is taken of each record. All are read at once: a client needs up to a second to find each topic."""
    found: dict[str, dict[int, list[R]]] = {t: {p: [] for p in range(count)} for t, count in topics.items()}
    end_of = ends(bootstrap_servers, [Place(t, p) for t, count in topics.items() for p in range(count)])
    open_ = {place for place, end in end_of.items() if end > 0}
    consumer = _reader(bootstrap_servers, "proof-reader")
    try:
        consumer.assign([TopicPartition(*place, 0) for place in open_])
        until = time.monotonic() + READ_TIMEOUT_S
        while open_:
            if time.monotonic() > until:
                stuck = ", ".join(sorted(map(str, open_)))
                raise TimeoutError(f"{stuck} can't be read to the end: a transaction hangs")
            for message in consumer.consume(5_000, 0.1):
                place = Place(message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is None:
                    found[place.topic][place.partition].append(take(message))
                elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= end_of[place]:
                    open_.discard(place)
    finally:
        consumer.close()
    return found


def _reader(bootstrap_servers: str, group: str) -> Consumer:
    """A `read_committed` reader that knows all topics and hears of their ends at once."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
    )
    patiently(lambda: consumer.list_topics(timeout=20.0))
    return consumer


def seen(bootstrap_servers: str, topology: Topology, streams: Iterable[Stream] | None = None) -> Seen:
    """Everything on these streams (all by default), decoded."""
    codec = Codec(topology.catalog())
    wanted = {topology.topic(s): s for s in streams or topology.streams.values()}
    found = read_committed(bootstrap_servers, {topic: topology.partitions(s) for topic, s in wanted.items()})
    return {
        wanted[topic].name: {
            partition: [(key.decode(), codec.decode(value or b"")) for key, value in rows]
            for partition, rows in partitions.items()
        }
        for topic, partitions in found.items()
    }


def unfolded(bootstrap_servers: str, topology: Topology) -> int:
    """How many records stand behind the committed offsets, as a `read_committed` reader sees them."""

    def behind(name: str) -> int:
        inputs = topology.processors[name].inputs
        return _behind(
            bootstrap_servers, topology.group(name), [(topology.topic(s), topology.partitions(s)) for s in inputs]
        )

    with ThreadPoolExecutor(len(topology.processors)) as pool:  # each of them mostly waits
        return sum(pool.map(behind, topology.processors))


def _behind(bootstrap_servers: str, group: str, topics: Iterable[tuple[str, int]]) -> int:
    consumer = _reader(bootstrap_servers, group)
    try:
        places = [TopicPartition(topic, p) for topic, count in topics for p in range(count)]
        begin = patiently(lambda: consumer.committed(places, ASK_S))
        consumer.assign([TopicPartition(tp.topic, tp.partition, max(tp.offset, 0)) for tp in begin])
        open_ = {(tp.topic, tp.partition) for tp in begin}
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
    inputs = {
        name: [Place(topology.topic(s), p) for s in processor.inputs for p in range(topology.partitions(s))]
        for name, processor in topology.processors.items()
    }
    lows, highs = _bounds(bootstrap_servers, list({place for found in inputs.values() for place in found}))
    settings = KafkaSettings(bootstrap_servers=bootstrap_servers)

    def lag(name: str) -> int:
        found = patiently(lambda: committed(settings, topology.group(name), inputs[name], ASK_S))
        return sum(highs[at] - max(tp.offset, lows[at]) for tp in found for at in [Place(tp.topic, tp.partition)])

    with ThreadPoolExecutor(len(inputs)) as pool:  # each of them mostly waits
        return sum(pool.map(lag, inputs))
