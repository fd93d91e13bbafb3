"""A cluster of brokers from Kafka's jars: each record on every node, and one node may be away at a time."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka.admin import AdminClient

from tests.support.jar_broker import JarBroker
from tests.support.jars import Installation
from tests.support.settings import (
    HOST,
    KILLED_MS,
    BrokerSettings,
    Ports,
    free_ports_of,
    new_cluster_id,
    write_properties,
)

NODES: Final = 3
IN_SYNC_MIN: Final = NODES - 1
HEAP_MB: Final = 256
ASK_S: Final = 10.0


class JarCluster:
    """Three nodes, each a broker and a controller. A write is acknowledged by two of them at least.

    `nodes` can be killed and started like other brokers: they keep their addresses and their data until `close`.
    """

    def __init__(self, installation: Installation, *, overrides: Mapping[str, str] | None = None) -> None:
        ports = free_ports_of(NODES)
        self.bootstrap_servers = ",".join(f"{HOST}:{one.client}" for one in ports)
        common = replicated(ports) | dict(overrides or {})
        self.nodes: list[JarBroker] = []
        try:
            for number, one in enumerate(ports, start=1):
                self.nodes.append(JarBroker(installation, node_settings(number, one, common)))
                name_node(self.nodes[-1].directory / "data" / "meta.properties", number)
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start all nodes at once, because none answers before two of them are there."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(JarBroker.start, self.nodes))

    def in_sync(self) -> bool:
        """Whether every node has every record, as the nodes tell that are up."""
        topics = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0}).list_topics(timeout=ASK_S)
        partitions = [partition for topic in topics.topics.values() for partition in topic.partitions.values()]
        return all(set(one.isrs) == set(one.replicas) for one in partitions)

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def node_settings(number: int, ports: Ports, overrides: Mapping[str, str]) -> BrokerSettings:
    return BrokerSettings(
        node_session_ms=KILLED_MS, overrides={"node.id": str(number), **overrides}, heap_mb=HEAP_MB, ports=ports
    )


def name_node(properties: Path, number: int) -> None:
    """Name the node in its formatted data. All nodes share the id of the cluster, and no two that of a directory."""
    own = {"node.id": str(number), "directory.id": new_cluster_id()}
    lines = [line.partition("=") for line in properties.read_text().splitlines() if "=" in line]
    write_properties(properties, {name: own.get(name, value) for name, _, value in lines})


def replicated(ports: list[Ports]) -> dict[str, str]:
    """The properties that make nodes a cluster in which every topic has a replica on each node."""
    voters = ",".join(f"{number}@{HOST}:{one.controller}" for number, one in enumerate(ports, start=1))
    factors = ("default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    least = ("min.insync.replicas", "transaction.state.log.min.isr", "share.coordinator.state.topic.min.isr")
    return {
        "controller.quorum.voters": voters,
        **{f"{name}.replication.factor": str(NODES) for name in factors},
        **dict.fromkeys(least, str(IN_SYNC_MIN)),
        "replica.lag.time.max.ms": str(KILLED_MS),
    }
