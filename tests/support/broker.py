"""A real Kafka broker, from wherever this machine can have one.

    with open_broker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})

In this order: the address in `KAPELLE_TEST_BOOTSTRAP`; Docker, if an engine answers; Apache Kafka from its jars. There
is no fourth way: without a broker the tests fail, because skipped they would prove nothing.

    python -m tests.support.broker up|down|run        a broker to work with, in the background or in the foreground
"""

import os
import sys

from tests.support.brokers import Broker, GivenBroker
from tests.support.commands import docker_answers
from tests.support.errors import NoBroker, SupportError
from tests.support.jar_broker import JarBroker
from tests.support.jars import install
from tests.support.readiness import wait_until_ready
from tests.support.settings import BrokerSettings

__all__ = ["Broker", "BrokerSettings", "open_broker", "open_private_broker"]

ADDRESS_VARIABLE = "KAPELLE_TEST_BOOTSTRAP"
GIVEN_TIMEOUT_S = 30


def open_broker(settings: BrokerSettings | None = None) -> Broker:
    """A started broker, perhaps one that others run and use too."""
    if address := os.environ.get(ADDRESS_VARIABLE):
        wait_until_ready(address, timeout_s=GIVEN_TIMEOUT_S, alive=lambda: True, log=str)
        return GivenBroker(address)
    return open_private_broker(settings)


def open_private_broker(settings: BrokerSettings | None = None) -> Broker:
    """A started broker of our own, which may be killed, paused and restarted."""
    chosen = settings or BrokerSettings()
    broker = _from_docker(chosen) if docker_answers() else _from_jars(chosen)
    try:
        broker.start()
    except BaseException:
        broker.close()
        raise
    return broker


def _from_docker(settings: BrokerSettings) -> Broker:
    from tests.support.docker_broker import DockerBroker  # slow to import, and of no use without an engine

    return DockerBroker(settings)


def _from_jars(settings: BrokerSettings) -> Broker:
    try:
        return JarBroker(install(), settings)
    except SupportError as error:
        tried = (f"{ADDRESS_VARIABLE} is not set", "no Docker engine answers", f"Kafka from its jars: {error}")
        raise NoBroker(tried) from error


if __name__ == "__main__":
    from tests.support.service import main

    sys.exit(main(sys.argv[1:]))
