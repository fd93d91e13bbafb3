"""The short form of the proof of schedules and backfills, on a broker. The full form is `make prove NAME=schedules`."""

import pytest

from tests.proof.schedules.prove import Plan, prove_on
from tests.support.broker import Broker

WORKFLOWS = 20  # that tick in each second
WINDOW_S = 16
SLOTS = 16  # of each of four backfills; four more have a quarter of them


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_each_tick_and_each_slot_starts_once_while_processors_are_killed(own_broker: Broker) -> None:
    plan = Plan(workflows=WORKFLOWS, window_s=WINDOW_S, slots=SLOTS, away_s=0, seed=20_328, verbose=False)

    problems, proof = prove_on(own_broker, plan)

    assert problems == []
    assert proof.kills > 0
    assert proof.counts["started"] >= WORKFLOWS * WINDOW_S
    assert proof.counts["slots"] >= 4 * SLOTS
