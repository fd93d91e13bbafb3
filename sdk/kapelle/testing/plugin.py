"""The pytest plugin: installing Kapelle makes its fixtures known to pytest, and costs nothing until one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kapelle.testing.engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The whole engine in memory, with a virtual clock that only the test advances."""
    from kapelle.testing.engine import Engine  # noqa: PLC0415 - pytest loads this module in every project

    made = Engine()
    yield made
    made.runtime.close()
