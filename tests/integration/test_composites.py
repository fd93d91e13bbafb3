"""The short form of the proof of composite steps, on a real broker. The full form is `make prove NAME=composites`."""

import pytest

from tests.proof.composites.prove import Plan, prove_on
from tests.support.broker import Broker

SEED = 20_324  # with run strategies that end and hold up others, a time-out, and a leaf that fails
TREES = 2
KILLS_S = 6.0


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_trees_end_right_while_processors_are_killed_and_parts_of_them_are_stopped_and_restarted(
    own_broker: Broker,
) -> None:
    problems, proof = prove_on(own_broker, Plan(trees=TREES, kills_s=KILLS_S, seed=SEED, verbose=False))

    assert problems == []
    assert proof.members.kills > 0
    assert proof.counts["ends of children"] >= TREES * (5 + 25 + 25 + 3)
    assert proof.counts["steps that waited for their children to stop"] > 0
