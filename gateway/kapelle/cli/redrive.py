"""Publishing the records of dead letters again, as they were, and counting in a header how often that was done."""

import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from kapelle.cli.errors import InTheWay, Unreachable
from kapelle.schemas import Codec
from kapelle.topology import letters
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.translate import meaning
from kapelle.topology.letters import NotRedrivable, Redrive

SLICE_S: Final = 0.1


def redrive_of(codec: Codec, offset: int, data: bytes) -> Redrive:
    """The record of a letter, if it can be published again."""
    try:
        return letters.redrive_of(codec, offset, data)
    except NotRedrivable as error:
        raise InTheWay(str(error)) from error


def redriven(kafka: KafkaSettings, redrives: Sequence[Redrive]) -> list[dict[str, object]]:
    """Publish records, and tell where they stand now. The same partition as before keeps the order of its key."""
    delivered: list[dict[str, object]] = []
    failed: list[KafkaError] = []
    producer = Producer({"message.max.bytes": kafka.wire_bytes_max, **kafka.plain_producer()})
    for redrive in redrives:

        def told(error: KafkaError | None, message: Message, redrive: Redrive = redrive) -> None:
            if error is not None:
                failed.append(error)
                return
            at = {"topic": redrive.topic, "partition": redrive.partition, "offset": message.offset()}
            delivered.append({"letter": redrive.letter, **at, "redriven": redrive.count})

        producer.produce(
            redrive.topic,
            redrive.value,
            redrive.key,
            redrive.partition,
            on_delivery=told,
            headers=list(redrive.headers),
        )
    until = time.monotonic() + kafka.request_timeout_s
    while len(delivered) + len(failed) < len(redrives) and time.monotonic() < until:
        producer.poll(SLICE_S)
    producer.close()
    if failed:
        raise meaning(failed[0], "publish records again")
    if len(delivered) < len(redrives):
        missing = len(redrives) - len(delivered)
        raise Unreachable(
            f"Expected {len(redrives)} records to be published again, but {missing} were not acknowledged "
            f"within {kafka.request_timeout_s:g} s"
        )
    return delivered
