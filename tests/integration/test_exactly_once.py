"""The short form of the proof, on a real broker: a minute of faults, then nothing missing, nothing doubled.

The full form is `make prove`.
"""

import pytest

from kapelle.topology.kafka.config import Protocol
from tests.proof.prove import Plan, prove

SEED = 20_261


@pytest.mark.timeout(400)
def test_faults_lose_and_double_nothing() -> None:
    problems, proof = prove(Plan(records=6_000, faults=9, seed=SEED, pause_s=0.5))

    assert problems == []
    assert proof.fleet.kills > 0


@pytest.mark.timeout(300)
def test_faults_lose_and_double_nothing_under_the_new_group_protocol() -> None:
    problems, proof = prove(
        Plan(records=3_000, faults=4, seed=SEED + 1, pause_s=0.5, protocol=Protocol.CONSUMER, broker_faults=False)
    )

    assert problems == []
    assert proof.fleet.kills > 0


@pytest.mark.timeout(300)
def test_offsets_outside_the_transaction_are_caught_on_a_real_broker() -> None:
    """The proof sees what it must see: a protocol broken on purpose does not pass."""
    problems, _ = prove(
        Plan(records=3_000, faults=4, seed=SEED + 2, pause_s=0.5, mutant="offsets-outside", crashes_only=True)
    )

    assert problems
