"""Stores for the tests of tables: each kind, empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.topology.tables import Memory, MemoryStore, RocksStore, Store


@pytest.fixture(scope="session")
def memory() -> Memory:
    return Memory(8 * 1024 * 1024)


@pytest.fixture
def rocks(tmp_path: Path, memory: Memory) -> Iterator[RocksStore]:
    opened = RocksStore(tmp_path / "store", memory)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "rocks"])
def store(request: pytest.FixtureRequest) -> Store:
    """What is promised of every store is tested with both."""
    if request.param == "memory":
        return MemoryStore()
    found: RocksStore = request.getfixturevalue("rocks")
    return found
