"""Looking on while the engine works: has everything ended, and is anything held up by what failed on purpose?"""

from typing import Final

from confluent_kafka import Consumer, TopicPartition

from kapelle.processors.definitions import Rule
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.build import Topology
from tests.proof.engine.unblocking import unblock
from tests.proof.engine.workload import Workload
from tests.proof.workload import Published

READ_MAX: Final = 5_000


class Watch:
    """A reader of `workflows.events` beside the engine."""

    def __init__(self, bootstrap_servers: str, topology: Topology, work: Workload) -> None:
        self._work = work
        self._codec = Codec(topology.catalog())
        self._missing = set(work.requests)
        self._alive: set[tuple[str, int]] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"{topology.prefix}.watch",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        partitions = range(topology.partitions(WORKFLOW_EVENTS))
        self._consumer.assign([TopicPartition(topology.topic(WORKFLOW_EVENTS), p, 0) for p in partitions])

    @property
    def has_begun(self) -> bool:
        """Whether there is an instance."""
        return len(self._missing) < len(self._work.requests)

    @property
    def is_over(self) -> bool:
        """Whether every request has an instance, and every instance has ended."""
        return not self._missing and not self._alive

    def left(self) -> str:
        return f"{len(self._missing)} requests without an instance, {len(self._alive)} instances without an end"

    def look(self, timeout_s: float) -> list[Published]:
        """Read what is new, and give what is to be published because of it."""
        found = self._consumer.consume(READ_MAX, timeout_s)
        events = [self._codec.decode(one.value() or b"") for one in found if one.error() is None]
        return [asked for event in events for asked in self._see(event)]

    def _see(self, event: object) -> list[Published]:
        if isinstance(event, c.InstanceCreated):
            self._missing.discard(event.request_id)
            if event.status is InstanceStatus.CREATED:
                self._alive.add((event.workflow_id, event.instance_id))
        elif isinstance(event, c.InstanceEnded):
            self._alive.discard((event.workflow_id, event.instance_id))
            is_strict = self._work.rules[event.workflow_id] is Rule.STRICT_SEQUENTIAL
            if is_strict and event.status is InstanceStatus.FAILED:
                return [unblock(event.workflow_id, event.instance_id)] * 2
        return []

    def close(self) -> None:
        self._consumer.close()
