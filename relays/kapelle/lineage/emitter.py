"""Writes events of OpenLineage to a topic of Kafka, and says whether they are there."""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport

from kapelle.broker import is_refused
from kapelle.lineage.errors import NotEmitted, TopicMissing
from kapelle.topology.errors import BrokerRefused
from kapelle.topology.kafka.answers import is_there
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated

DELIVERY_MS: Final = 10_000
FLUSH_S: Final = 15.0


class Emitter(KafkaTransport):
    """The package's own transport, with its keys: all runs of a workflow and of its steps stand on one partition.

    The package only notes in a log what was not delivered; whoever must not lose anything has to know.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        """Raises `TopicMissing`."""
        check_topic(settings, topic)
        config = settings.plain_producer() | {"delivery.timeout.ms": DELIVERY_MS, "statistics.interval.ms": 0}
        given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in config.items()}
        super().__init__(KafkaConfig(config=given, topic=topic, flush=False))

    def emit_all(self, events: Sequence[RunEvent]) -> None:
        """Write events, and wait until all are acknowledged. Raises `NotEmitted` or `BrokerRefused`."""
        producer, failed = self.producer, list[KafkaError]()
        if producer is None:
            raise NotEmitted("Expected to write events, but the transport is closed")

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for event in events:
            value = Serde.to_json(event).encode()
            try:
                producer.produce(self.topic, value, self._get_message_key(event), on_delivery=told)
            except (BufferError, KafkaException) as error:
                producer.flush(FLUSH_S)
                raise NotEmitted(f"Expected Kafka to take events, but {error}") from error
            producer.poll(0)
        left = producer.flush(FLUSH_S)
        refused = next((error for error in failed if is_refused(error)), None)
        if refused is not None:
            raise BrokerRefused(f"Expected to write to {self.topic}, but {refused.str()}")
        if left or failed:
            why = failed[0].str() if failed else f"nothing came for {FLUSH_S:g} s"
            raise NotEmitted(f"Expected {len(events)} events to be acknowledged, but {why}")


def check_topic(settings: KafkaSettings, topic: str) -> None:
    """Whether events can be written somewhere. Raises `TopicMissing`."""
    with translated(f"look for {topic}"):
        known = made(AdminClient, settings.admin()).list_topics(topic, settings.request_timeout_s).topics[topic]
        if not is_there(known):
            raise TopicMissing(topic)
