"""What the simulations share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Members tell of every cycle that they give up: in a simulation that is all they do."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
