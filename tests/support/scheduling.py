"""Which tests begin first, and which may run beside each other."""

from collections.abc import Sequence
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

# Each keeps a fleet of processes busy: two at once would mostly wait for each other.
PROOFS: Final = tuple(
    f"tests/integration/{name}.py"
    for name in (
        "test_exactly_once",
        "test_signals",
        "test_exactly_once_consumer",
        "test_engine",
        "test_exactly_once_broken",
    )
)
# What takes longest begins first: short files fill the gaps in the end, and long ones would be waited for.
FIRST: Final = ("tests/integration", "tests/simulation")


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Proofs, then what waits for brokers and processes, then the rest, each as it was shuffled."""
    return sorted(items, key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    ranks = (PROOFS, FIRST)
    return next((rank for rank, paths in enumerate(ranks) if nodeid.startswith(paths)), len(ranks))


class ProofsInOneLine(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """A file goes to one process as a whole, and all proofs to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "proofs" if file in PROOFS else file
