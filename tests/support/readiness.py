"""When a broker is ready: its admin API answers."""

import socket
import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.errors import BrokerDidNotStart

LOOK_EVERY_S = 0.05


def wait_until_ready(address: str, *, timeout_s: float, alive: Callable[[], bool], log: Callable[[], str]) -> None:
    """Return once the broker lists its topics; raise with the end of its log if it ends, or never does."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not alive():
            raise BrokerDidNotStart(address, "its process has ended", log())
        # Knock before a client is made: one that finds the door closed waits longer and longer between its tries.
        if _knock(address) and _lists_topics(address):
            return
        time.sleep(LOOK_EVERY_S)
    raise BrokerDidNotStart(address, f"it did not within {timeout_s:g} s", log())


def _knock(address: str) -> bool:
    host, port = address.split(",", maxsplit=1)[0].rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def _lists_topics(address: str) -> bool:
    try:
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
    except KafkaException:
        return False  # not yet: whoever waits knows for how long
    return True
