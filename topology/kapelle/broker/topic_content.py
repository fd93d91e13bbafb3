"""Reading a topic of one partition from its beginning to its end."""

import time

from confluent_kafka import Consumer, Message, TopicPartition

from kapelle.broker.meanings import is_end

BATCH = 1_000
SLICE_S = 0.1


def read_to_end(consumer: Consumer, topic: str, within_s: float) -> list[Message]:
    """All records, then the consumer is closed. It must report ends. Raises `TimeoutError` and `KafkaException`."""
    messages: list[Message] = []
    until_s = time.monotonic() + within_s
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while time.monotonic() < until_s:
            for message in consumer.consume(BATCH, SLICE_S):
                error = message.error()
                if error is None:
                    messages.append(message)
                elif is_end(error):
                    return messages
        raise TimeoutError(f"{topic} could not be read in time")
    finally:
        consumer.close()
