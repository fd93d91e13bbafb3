"""Topics on the real broker: planned, applied, verified, and refused at start unless they are as they must be."""

from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kapelle.processors.streams import DAY_MS
from kapelle.topology.errors import TopicsDiffer
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.kafka.topics import Do, Topics
from tests.integration.runtime.members import ENOUGH_S, own, until
from tests.proof.processors import counting
from tests.support.broker import Broker


@pytest.fixture
def settings(broker: Broker) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=broker.bootstrap_servers)


def configured(broker: Broker, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    admin = broker.admin()
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(ENOUGH_S)


def config(broker: Broker, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = broker.admin()
    found = admin.describe_configs([resource])[resource].result(ENOUGH_S)
    return {name: entry.value or "" for name, entry in found.items()}


def test_what_is_missing_is_planned_created_and_then_in_order(broker: Broker, settings: KafkaSettings) -> None:
    topology = own([counting], partitions=3)
    topics = Topics(topology, settings)

    planned = topics.plan()
    assert [(c.do, c.topic, c.partitions) for c in planned] == [
        (Do.CREATE, t.name, t.partitions) for t in topology.topics()
    ]
    assert "missing; needs 3 partitions cleanup.policy=delete" in str(planned[0])

    assert topics.apply() == []
    until(lambda: topics.plan() == [], "the topics to be there")
    topics.verify()

    prefix = topology.prefix
    found = {name: config(broker, f"{prefix}.{name}") for name in ("ticks", "counting.events", "counting.changelog")}
    assert (found["ticks"]["cleanup.policy"], found["ticks"]["retention.ms"]) == ("delete", str(7 * DAY_MS))
    assert (found["counting.events"]["cleanup.policy"], found["counting.events"]["retention.ms"]) == ("delete", "-1")
    assert found["counting.changelog"]["cleanup.policy"] == "compact"
    assert found["counting.changelog"]["delete.retention.ms"] == str(7 * DAY_MS)
    assert {int(c["max.message.bytes"]) for c in found.values()} == {settings.wire_bytes_max}


def test_applying_twice_changes_nothing(settings: KafkaSettings) -> None:
    topics = Topics(own([counting]), settings)
    topics.apply()
    until(lambda: topics.plan() == [], "the topics to be there")

    assert topics.apply() == []
    assert topics.plan() == []


def test_a_setting_that_differs_is_planned_and_mended(broker: Broker, settings: KafkaSettings) -> None:
    topology = own([counting])
    topics = Topics(topology, settings)
    topics.apply()
    until(lambda: topics.plan() == [], "the topics to be there")
    history = f"{topology.prefix}.counting.events"
    configured(broker, history, "retention.ms", "1000")
    until(lambda: topics.plan() != [], "the difference to be seen")

    (change,) = topics.plan()
    assert (change.do, str(change)) == (Do.CONFIGURE, f"{history}: has retention.ms=1000; needs retention.ms=-1")
    with pytest.raises(TopicsDiffer, match=r"has retention.ms=1000; needs retention.ms=-1"):
        topics.verify()

    topics.apply()
    until(lambda: topics.plan() == [], "the difference to be mended")
    assert config(broker, history)["retention.ms"] == "-1"


def test_larger_limits_than_needed_are_as_good(broker: Broker, settings: KafkaSettings) -> None:
    topology = own([counting])
    topics = Topics(topology, settings)
    topics.apply()
    until(lambda: topics.plan() == [], "the topics to be there")
    configured(broker, f"{topology.prefix}.ticks", "max.message.bytes", "5000000")
    configured(broker, f"{topology.prefix}.counting.changelog", "delete.retention.ms", str(30 * DAY_MS))
    until(lambda: config(broker, f"{topology.prefix}.ticks")["max.message.bytes"] == "5000000", "the change")

    topics.verify()


def test_another_number_of_partitions_is_refused_and_never_changed(broker: Broker, settings: KafkaSettings) -> None:
    topology = own([counting], partitions=3)
    topics = Topics(topology, settings)
    admin = broker.admin()
    name = f"{topology.prefix}.ticks"
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(ENOUGH_S)
    until(lambda: name in admin.list_topics(timeout=ENOUGH_S).topics, "the topic to be there")

    left = topics.apply()

    assert [(c.do, c.topic, c.found) for c in left] == [(Do.MIGRATE, name, "2")]
    assert len(admin.list_topics(timeout=ENOUGH_S).topics[name].partitions) == 2
    with pytest.raises(TopicsDiffer, match=r"has 2 partitions; needs 3. Partitions can't be changed in place"):
        topics.verify()


def test_too_few_replicas_are_told_to_whoever_asks_for_more(broker: Broker, settings: KafkaSettings) -> None:
    topology = own([counting])
    Topics(topology, settings).apply()
    until(lambda: Topics(topology, settings).plan() == [], "the topics to be there")

    left = Topics(topology, settings, replication=3).apply()

    assert [(c.do, c.topic, c.found) for c in left] == [(Do.REPLICATE, t.name, "1") for t in topology.topics()]
    assert str(left[0]) == (f"{left[0].topic}: has 1 replicas; needs 3. Give it more with kafka-reassign-partitions")
    assert Topics(topology, settings, replication=1).plan() == []


def test_a_member_refuses_to_start_without_its_topics_and_names_the_command(
    settings: KafkaSettings, tmp_path: Path
) -> None:
    topology = own([counting])

    with pytest.raises(TopicsDiffer) as caught:
        KafkaMember(topology, settings, tmp_path)

    said = str(caught.value)
    assert f"{topology.prefix}.counting.changelog: missing; needs 2 partitions" in said
    assert f"kapelle topics apply --bootstrap-servers {settings.bootstrap_servers}" in said
    assert not (tmp_path / "tables").exists()
