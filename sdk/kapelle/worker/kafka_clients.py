"""The Kafka clients of a worker: their settings, sending with acknowledgement, schemas, and what broker errors mean."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kapelle.broker import is_final, lacks_share_groups, read_to_end
from kapelle.schemas import Catalog
from kapelle.schemas.learner import unpublished
from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.worker.errors import ShareGroupsMissing, TransportRefused, TransportUnavailable, WorkerError

Setting = str | int | float | bool
OutRecord = tuple[str, bytes, Sequence[tuple[str, bytes]]]

CALL_S: Final = 10.0
DELIVERY_MS: Final = 10_000
SESSION_MS: Final = 6_000
END_WAIT_MS: Final = 10
SERVE_S: Final = 0.005

# Given by itself, or needed as it is.
OWNED: Final = frozenset(
    {
        "bootstrap.servers",
        "group.id",
        "partitioner",
        "enable.idempotence",
        "acks",
        "enable.auto.commit",
        "isolation.level",
        "auto.offset.reset",
    }
)


def meaning(error: KafkaError, doing: str) -> WorkerError:
    """What a broker error means for the runner: stop, or try again."""
    text = f"Expected to {doing}, but Kafka answered {error.name()}: {error.str()}"
    return TransportRefused(text) if is_final(error) else TransportUnavailable(text)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn a broker error into its meaning."""
    try:
        yield
    except KafkaException as error:
        raise meaning(error.args[0], doing) from error


class Delivery:
    """Records on their way. It is told of each by whichever thread serves the producer."""

    def __init__(self, topic: str, count: int) -> None:
        self._topic = topic
        self._count = count
        self._told: list[KafkaError | None] = []

    def tell(self, error: KafkaError | None, _message: Message) -> None:
        self._told.append(error)

    @property
    def is_over(self) -> bool:
        """Whether the broker has all of them, or never will."""
        return len(self._told) >= self._count

    def check(self) -> None:
        """Raise unless the broker has all of them."""
        failed = [error for error in self._told if error is not None]
        if failed:
            raise meaning(failed[0], f"send to {self._topic}")
        if not self.is_over:
            raise TransportUnavailable(f"Expected {self._topic} to take {self._count} records in time, but it did not")


class KafkaClients:
    """Makes clients with the settings of a worker, and has its one producer."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Setting]) -> None:
        owned = sorted(OWNED & config.keys())
        if owned:
            raise TransportRefused(f"Expected settings that are not the transport's own, but found {', '.join(owned)}")
        if not bootstrap_servers:
            raise TransportRefused("Expected bootstrap servers such as 127.0.0.1:9092, but found none")
        self._common: dict[str, Setting] = {"bootstrap.servers": bootstrap_servers, "log_level": 3, **config}

    @cached_property
    def _producer(self) -> Producer:
        with translated("make a producer"):
            return Producer(
                {
                    **self._common,
                    "acks": "all",
                    "enable.idempotence": True,
                    "partitioner": "murmur2_random",
                    "linger.ms": 0,
                    "compression.type": "lz4",
                    "delivery.timeout.ms": DELIVERY_MS,
                    "message.max.bytes": 1_300_000,
                }
            )

    def consumer(self, group: str) -> Consumer:
        """A member of a consumer group."""
        membership = {
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 4,
        }
        with translated(f"join the group {group}"):
            return Consumer({**self._reading(), **membership})

    def reader(self, group: str) -> Consumer:
        """A consumer outside group management."""
        with translated("make a consumer"):
            return Consumer({**self._reading(), "group.id": group, "enable.partition.eof": True})

    def share_consumer(self, group: str) -> ShareConsumer:
        """A member of a share group, which begins at the first record: a task that waits must not be missed."""
        resource = ConfigResource(
            ResourceType.GROUP,
            group,
            incremental_configs=[
                ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
            ],
        )
        admin = AdminClient(self._common)  # held until it has answered, or its answer would be that it is gone
        try:
            admin.incremental_alter_configs([resource])[resource].result(CALL_S)
            return ShareConsumer({**self._common, "group.id": group, "share.acknowledgement.mode": "explicit"})
        except KafkaException as error:
            if lacks_share_groups(error.args[0]):
                raise ShareGroupsMissing(f"it answers {error.args[0].str()}") from error
            raise meaning(error.args[0], f"join the share group {group}") from error

    def _reading(self) -> dict[str, Setting]:
        return {
            **self._common,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 100,
            "queued.max.messages.kbytes": 4 * 1024,
        }

    def check_topics(self, topics: Sequence[str]) -> None:
        """Refuse to begin without the topics: a worker never makes them."""
        with translated("list topics"):
            there = self._producer.list_topics(timeout=CALL_S).topics
        missing = [topic for topic in topics if topic not in there]
        if missing:
            raise TransportRefused(
                f"Expected the topics {', '.join(missing)}, but they do not exist: `kapelle topics apply` creates "
                "them, and the prefix must be that of the processors"
            )

    def send(self, topic: str, records: Sequence[OutRecord]) -> None:
        """Send records in order, and wait until the broker has them."""
        self.settle(self.begin(topic, records))

    def begin(self, topic: str, records: Sequence[OutRecord]) -> "Delivery":
        """Send records in order, after all that were sent before."""
        delivery = Delivery(topic, len(records))
        with translated(f"send to {topic}"):
            for key, value, headers in records:
                self._producer.produce(topic, value, key, headers=list(headers), on_delivery=delivery.tell)
        return delivery

    def serve(self) -> None:
        """Hear of what was delivered meanwhile."""
        if self._has_producer:
            self._producer.poll(0)

    def settle(self, delivery: "Delivery") -> None:
        """Wait until the broker has what was sent."""
        until_s = time.monotonic() + DELIVERY_MS / 1000 + 1
        while not delivery.is_over and time.monotonic() < until_s:
            self._producer.poll(SERVE_S)
        delivery.check()

    def schemas(self, topic: str) -> list[SchemaRecord]:
        """What stands on the schema topic."""
        with translated(f"read {topic}"):
            try:
                messages = read_to_end(self.reader(f"{topic}.reader"), topic, CALL_S)
            except TimeoutError:
                raise TransportUnavailable(f"Expected to read {topic} in time, but could not") from None
        return [SchemaRecord(m.key() or b"", m.value(), f"{topic}-0 at {m.offset()}") for m in messages]

    def publish_schemas(self, topic: str, catalog: Catalog) -> None:
        """Write the schemas of our reports, so that an older engine can read them. A second one there does no harm."""
        missing = unpublished(catalog, self.schemas(topic))
        self.send(topic, [(key.decode(), value, ()) for key, value in missing])

    def close(self) -> None:
        if self._has_producer:
            self._producer.flush(1.0)

    @property
    def _has_producer(self) -> bool:
        return "_producer" in vars(self)
