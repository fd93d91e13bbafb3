"""Ending the transaction of a dead member, so that its partitions need not wait until the broker times it out.

A member that dies within a transaction leaves it open; until it ends, nobody can read the offsets that it sent nor
anything behind its records. The broker would end it after `transaction.timeout.ms`, and looks only every ten seconds.
But whoever starts a producer of the same name ends it at once. Each member leaves its name beside the offsets that it
commits, so its successor can do so. To fence a member that is alive costs it one new producer and nothing else.
"""

import logging
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer

from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.notes import Note
from kapelle.topology.kafka.offsets import committed
from kapelle.topology.log import Place

_log = logging.getLogger("kapelle.fencing")


def last_owners(settings: KafkaSettings, group: str, places: Sequence[Place]) -> set[str]:
    """The names of the members that last committed offsets of these places."""
    positions = committed(settings, group, places, settings.call_timeout_s)
    return {owner for tp in positions if (owner := Note.of(tp).owner)}


def fence(settings: KafkaSettings, transactional_id: str) -> None:
    """End the open transaction of this member, if it has one."""
    producer = Producer({**settings.producer(transactional_id), "statistics.interval.ms": 0})
    try:
        producer.init_transactions(settings.call_timeout_s)
        _log.info("ended the open transaction of %s", transactional_id)
    except KafkaException as error:
        # The caller waits and tries again; in the end the broker times the transaction out by itself.
        _log.warning("could not end the transaction of %s: %s", transactional_id, error)
