"""Answers of brokers about offsets and topics, distinguished from no answer.

librdkafka puts error values where an offset is expected: -1001 (invalid), -1000 (stored), -1 (end), -2 (beginning). It
does so when a broker is away, when a partition has no leader, or when one partition of several has failed. Such a
number says nothing about the data: the question was not answered, so it is asked again (`Unanswered`). One number has a
meaning: -1001 for a committed offset, without an error beside it, says that the group has committed nothing.

This is the only module that calls the functions of librdkafka that answer so; a tidy test refuses them elsewhere.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
    TopicMetadata,
)

from kapelle.broker import is_missing, seeks_coordinator
from kapelle.topology.errors import BrokerRefused, Unanswered
from kapelle.topology.kafka.translate import meaning
from kapelle.topology.log import Place

Spot = tuple[str, int]  # a topic and the number of a partition, as a `Place` is

RETRY_S = 0.05
NO_ID = frozenset({"", "None", "AAAAAAAAAAAAAAAAAAAAAA"})  # what stands for the id of a topic that has none

UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
COMMITTED = IsolationLevel.READ_COMMITTED

EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


def real_offset(place: object, answer: object, asked: str = "where it ends") -> int:
    """The offset, if it is one. `asked` says what the broker was asked about the place."""
    if type(answer) is not int or answer < 0:
        raise Unanswered(place, asked, f"librdkafka gave {answer!r}, which is not a valid offset")
    return answer


class Described(Protocol):
    """The part of the description of a topic that is used."""

    @property
    def topic_id(self) -> object: ...


def no_error(place: object, error: KafkaError | None, asked: str) -> None:
    """Refuse the answer for a partition that has an error beside it."""
    if error is None:
        return
    cause = meaning(error, f"tell {asked} of {place}")
    if isinstance(cause, BrokerRefused):
        raise cause
    raise Unanswered(place, asked, f"{error.name()}: {error.str()}")


def list_offsets(
    client: AdminClient,
    places: Iterable[Spot],
    spec: OffsetSpec,
    *,
    isolation: IsolationLevel = UNCOMMITTED,
    timeout_s: float,
) -> dict[Place, int]:
    """The offset of each place. The leader of each partition answers, or nobody does."""
    return {
        place: real_offset(place, info.offset) for place, info in _listed(client, places, spec, isolation, timeout_s)
    }


def newest_times(client: AdminClient, places: Iterable[Spot], timeout_s: float) -> dict[Place, int]:
    """The time of the newest record of each place that has records; an empty place has none."""
    times = {place: info.timestamp for place, info in _listed(client, places, NEWEST, UNCOMMITTED, timeout_s)}
    return {place: at_ms for place, at_ms in times.items() if at_ms >= 0}


def _listed(
    client: AdminClient,
    places: Iterable[Spot],
    spec: OffsetSpec,
    isolation: IsolationLevel,
    timeout_s: float,
) -> list[tuple[Place, ListOffsetsResultInfo]]:
    specs = {TopicPartition(*place): spec for place in places}
    if not specs:
        return []
    answers = client.list_offsets(specs, isolation_level=isolation, request_timeout=timeout_s)
    return [(Place(tp.topic, tp.partition), future.result()) for tp, future in answers.items()]


def committed_positions(consumer: Consumer, places: Sequence[Spot], timeout_s: float) -> list[TopicPartition]:
    """What the group of the consumer has committed, with its notes; the offset is -1001 where it has nothing."""
    positions = _committed(consumer, places, timeout_s)
    for position in positions:
        place, question = Place(position.topic, position.partition), "what the group has committed"
        no_error(place, position.error, question)
        if position.offset != OFFSET_INVALID:
            real_offset(place, position.offset, question)
    return positions


def _committed(consumer: Consumer, places: Sequence[Spot], timeout_s: float) -> list[TopicPartition]:
    """Asks again while the group has no coordinator: librdkafka returns that error at once."""
    until_s = time.monotonic() + timeout_s
    while True:
        left_s = max(until_s - time.monotonic(), RETRY_S)
        try:
            return consumer.committed([TopicPartition(*place) for place in places], left_s)
        except KafkaException as error:
            if not seeks_coordinator(error.args[0]) or time.monotonic() >= until_s:
                raise
        time.sleep(RETRY_S)


def is_committed(position: TopicPartition) -> bool:
    """Whether the group has committed an offset there."""
    return position.offset != OFFSET_INVALID


def watermarks(consumer: Consumer, place: Spot, timeout_s: float) -> tuple[int, int]:
    """Where a partition begins and ends."""
    bounds: tuple[int, int] | None = consumer.get_watermark_offsets(TopicPartition(*place), timeout_s)
    low, high = bounds if bounds is not None else (None, None)
    return real_offset(Place(*place), low, "where it begins"), real_offset(Place(*place), high)


def topic_ids(client: AdminClient, names: Sequence[str], timeout_s: float) -> dict[str, str]:
    """The ids that the brokers gave these topics when they were made."""
    described = client.describe_topics(TopicCollection(list(names)), request_timeout=timeout_s)
    return {name: topic_id(name, future.result()) for name, future in described.items()}


def topic_id(name: str, described: Described) -> str:
    """The id of a topic as it was described."""
    identity = str(described.topic_id)
    if identity in NO_ID:
        raise Unanswered(name, "its id", "the brokers gave none")
    return identity


def is_there(topic: TopicMetadata) -> bool:
    """Whether a topic is there. An error other than that it is missing says nothing about it."""
    if topic.error is not None and is_missing(topic.error):
        return False
    no_error(topic.topic, topic.error, "its partitions")
    return bool(topic.partitions)
