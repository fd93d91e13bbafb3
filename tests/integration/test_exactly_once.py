"""The short form of the proof, on a real broker: a minute of faults, then nothing missing, nothing doubled.

The full form is `make prove`.
"""

import pytest

from tests.proof.prove import Plan, prove

SEED = 20_261


@pytest.mark.timeout(400)
def test_faults_lose_and_double_nothing() -> None:
    problems, proof = prove(Plan(records=6_000, faults=9, seed=SEED, pause_s=0.5))

    assert problems == []
    assert proof.fleet.kills > 0
