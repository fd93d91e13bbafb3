"""A real Kafka broker, from wherever this machine can have one.

    with open_broker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})

In this order: the address in `KAPELLE_TEST_BOOTSTRAP`; Docker, if an engine answers; Apache Kafka from its jars. There
is no fourth way: without a broker the tests fail, because skipped they would prove nothing.

    python -m tests.support.broker up|down|run|prepare        a broker to work with: see service.py
"""

import gc
import os
import sys
import warnings

from tests.support.brokers import Broker, GivenBroker
from tests.support.commands import docker_answers
from tests.support.errors import CommandFailed, NoBroker, NoContainer
from tests.support.jar_broker import JarBroker
from tests.support.jars import install
from tests.support.readiness import wait_until_ready
from tests.support.settings import ADDRESS_VARIABLE, BrokerSettings

__all__ = ["Broker", "BrokerSettings", "open_broker", "open_private_broker"]

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
    tried = [f"{ADDRESS_VARIABLE} is not set"]
    for way, make in (("Docker", _from_docker), ("Kafka from its jars", _from_jars)):
        try:
            return _started(make(chosen))
        except (NoBroker, NoContainer, CommandFailed) as error:
            tried.append(f"{way}: {error}")
        _forget_refused_connections()
    raise NoBroker(tried)


def _from_docker(settings: BrokerSettings) -> Broker:
    if not docker_answers():
        raise NoBroker(["no engine answers"])
    from tests.support.docker_broker import DockerBroker  # slow to import, and of no use without an engine

    return DockerBroker(settings)


def _forget_refused_connections() -> None:
    """The Docker client leaves their sockets to the collector, whose warnings would be some later test's failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _from_jars(settings: BrokerSettings) -> Broker:
    return JarBroker(install(), settings)


def _started(broker: Broker) -> Broker:
    """Start it, or leave nothing of it behind."""
    try:
        broker.start()
    except BaseException:
        broker.close()
        raise
    return broker


if __name__ == "__main__":
    from tests.support.service import main

    sys.exit(main(sys.argv[1:]))
