"""How a test broker is set up: its ports, and the properties of one KRaft node that holds everything."""

import base64
import random
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

HOST = "127.0.0.1"
KAFKA_VERSION = "4.3.1"
ADDRESS_VARIABLE = "KAPELLE_TEST_BOOTSTRAP"

# Below the range that systems take the ports of outgoing connections from (32768 on Linux, 49152 on macOS). A port of
# that range may be taken while the broker is down for a restart, in the worst case by a client of ours that knocks on
# it and is connected to itself.
PORTS = range(20_000, 32_000)
PORT_ATTEMPTS_MAX = 1_000

KILLED_MS = 3_000  # the session of a node that a test kills and starts again


class Ports(msgspec.Struct, frozen=True):
    """Where the node listens. Clients of the proxied listener are told `proxy`, where a test may put a proxy."""

    client: int
    controller: int
    proxied: int
    proxy: int


# A broker that lives for some minutes and does little spends more on compiling itself than on its work: so it takes
# half the CPU. One that is measured, or worked with, does without them.
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class BrokerSettings(msgspec.Struct, frozen=True):
    """What a test may choose. `overrides` are server properties and win over ours.

    The time-outs of KIP-848 groups are the broker's: set `group.consumer.session.timeout.ms` and
    `group.consumer.heartbeat.interval.ms` in `overrides` (or on one group) to have a silent member removed sooner.
    """

    session_timeout_min_ms: int = 1_000
    # After so much silence the node loses all its partitions until it is heard again, and on a busy machine it may be
    # slow to speak. But a killed node is refused as its own duplicate for as long: `KILLED_MS` for those.
    node_session_ms: int = 30_000
    # How often the broker looks for transactions past their time-out. None leaves its default of 10 s.
    transaction_cleanup_interval_ms: int | None = None
    overrides: Mapping[str, str] = {}
    heap_mb: int = 1_024
    jvm_flags: tuple[str, ...] = SHORT_LIVED  # only for brokers from jars
    ports: Ports | None = None
    start_timeout_s: float = 60.0


LASTING: Final = BrokerSettings(jvm_flags=())


def free_ports(rng: random.Random | None = None) -> Ports:
    """Four ports that nobody listens on."""
    return free_ports_of(1, rng)[0]


def free_ports_of(nodes: int, rng: random.Random | None = None) -> list[Ports]:
    """Four ports for each node. All are held until the last is found, so they differ."""
    chooser, needed = rng or random.SystemRandom(), nodes * len(Ports.__struct_fields__)
    held: list[socket.socket] = []
    try:
        for _ in range(PORT_ATTEMPTS_MAX):
            candidate = socket.socket()
            held.append(candidate)
            try:
                candidate.bind((HOST, chooser.choice(PORTS)))
            except OSError:
                candidate.close()
                held.pop()
            if len(held) == needed:
                numbers = [s.getsockname()[1] for s in held]
                return [Ports(*numbers[n::nodes]) for n in range(nodes)]
    finally:
        for s in held:
            s.close()
    found = f"{PORT_ATTEMPTS_MAX} tries failed"
    raise OSError(f"Expected {needed} free ports from {PORTS.start} to {PORTS.stop}, but {found}")


def server_properties(
    settings: BrokerSettings, ports: Ports, data: str, *, bind: str = HOST, advertise: str = HOST
) -> dict[str, str]:
    """The properties of the node: one replica of everything, no waiting that only helps large clusters.

    `bind` is where it listens, `advertise` where clients find it; the proxy is always on this machine.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
        "listeners": (
            f"PLAINTEXT://{bind}:{ports.client},PROXIED://{bind}:{ports.proxied},CONTROLLER://{bind}:{ports.controller}"
        ),
        "advertised.listeners": f"PLAINTEXT://{advertise}:{ports.client},PROXIED://{HOST}:{ports.proxy}",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "broker.session.timeout.ms": str(settings.node_session_ms),
        "broker.heartbeat.interval.ms": "500",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": str(settings.session_timeout_min_ms),
        "group.consumer.min.session.timeout.ms": str(settings.session_timeout_min_ms),
        "group.consumer.min.heartbeat.interval.ms": "100",
    }
    if settings.transaction_cleanup_interval_ms is not None:
        interval = str(settings.transaction_cleanup_interval_ms)
        properties["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = interval
    return properties | dict(settings.overrides)


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in sorted(properties.items())))


def container_environment(properties: dict[str, str], heap_mb: int) -> dict[str, str]:
    """Server properties as the image takes them: `log.dirs` is `KAFKA_LOG_DIRS`."""
    named = {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in properties.items()}
    return named | {"CLUSTER_ID": new_cluster_id(), "KAFKA_HEAP_OPTS": f"-Xmx{heap_mb}m"}


def new_cluster_id() -> str:
    """Sixteen bytes as Kafka writes them."""
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
