"""The other half of the seeded histories of test_schedules.py, for another process."""

import pytest

from tests.simulation.seeds import PIECES, check, named

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("seeds", PIECES[1::2], ids=named)
def test_every_seeded_history_is_exactly_once_and_in_order(seeds: range) -> None:
    check(seeds)
