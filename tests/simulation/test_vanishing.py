"""Seeded histories in which input vanishes: every record is folded, or a dead letter tells that it was lost."""

from collections import Counter

import pytest

from kapelle.schemas import Codec
from kapelle.testing.faults_inputs import VanishingSchedule
from kapelle.topology.log import Cause, Place
from kapelle.topology.settings import OnLostInput
from tests.proof.processors import topology
from tests.proof.workload import ticks

SEEDS = range(150)
TOPOLOGY = topology("counting", partitions=2)
INPUT = "proof.ticks"

pytestmark = pytest.mark.usefixtures("quiet")


def run(seed: int, policy: OnLostInput, *, replaces: bool) -> VanishingSchedule:
    schedule = VanishingSchedule(TOPOLOGY, seed, policy=policy, replaces=replaces)
    schedule.publish_later(ticks(30, 4))
    schedule.run(150)
    return schedule


def problems(schedule: VanishingSchedule) -> list[str]:
    """Records that were neither folded nor told of, and those that were both."""
    codec = Codec(TOPOLOGY.catalog())
    folded = Counter[str]()
    for partition in range(2):
        for _, entry in schedule.cluster.committed_entries(Place("proof.counting.events", partition)):
            folded[codec.decode(entry.value or b"").id] += 1  # type: ignore[attr-defined]
    letters = schedule.letters()
    told = {
        (Place(letter.topic, letter.partition), offset)
        for letter in letters
        if letter.end_offset is not None
        for offset in range(letter.offset, letter.end_offset)
    }
    replaced = {letter.partition for letter in letters if letter.error == Cause.REPLACED.name}
    found = []
    lives = [*schedule.gone, *((place, e) for place, e in schedule.cluster.partitions.items() if place.topic == INPUT)]
    for place, entries in lives:
        for offset, entry in enumerate(entries):
            name = codec.decode(entry.value or b"").id  # type: ignore[attr-defined]
            is_told = (place, offset) in told or (place.partition in replaced and bool(schedule.gone))
            if not folded[name] and not is_told:
                found.append(f"{name} at {place}-{offset} is gone without a word")
            if not schedule.gone and folded[name] and (folded[name] > 1 or is_told):
                found.append(f"{name} at {place}-{offset} was folded {folded[name]} times, told: {is_told}")
    return found


@pytest.mark.parametrize("policy", list(OnLostInput))
def test_records_that_are_deleted_unread_are_told_of_and_all_others_folded_once(policy: OnLostInput) -> None:
    stops = losses = 0
    for seed in SEEDS:
        schedule = run(seed, policy, replaces=False)
        assert (seed, problems(schedule)) == (seed, [])
        stops += len(schedule.stops)
        losses += len(schedule.letters())

    assert losses > len(SEEDS) / 4  # or it would prove nothing
    assert (stops > 0) == (policy is OnLostInput.STOP)


@pytest.mark.parametrize("policy", list(OnLostInput))
def test_topics_that_are_replaced_are_told_of_and_the_new_ones_read_from_their_beginning(policy: OnLostInput) -> None:
    replaced = 0
    for seed in SEEDS:
        schedule = run(seed, policy, replaces=True)
        assert (seed, problems(schedule)) == (seed, [])
        replaced += sum(letter.error == Cause.REPLACED.name for letter in schedule.letters())

    assert replaced > len(SEEDS) / 4
