"""The short form of the proof under KIP-848. A file of its own, so that it can run beside the other forms."""

import pytest

from kapelle.topology.kafka.config import Protocol
from tests.integration.test_exactly_once import SEED
from tests.proof.prove import Plan, prove


@pytest.mark.timeout(300)
def test_faults_lose_and_double_nothing_under_the_new_group_protocol() -> None:
    problems, proof = prove(
        Plan(records=3_000, faults=4, seed=SEED + 1, pause_s=0.5, protocol=Protocol.CONSUMER, broker_faults=False)
    )

    assert problems == []
    assert proof.fleet.kills > 0
