"""A transactional copy with nothing else in it: no state, no changelog, no Avro. What one hop costs at the least.

    python -m benchmarks.peers.bare --bootstrap-servers HOST:PORT --prefix P --state-dir DIR [--protocol classic]

Copies `P.ticks` to `P.counting.events`, values as they are, with the offsets in the same transaction.
"""

import argparse
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.peers.handwritten import BATCH_RECORDS_MAX, on_stop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", help="not used: there is no state")
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="consumer")
    options = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap_servers,
            "group.id": f"{options.prefix}.counting",
            "group.protocol": options.protocol,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap_servers,
            "transactional.id": f"{options.prefix}.bare",
            "retry.backoff.ms": 5,
            "linger.ms": 0,
            "partitioner": "murmur2_random",
        }
    )
    producer.init_transactions()
    consumer.subscribe([f"{options.prefix}.ticks"])
    running = [True]
    on_stop(running.clear)
    while running:
        first = consumer.poll(0.5)
        if first is not None:
            copy([first, *consumer.consume(BATCH_RECORDS_MAX - 1, 0)], consumer, producer, options.prefix)
    consumer.close()


def copy(batch: list[Any], consumer: Consumer, producer: Producer, prefix: str) -> None:
    """One transaction. An error ends the program: this measures a floor and survives nothing."""
    ends: dict[int, int] = {}
    producer.begin_transaction()
    for message in batch:
        if message.error() is not None:
            raise SystemExit(str(message.error()))
        producer.produce(f"{prefix}.counting.events", message.value(), message.key())
        ends[message.partition()] = message.offset() + 1
    offsets = [TopicPartition(f"{prefix}.ticks", partition, end) for partition, end in ends.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
    producer.commit_transaction()


if __name__ == "__main__":
    main()
