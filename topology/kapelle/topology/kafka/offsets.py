"""Where partitions begin and end, and what groups have committed of them, asked for many at once."""

from collections.abc import Sequence

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # exported, but not by name

from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place


class Offsets:
    """Asks the brokers for offsets, in one request to each."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._timeout_s = settings.call_timeout_s
        self._admin = Admin(settings)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of the places, open transactions included."""
        return self._ask(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def stable_ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of what is committed."""
        return self._ask(places, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._ask(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def _ask(
        self,
        places: Sequence[Place],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[Place, int]:
        if not places:
            return {}
        try:
            return self._asked(places, spec, isolation)
        except CycleAborted:
            # After an election this client goes on asking by the leader's old epoch: it does not look again by itself.
            self._admin.close()
            raise

    def close(self) -> None:
        self._admin.close()

    def _asked(self, places: Sequence[Place], spec: OffsetSpec, isolation: IsolationLevel) -> dict[Place, int]:
        with translated("ask for offsets"):
            found = self._admin.client.list_offsets(
                {TopicPartition(*place): spec for place in places},
                isolation_level=isolation,
                request_timeout=self._timeout_s,
            )
            return {Place(tp.topic, tp.partition): future.result().offset for tp, future in found.items()}


def committed(settings: KafkaSettings, group: str, places: Sequence[Place], timeout_s: float) -> list[TopicPartition]:
    """What a group has committed, negative where it has nothing. What an open transaction holds is not waited for."""
    # By a consumer: the admin client of librdkafka 2.16 ends the process when the coordinator of a group has moved.
    consumer = made(Consumer, settings.reader(group) | {"isolation.level": "read_uncommitted"})
    try:
        with translated(f"read the offsets of {group}"):
            return consumer.committed([TopicPartition(*place) for place in places], timeout_s)
    finally:
        consumer.close()
