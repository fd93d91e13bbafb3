"""The short form of the proof of permits and breakpoints, on a broker. The full form is `make prove NAME=permits`."""

import pytest

from tests.proof.permits.prove import Plan, prove_on
from tests.support.broker import Broker

SEED = 20_327  # with a flow in which one step runs at a time, and breakpoints on all attempts of three steps
STEPS = 80
KILLS_S = 6.0


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_limits_hold_and_breakpoints_pause_while_processors_are_killed_and_people_change_both(
    own_broker: Broker,
) -> None:
    problems, proof = prove_on(own_broker, Plan(steps=STEPS, kills_s=KILLS_S, seed=SEED, verbose=False))

    assert problems == []
    assert proof.kills > 0
    assert proof.counts["attempts SUCCEEDED"] >= STEPS // 2
    assert proof.counts["permits granted after a wait"] > 0
    assert proof.counts["attempts paused"] > 0
