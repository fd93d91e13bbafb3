"""The begins, ends and committed offsets of partitions, for many partitions at once."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # exported, but not by name

from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.answers import COMMITTED, EARLIEST, LATEST, UNCOMMITTED, committed_positions, list_offsets
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import made, translated
from kapelle.topology.log import Place

T = TypeVar("T")

PAUSE_S = 0.1  # before a question that was answered with an error is asked again
SHOWN_MAX = 3


class Offsets:
    """Asks the brokers for offsets, in one request to each."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._timeout_s = settings.call_timeout_s
        self._admin = Admin(settings)

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of the places, open transactions included."""
        return self._ask(places, LATEST)

    def stable_ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of what is committed."""
        return self._ask(places, LATEST, COMMITTED)

    def beginnings(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._ask(places, EARLIEST)

    def _ask(
        self, places: Sequence[Place], spec: OffsetSpec, isolation: IsolationLevel = UNCOMMITTED
    ) -> dict[Place, int]:
        if not places:
            return {}
        try:
            with self._admin.asking(f"ask for offsets of {_some(places)}") as client:
                return list_offsets(client, places, spec, isolation=isolation, timeout_s=self._timeout_s)
        except CycleAborted:
            time.sleep(PAUSE_S)
            raise

    def close(self) -> None:
        self._admin.close()


def asked_until(timeout_s: float, ask: Callable[[], T]) -> T:
    """Asks until there is an answer: a partition that was just created, or moved, has no leader at first."""
    until_s = time.monotonic() + timeout_s
    while True:
        try:
            return ask()
        except CycleAborted:
            if time.monotonic() > until_s:
                raise
        time.sleep(PAUSE_S)


def committed(settings: KafkaSettings, group: str, places: Sequence[Place], timeout_s: float) -> list[TopicPartition]:
    """What a group has committed, negative where it has nothing. What an open transaction holds is not waited for."""
    # By a consumer: the admin client of librdkafka 2.16 ends the process when the coordinator of a group has moved.
    consumer = made(Consumer, settings.reader(group) | {"isolation.level": "read_uncommitted"})
    try:
        with translated(f"read the offsets of {group}"):
            return committed_positions(consumer, places, timeout_s)
    finally:
        consumer.close()


def _some(places: Sequence[Place]) -> str:
    first = ", ".join(map(str, places[:SHOWN_MAX]))
    return first if len(places) <= SHOWN_MAX else f"{first} and {len(places) - SHOWN_MAX} more"
