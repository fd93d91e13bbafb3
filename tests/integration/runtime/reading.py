"""Reading whole topics as any `read_committed` reader would, many at once."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined] # exported, but not by name

READ_TIMEOUT_S = 30.0

Read = dict[str, dict[int, list[Message]]]


def read(bootstrap_servers: str, topics: Mapping[str, int]) -> Read:
    """All that stands on these topics (with so many partitions) now. Waits for open transactions to end."""
    places = [TopicPartition(topic, p) for topic, count in topics.items() for p in range(count)]
    ends = _ends(bootstrap_servers, places)
    left = {place for place, end in ends.items() if end > 0}
    found: Read = {topic: {p: [] for p in range(count)} for topic, count in topics.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "runtime-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        consumer.assign([TopicPartition(*place, 0) for place in left])
        deadline = time.monotonic() + READ_TIMEOUT_S
        while left:
            assert time.monotonic() < deadline, f"{sorted(left)} can't be read to their ends: a transaction hangs"
            for message in consumer.consume(5_000, 0.05):
                topic, number = message.topic() or "", message.partition() or 0
                error = message.error()
                if error is None:
                    found[topic][number].append(message)
                elif error.code() == KafkaError._PARTITION_EOF and (message.offset() or 0) >= ends[topic, number]:
                    left.discard((topic, number))
    finally:
        consumer.close()
    return found


def _ends(bootstrap_servers: str, places: list[TopicPartition]) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    asked = {place: OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        found = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        try:
            return {(place.topic, place.partition): future.result().offset for place, future in found.items()}
        except KafkaException:  # partitions that were just made have no leader for a moment
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
