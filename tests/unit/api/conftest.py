"""An API on the embedded log, answered by a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.places import Place, embedded_place


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A running API that all tests share: give workflows names of your own."""
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as place:
        yield place
