"""Members that share the work: both protocols, members that come and go, and nothing lost or doubled."""

from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kapelle.topology.kafka.config import Protocol
from tests.integration.runtime.members import ENOUGH_S, Deployment, Running, own, until
from tests.proof.checks import once
from tests.proof.contracts import Hopped
from tests.proof.processors import STAGES, stages
from tests.proof.workload import Published, hops
from tests.support.broker import Broker

PARTITIONS = 3


def shared(*members: Running) -> bool:
    """Whether each holds some shards, all of them fold, and each shard has one owner."""
    held = [set(m.member.shards) for m in members]
    return (
        all(held)
        and all(m.member.ready for m in members)
        and sum(map(len, held)) == len(set.union(*held)) == PARTITIONS * STAGES
    )


def problems(place: Deployment, published: list[Published]) -> list[str]:
    """What is missing, doubled or out of order."""
    seen = place.seen()
    found: list[str] = []
    for stage in range(1, STAGES + 1):
        events = [event for rows in seen[f"stage-{stage}.events"].values() for _, event in rows]
        found += once(f"stage {stage}", [(h.source, h.number) for _, _, h in published], map(numbered, events))
        found += [f"stage {stage}: {event}" for event in events if event.previous != event.number - 1]
    return found


def numbered(event: Hopped) -> tuple[str, int]:
    return event.source, event.number


def hurry(place: Deployment) -> None:
    """Have the members of KIP-848 groups heard every 200 ms: by default the broker lets them wait for five seconds."""
    entry = ConfigEntry("consumer.heartbeat.interval.ms", "200", incremental_operation=AlterConfigOpType.SET)
    groups = [place.topology.group(name) for name in place.topology.processors]
    resources = [ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry]) for group in groups]
    admin = place.broker.admin()
    for done in admin.incremental_alter_configs(resources).values():
        done.result(ENOUGH_S)


@pytest.mark.parametrize("protocol", list(Protocol))
def test_members_share_the_work_and_lose_nothing_when_one_comes_and_goes(
    protocol: Protocol, broker: Broker, tmp_path: Path
) -> None:
    place = Deployment(broker, tmp_path, own(stages, PARTITIONS), protocol=protocol)
    hurry(place)
    published = list(hops(400, 7))

    with place.member("one") as one:
        place.publish(published[:100])
        with place.member("two") as two:
            until(lambda: shared(one, two), "two members to share the shards")
            place.publish(published[100:200])
            with place.member("three") as three:
                until(lambda: three.counters.shards_active > 0, "a third member to take shards over")
                place.publish(published[200:300])
            until(lambda: shared(one, two), "the two to take the shards of the third over")
            place.publish(published[300:])
            until(lambda: not problems(place, published), "everything to be folded once, in order")

    assert place.table_problems() == []


def test_a_processor_can_be_hosted_by_itself(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own(stages, PARTITIONS))
    published = list(hops(50, 3))

    with (
        place.member("front", hosted=["stage-1", "stage-2"]) as front,
        place.member("back", hosted=["stage-3", "stage-4"]) as back,
    ):
        place.publish(published)
        until(lambda: back.counters.events >= 2 * len(published), "the stages to pass everything on")
        hosts = {name for name, _ in front.member.shards}, {name for name, _ in back.member.shards}

    assert hosts == ({"stage-1", "stage-2"}, {"stage-3", "stage-4"})
    assert problems(place, published) == []
