"""What every test may ask for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.broker import Broker, BrokerSettings, open_broker, open_private_broker

PrivateBroker = Callable[[BrokerSettings], Broker]


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real broker that all tests share: leave it running, and give topics and groups names of your own."""
    with open_broker() as opened:
        yield opened


@pytest.fixture
def private_broker() -> Iterator[PrivateBroker]:
    """Makes brokers that a test has for itself, to kill, pause and restart: `private_broker(BrokerSettings())`."""
    with ExitStack() as opened:
        yield lambda settings: opened.enter_context(open_private_broker(settings))
