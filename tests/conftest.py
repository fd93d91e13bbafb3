"""What every test may ask for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.support.broker import Broker, BrokerSettings, open_broker, open_private_broker
from tests.support.brokers import GivenBroker
from tests.support.proxy import Proxy
from tests.support.scheduling import ProofsInOneLine, in_order

# How long an example takes says more about the machine than about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ProofsInOneLine:
    return ProofsInOneLine(config, log)


PrivateBroker = Callable[[BrokerSettings], Broker]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real broker that all tests share: leave it running, and give topics and groups names of your own."""
    with open_broker() as opened:
        yield opened


@pytest.fixture(scope="session")
def own_broker(broker: Broker) -> Iterator[Broker]:
    """The shared broker if we run it, else one beside it: for what a broker given by address does not have."""
    if not isinstance(broker, GivenBroker):
        yield broker
        return
    with open_private_broker() as opened:
        yield opened


@pytest.fixture
def proxy(own_broker: Broker) -> Iterator[Proxy]:
    """A proxy for clients that are pointed at `own_broker.proxied_servers`."""
    with Proxy(own_broker) as started:
        yield started


@pytest.fixture
def private_broker() -> Iterator[PrivateBroker]:
    """Makes brokers that a test has for itself, to kill, pause and restart: `private_broker(BrokerSettings())`."""
    with ExitStack() as opened:
        yield lambda settings: opened.enter_context(open_private_broker(settings))
