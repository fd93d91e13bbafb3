"""Topics as the topology needs them: planned, applied, verified. Nothing is ever created by accident.

A plan is the list of differences between what is needed and what is there. Applying it creates topics and sets
configuration; it never deletes a topic and never changes a number of partitions, because keys would move away from
the tables that belong to them. Too few replicas are told, for whoever runs the cluster to mend.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kapelle.processors.streams import DAY_MS, Keep
from kapelle.topology.build import Topic, Topology
from kapelle.topology.errors import TopicsDiffer
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.answers import is_there, topic_ids
from kapelle.topology.kafka.config import KafkaSettings

TOMBSTONE_MS = 7 * DAY_MS  # how long a process may be away and still trust its tables (see restore.py)

KEEP = {
    Keep.FOR_EVER: {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    Keep.A_WEEK: {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS), "retention.bytes": "-1"},
    Keep.LATEST: {"cleanup.policy": "compact", "delete.retention.ms": str(TOMBSTONE_MS)},
}


class Do(StrEnum):
    CREATE = "create"
    CONFIGURE = "configure"
    MIGRATE = "migrate"  # nothing that we do by ourselves: partitions differ
    REPLICATE = "replicate"  # nor this: which brokers get the replicas is the operator's to say


MENDABLE = frozenset({Do.CREATE, Do.CONFIGURE})


class Change(msgspec.Struct, frozen=True):
    """One difference, and what would mend it."""

    do: Do
    topic: str
    partitions: int
    config: dict[str, str]
    found: str = ""
    replicas: int = -1

    def __str__(self) -> str:
        settings = " ".join(f"{k}={v}" for k, v in sorted(self.config.items()))
        match self.do:
            case Do.CREATE:
                return f"{self.topic}: missing; needs {self.partitions} partitions {settings}"
            case Do.CONFIGURE:
                return f"{self.topic}: {self.found}; needs {settings}"
            case Do.MIGRATE:
                return (
                    f"{self.topic}: has {self.found} partitions; needs {self.partitions}. Partitions can't be changed "
                    "in place: keys would move away from their tables. Run with the number that is there, or start "
                    "under another prefix"
                )
            case Do.REPLICATE:
                return (
                    f"{self.topic}: has {self.found} replicas; needs {self.replicas}. "
                    "Give it more with kafka-reassign-partitions"
                )


def needed_config(topic: Topic, settings: KafkaSettings, extra: Mapping[str, str] = {}) -> dict[str, str]:
    """What a topic must be set to."""
    return {**KEEP[topic.keep], "max.message.bytes": str(settings.wire_bytes_max), **extra}


class Existing(NamedTuple):
    """What there is of a topic: its partitions, and the replicas of the one that has the fewest."""

    partitions: int
    replicas: int


class Topics:
    """The topics of one topology on one cluster. With `replication`, each must have at least so many replicas."""

    def __init__(self, topology: Topology, settings: KafkaSettings, *, replication: int = -1) -> None:
        self._topology = topology
        self._settings = settings
        self._replication = replication  # -1: the broker's default
        self._admin = Admin(settings)

    def plan(self) -> list[Change]:
        """The differences between what is needed and what is there. Empty: all is well."""
        needed = self._topology.topics()
        there = self._existing([t.name for t in needed])
        configs = self._configs([t.name for t in needed if t.name in there])
        return [c for t in needed for c in self._changes(t, there.get(t.name), configs.get(t.name, {}))]

    def apply(self) -> list[Change]:
        """Create what is missing and configure what differs. Returns what could not be mended."""
        plan = self.plan()
        create = [c for c in plan if c.do is Do.CREATE]
        configure = [c for c in plan if c.do is Do.CONFIGURE]
        timeout_s = self._settings.request_timeout_s
        if create:
            new = [NewTopic(c.topic, c.partitions, self._replication, config=dict(c.config)) for c in create]
            with self._admin.asking("create topics") as client:
                for future in client.create_topics(new, request_timeout=timeout_s).values():
                    future.result()
        if configure:
            with self._admin.asking("configure topics") as client:
                for done in client.incremental_alter_configs([_resource(c) for c in configure]).values():
                    done.result()
        return [c for c in plan if c.do not in MENDABLE]

    def verify(self) -> None:
        """Refuse to go on unless the topics are as they must be."""
        plan = self.plan()
        if plan:
            address = self._settings.bootstrap_servers
            raise TopicsDiffer([str(c) for c in plan], f"kapelle topics apply --bootstrap-servers {address}")

    def _changes(self, topic: Topic, existing: Existing | None, config: Mapping[str, str]) -> Iterator[Change]:
        needed = needed_config(topic, self._settings)
        if existing is None:
            yield Change(Do.CREATE, topic.name, topic.partitions, needed)
            return
        if existing.partitions != topic.partitions:
            yield Change(Do.MIGRATE, topic.name, topic.partitions, needed, str(existing.partitions))
            return
        differing = {k: v for k, v in needed.items() if not _suffices(k, config.get(k, ""), v)}
        if differing:
            settings = " ".join(f"{k}={config.get(k, '')}" for k in sorted(differing))
            yield Change(Do.CONFIGURE, topic.name, topic.partitions, differing, f"has {settings}")
        if existing.replicas < self._replication:
            few = str(existing.replicas)
            yield Change(Do.REPLICATE, topic.name, topic.partitions, {}, few, replicas=self._replication)

    def _existing(self, names: Sequence[str]) -> dict[str, Existing]:
        with self._admin.asking(f"list topics at {self._settings.bootstrap_servers}") as client:
            there = client.list_topics(timeout=self._settings.request_timeout_s).topics
        return {
            name: Existing(len(there[name].partitions), min(len(p.replicas) for p in there[name].partitions.values()))
            for name in names
            if name in there and is_there(there[name])
        }

    def _configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        with self._admin.asking("describe topics") as client:
            configs = client.describe_configs(resources, request_timeout=self._settings.request_timeout_s)
            return {r.name: {k: e.value or "" for k, e in future.result().items()} for r, future in configs.items()}

    def identities(self, names: Sequence[str]) -> dict[str, str]:
        """The ids that the broker gave these topics when they were made."""
        with self._admin.asking("describe topics") as client:
            return topic_ids(client, names, self._settings.call_timeout_s)

    def close(self) -> None:
        self._admin.close()


def _suffices(setting: str, value: str, needed: str) -> bool:
    """Whether a setting will do. A larger limit is as good as the one asked for."""
    if setting in {"max.message.bytes", "delete.retention.ms"} and value.isdigit():
        return int(value) >= int(needed)
    return value == needed


def _resource(change: Change) -> ConfigResource:
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in sorted(change.config.items())]
    return ConfigResource(ResourceType.TOPIC, change.topic, incremental_configs=entries)
