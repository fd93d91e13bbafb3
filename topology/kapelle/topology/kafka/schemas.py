"""The schema topic: every member writes the schemas that it may use before it uses them, and looks up those it lacks.

So an old process can read what a new one writes, as far as the two schemas allow, without a registry and without a
restart: a fingerprint that it does not know stands in the topic before the first record that has it.
"""

from confluent_kafka import Consumer, KafkaException, Producer

from kapelle.broker import read_to_end
from kapelle.schemas import Catalog
from kapelle.schemas.learner import unpublished
from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import translated

END_WAIT_MS = 10


class SchemaTopic:
    """Reads and writes the schema topic of a topology."""

    def __init__(self, topic: str, settings: KafkaSettings) -> None:
        self._topic = topic
        self._settings = settings

    def publish(self, catalog: Catalog) -> int:
        """Write what is not there yet. Returns how many schemas that was."""
        missing = unpublished(catalog, self.read())
        if missing:
            producer = Producer(self._settings.plain_producer())
            with translated("publish schemas"):
                for key, value in missing:
                    producer.produce(self._topic, value, key, 0)
            if producer.flush(self._settings.call_timeout_s):
                raise CycleAborted(f"schemas could not be published to {self._topic} in time")
        return len(missing)

    def read(self) -> list[SchemaRecord]:
        """All that stands there now."""
        # The default would have the broker wait for half a second before it tells of the end.
        consumer = Consumer(self._settings.reader(f"{self._topic}.reader") | {"fetch.wait.max.ms": END_WAIT_MS})
        try:
            messages = read_to_end(consumer, self._topic, self._settings.call_timeout_s)
        except TimeoutError as error:
            raise CycleAborted(str(error)) from error
        except KafkaException as error:
            raise CycleAborted(f"read {self._topic}: {error}") from error
        return [SchemaRecord(m.key() or b"", m.value(), f"{self._topic}-0 at {m.offset()}") for m in messages]
