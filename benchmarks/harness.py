"""The broker's side of a measurement: topics, records behind a gate, progress of a group, outputs and their truth.

Every runtime is timed alike. A first record per partition shows that it is up and owns its partitions. The load is then
written in one transaction that stays open; nothing of it is visible to a `read_committed` consumer until the commit,
which is the start of the clock. The clock stops when the group's committed offsets reach the end of the load: that is
the commit of the last outputs, because every runtime here commits offsets and outputs together.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.workload import COUNTED, HEADERS, PARTITIONS, Counted, Tick, faults, tick_headers

POLL_S = 0.02
DEADLINE_S = 180.0


class Refused(Exception):
    """A measurement whose result is not to be believed."""


class Bench:
    """One run of one runtime on topics of its own."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.prefix = f"{name}-{uuid.uuid4().hex[:8]}"
        self.group = f"{self.prefix}.counting"
        self.ticks = f"{self.prefix}.ticks"
        self.events = f"{self.prefix}.counting.events"
        self.changelog = f"{self.prefix}.counting.changelog"
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def create_topics(self, topics: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Create the topics of the counting fold, or those given with their settings."""
        wanted = topics or {self.ticks: {}, self.events: {}, self.changelog: {"cleanup.policy": "compact"}}
        created = self.admin.create_topics(
            [NewTopic(name, PARTITIONS, 1, config=dict(settings)) for name, settings in wanted.items()]
        )
        for result in created.values():
            result.result(30)

    def delete_topics(self) -> None:
        """Remove every topic of this run, also those that a runtime made for itself."""
        mine = [name for name in self.admin.list_topics(timeout=10).topics if self.prefix in name]
        for result in self.admin.delete_topics(mine).values() if mine else ():
            result.result(30)

    def committed(self) -> dict[int, int]:
        """The group's committed offset for each partition of the ticks."""
        wanted = ConsumerGroupTopicPartitions(
            self.group, [TopicPartition(self.ticks, partition) for partition in range(PARTITIONS)]
        )
        answer = self.admin.list_consumer_group_offsets([wanted])[self.group].result(10)
        return {found.partition: max(found.offset, 0) for found in answer.topic_partitions or ()}

    def await_committed(self, ends: Mapping[int, int], alive: Callable[[], None]) -> float:
        """Wait until the group has committed up to these offsets; returns the moment at which it was seen."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                reached = self.committed()
            except KafkaException as unknown_group:
                if unknown_group.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise
                reached = {}
            now = time.perf_counter()
            if all(reached.get(partition, 0) >= end for partition, end in ends.items()):
                return now
            alive()
            time.sleep(POLL_S)
        raise Refused(f"Expected {self.group} to commit up to {dict(ends)} in {DEADLINE_S} s, but it is at {reached}")

    def ends(self, topic: str) -> dict[int, int]:
        """The offset after the last record of each partition, open transactions included."""
        # A `read_committed` consumer would be told the end of what is committed.
        settings = {"group.id": self.prefix, "isolation.level": "read_uncommitted"}
        reader = Consumer({"bootstrap.servers": self.bootstrap_servers, **settings})
        try:
            found = {
                partition: reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
                for partition in range(PARTITIONS)
            }
        finally:
            reader.close()
        return {partition: marks[1] for partition, marks in found.items() if marks is not None}

    def outputs(self, topic: str | None = None) -> Iterator[Any]:
        """Every record of a topic that a `read_committed` consumer sees, by partition order, to the end."""
        reader = watcher(self.bootstrap_servers, topic or self.events, **{"enable.partition.eof": True})
        left = PARTITIONS
        while left:
            for message in reader.consume(10_000, 1.0):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left -= 1
                else:
                    raise KafkaException(error)
        reader.close()

    def verify(self, given: Iterable[Tick]) -> None:
        """Refuse the run unless its outputs are those of the ticks given: each once, counted right, with headers."""
        bare = 0

        def decoded() -> Iterator[Counted]:
            nonlocal bare
            for message in self.outputs():
                bare += not {name for name, _ in message.headers() or ()}.issuperset(HEADERS)
                yield Counted(**COUNTED.decode(message.value()))

        wrong = faults(given, decoded())
        if bare:
            wrong.append(f"{bare} without the CloudEvents headers")
        if wrong:
            raise Refused(f"Expected {self.events} to hold each count once, but found {', '.join(wrong)}")


class Gate:
    """A load that is written but not visible until `open`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.producer = Producer(
            {
                "bootstrap.servers": bench.bootstrap_servers,
                "transactional.id": f"{bench.prefix}.gate",
                "transaction.timeout.ms": 600_000,
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 1_000_000,
                "linger.ms": 20,
            }
        )
        self.producer.init_transactions(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.producer.close()

    def load(self, records: Iterable[Tick]) -> dict[int, int]:
        """Write the records; returns the offsets at which they end."""
        self.producer.begin_transaction()
        topic = self.bench.ticks
        for tick in records:
            self.producer.produce(topic, tick.value, tick.word, headers=tick_headers(tick.id))
        self.producer.flush()
        return self.bench.ends(topic)

    def open(self) -> float:
        """Make the load visible; returns the moment just before."""
        now = time.perf_counter()
        self.producer.commit_transaction(60)
        return now


def watcher(bootstrap_servers: str, topic: str, **settings: Any) -> Consumer:
    """A `read_committed` consumer of all partitions of a topic, from the beginning, in no group."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"watcher-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    return reader


def produce_now(bench: Bench, records: Iterable[Tick]) -> None:
    """Write records that are visible at once."""
    producer = Producer({"bootstrap.servers": bench.bootstrap_servers, "partitioner": "murmur2_random"})
    for tick in records:
        producer.produce(bench.ticks, tick.value, tick.word, headers=tick_headers(tick.id))
    producer.flush()
