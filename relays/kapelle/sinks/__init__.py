"""Destinations of public events besides Kafka: webhooks and Amazon SNS, each read by its own consumer group.

Everything here only reads public topics. An event is delivered at least once, under an id that never changes, and those
of one key in their order; a sink that is slow, broken or away holds up nobody but itself.
"""

from kapelle.sinks.errors import BadSinks, NotDelivered, SinkLacks, SinksError, Undeliverable
from kapelle.sinks.models import Sink, SinksFile, read_sinks
from kapelle.sinks.relay import Log, SinkRelay
from kapelle.sinks.supervision import Sinks

__all__ = [
    "BadSinks",
    "Log",
    "NotDelivered",
    "Sink",
    "SinkLacks",
    "SinkRelay",
    "Sinks",
    "SinksError",
    "SinksFile",
    "Undeliverable",
    "read_sinks",
]
