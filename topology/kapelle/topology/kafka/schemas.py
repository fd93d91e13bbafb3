"""The schema topic: every member writes the schemas that it may use before it uses them, and looks up those it lacks.

So an old process can read what a new one writes, as far as the two schemas allow, without a registry and without a
restart: a fingerprint that it does not know stands in the topic before the first record that has it.
"""

import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kapelle.broker import is_end
from kapelle.schemas import Catalog
from kapelle.schemas.schema_topic import to_records
from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import translated

END_WAIT_MS = 10

Records = list[tuple[bytes, bytes | None]]


class SchemaTopic:
    """Reads and writes the schema topic of a topology."""

    def __init__(self, topic: str, settings: KafkaSettings) -> None:
        self._topic = topic
        self._settings = settings

    def publish(self, catalog: Catalog) -> int:
        """Write what is not there yet. Returns how many schemas that was."""
        there = {key for key, _ in self.read()}
        missing = [(key, value) for key, value in to_records(catalog) if key not in there]
        if missing:
            producer = Producer(self._settings.plain_producer())
            with translated("publish schemas"):
                for key, value in missing:
                    producer.produce(self._topic, value, key, 0)
            if producer.flush(self._settings.call_timeout_s):
                raise CycleAborted(f"schemas could not be published to {self._topic} in time")
        return len(missing)

    def read(self) -> Records:
        """All that stands there now."""
        # The default would have the broker wait for half a second before it tells of the end.
        consumer = Consumer(self._settings.reader(f"{self._topic}.reader") | {"fetch.wait.max.ms": END_WAIT_MS})
        found: Records = []
        until = time.monotonic() + self._settings.call_timeout_s
        try:
            consumer.assign([TopicPartition(self._topic, 0, 0)])
            while time.monotonic() < until:
                for message in consumer.consume(1_000, 0.1):
                    error = message.error()
                    if error is None:
                        found.append((message.key() or b"", message.value()))
                    elif is_end(error):
                        return found
            raise CycleAborted(f"{self._topic} could not be read in time")
        except KafkaException as error:
            raise CycleAborted(f"read {self._topic}: {error}") from error
        finally:
            consumer.close()
