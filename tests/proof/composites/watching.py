"""Looking on while trees grow: has everything that began ended?"""

from typing import Final

from confluent_kafka import Consumer, TopicPartition

from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.build import Topology

READ_MAX: Final = 5_000
STREAMS: Final = (RUN_EVENTS, WORKFLOW_EVENTS)


class Watch:
    """A reader of the histories of workflows and runs beside the engine."""

    def __init__(self, bootstrap_servers: str, topology: Topology) -> None:
        self._codec = Codec(topology.catalog())
        self._queued: set[str] = set()
        self._running: set[str] = set()
        self.answered: set[str] = set()  # requests
        self.instances = 0
        self.records = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"{topology.prefix}.watch",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        places = [(topology.topic(stream), p) for stream in STREAMS for p in range(topology.partitions(stream))]
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is queued, and nothing runs."""
        return not self._queued and not self._running

    def left(self) -> str:
        return (
            f"{self.instances} instances so far, {len(self._queued)} queued or launched, {len(self._running)} running"
        )

    def look(self, timeout_s: float) -> None:
        """Read what is new."""
        for one in self._consumer.consume(READ_MAX, timeout_s):
            if one.error() is None:
                self.records += 1
                self._see((one.key() or b"").decode(), self._codec.decode(one.value() or b""))

    def _see(self, key: str, event: object) -> None:
        match event:
            case c.RunStarted():
                self.instances += event.run_id == 1
                self._running.add(key)
            case c.RunEnded():
                self._running.discard(key)
            case c.InstanceCreated():
                self.answered.add(event.request_id)
                if event.status is InstanceStatus.CREATED:
                    self._queued.add(run_key(key, event.instance_id))
            case c.InstanceEnded():
                self._queued.discard(run_key(key, event.instance_id))
            case c.CommandRefused() | c.PropertiesChanged():
                self.answered.add(event.request_id)

    def close(self) -> None:
        self._consumer.close()
