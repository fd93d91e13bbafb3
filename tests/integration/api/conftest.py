"""The API on both kinds of log: what holds on one must hold on the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.places import Place, embedded_place, kafka_place


@pytest.fixture(scope="session", params=["embedded", "kafka"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A running API that all tests share: give workflows and types of tasks names of your own."""
    directory: Path = tmp_path_factory.mktemp(f"api-{request.param}")
    if request.param == "embedded":
        with embedded_place(directory) as found:
            yield found
    else:
        with kafka_place(request.getfixturevalue("broker"), directory) as found:
            yield found
