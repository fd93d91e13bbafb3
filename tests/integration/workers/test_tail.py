"""A tail of a topic that was made this very moment: its partitions have no leader yet, which is waited for."""

import uuid

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kapelle.worker.kafka_readers import TopicTail
from tests.support.broker import Broker

PARTITIONS = 24
TOPICS = 8


def test_a_topic_that_was_just_made_can_be_read(broker: Broker) -> None:
    where: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(where)

    for _ in range(TOPICS):
        topic = f"just-made-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
        consumer = Consumer(where | {"group.id": topic, "enable.partition.eof": True})

        assert TopicTail(consumer, topic, 10).past() == []

        consumer.close()
