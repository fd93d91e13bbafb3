"""A protocol that is broken on purpose does not pass. A file of its own, so that it can run beside the proof."""

import pytest

from tests.integration.test_exactly_once import SEED
from tests.proof.prove import Plan, prove


@pytest.mark.timeout(300)
def test_offsets_outside_the_transaction_are_caught_on_a_real_broker() -> None:
    """The proof sees what it must see: a protocol broken on purpose does not pass."""
    problems, _ = prove(
        Plan(records=3_000, faults=4, seed=SEED + 2, pause_s=0.5, mutant="offsets-outside", crashes_only=True)
    )

    assert problems
