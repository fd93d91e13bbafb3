"""Settings for librdkafka: what we pin, what we own, what passes through, and what must never be printed.

Anything that librdkafka knows may be given, for all clients or for one kind (`producer.`, `consumer.`, `admin.`
before the name). The settings that exactly-once rests on are ours and are refused with the reason.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from kapelle.topology.errors import BadSetting

Setting = str | int | float | bool

OWNED = {
    "acks": "a transaction needs all replicas",
    "allow.auto.create.topics": "topics are created only by `kapelle topics apply`",
    "auto.commit.enable": "offsets are committed in the transaction, with the outputs",
    "auto.offset.reset": "a processor reads its inputs from the beginning, so that history is complete",
    "bootstrap.servers": "set it with bootstrap_servers",
    "enable.auto.commit": "offsets are committed in the transaction, with the outputs",
    "enable.auto.offset.store": "offsets are committed in the transaction, with the outputs",
    "enable.idempotence": "a transaction needs it",
    "enable.partition.eof": "the runtime must see where a partition ends",
    "group.id": "each processor has a group of its own",
    "group.protocol": "set it with protocol",
    "isolation.level": "aborted records must never be read",
    "max.in.flight": "a transaction needs at most 5",
    "max.in.flight.requests.per.connection": "a transaction needs at most 5",
    "message.max.bytes": "it follows from record_bytes_max",
    "metadata.broker.list": "set it with bootstrap_servers",
    "partition.assignment.strategy": "the runtime follows the assignment of one topic with all of a processor's inputs",
    "partitioner": "keys must go where Java's clients put them",
    "request.required.acks": "a transaction needs all replicas",
    "session.timeout.ms": "set it with session_timeout_ms",
    "statistics.interval.ms": "set it with statistics_ms",
    "transaction.timeout.ms": "set it with transaction_timeout_ms",
    "transactional.id": "it follows from the instance, which must be unique",
}
SECRETS = ("password", "secret", "key.pem", "oauthbearer.config", "sasl.jaas", "token", "private", "keystore")
KINDS = ("producer", "consumer", "admin")


class Protocol(StrEnum):
    """How the members of a group agree on who reads what."""

    CLASSIC = "classic"  # cooperative-sticky; fails over within the session time-out that we set
    CONSUMER = "consumer"  # KIP-848; the session time-out is the broker's (45 s unless the group says otherwise)


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach Kafka, and how to behave there."""

    bootstrap_servers: str
    protocol: Protocol = Protocol.CLASSIC
    session_timeout_ms: int = 6_000
    transaction_timeout_ms: int = 10_000
    commit_timeout_s: float = 10.0
    request_timeout_s: float = 10.0  # for requests of the operator: topics
    call_timeout_s: float = 3.0  # for everything that the loop can ask again; it bounds how long a stop can take
    statistics_ms: int = 10_000
    record_bytes_max: int = 1_000_000
    extra: Mapping[str, Setting] = {}

    def __post_init__(self) -> None:
        for name in self.extra:
            kind, _, rest = name.partition(".")
            setting = rest if kind in KINDS else name
            if setting in OWNED:
                raise BadSetting(f"Setting {name!r} is set by Kapelle: {OWNED[setting]}")
        if not self.bootstrap_servers:
            raise BadSetting("Expected bootstrap servers such as 127.0.0.1:9092, but found none")

    def redacted(self) -> dict[str, Setting]:
        """All settings, fit for a log."""
        shown: dict[str, Setting] = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in {"extra", "bootstrap_servers"}
        }
        shown["bootstrap.servers"] = self.bootstrap_servers
        return shown | {n: "•••" if is_secret(n) else v for n, v in self.extra.items()}

    def __repr__(self) -> str:
        """Safe wherever settings may be printed by accident, as in a traceback."""
        return f"{type(self).__name__}({self.redacted()})"

    def producer(self, transactional_id: str) -> dict[str, Setting]:
        return {
            **self._common("producer"),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": self.transaction_timeout_ms,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "message.max.bytes": self.wire_bytes_max,
            # A cycle makes its records within milliseconds. Sent one by one as they are made, they cost us and
            # the broker a third more; a commit waits for no linger.
            "linger.ms": 2,
            # After a commit the broker answers CONCURRENT_TRANSACTIONS until its markers are written; with the
            # default of 100 ms every small transaction would wait that long.
            "retry.backoff.ms": 2,
            "retry.backoff.max.ms": 200,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 500_000,
            **self._given("producer"),
        }

    def plain_producer(self) -> dict[str, Setting]:
        """A producer outside any transaction, for what may be written twice."""
        return {**self._common("producer"), "acks": "all", "enable.idempotence": True, **self._given("producer")}

    def consumer(self, group: str) -> dict[str, Setting]:
        membership: dict[str, Setting] = {"group.protocol": self.protocol.value}
        if self.protocol is Protocol.CLASSIC:
            membership |= {
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": self.session_timeout_ms,
                "heartbeat.interval.ms": max(self.session_timeout_ms // 4, 100),
            }
        return self.reader(group) | membership | self._given("consumer")

    def reader(self, group: str) -> dict[str, Setting]:
        """A consumer outside group management."""
        return {
            **self._common("consumer"),
            "group.id": group,
            "group.protocol": Protocol.CLASSIC.value,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "queued.max.messages.kbytes": 16 * 1024,
            "fetch.message.max.bytes": max(self.wire_bytes_max, 1024 * 1024),
            **self._given("consumer"),
        }

    def admin(self) -> dict[str, Setting]:
        return self._common("admin")

    @property
    def wire_bytes_max(self) -> int:
        """The largest record on the wire: a dead letter about the largest record, with room for headers."""
        return self.record_bytes_max + 256 * 1024

    def _common(self, kind: str) -> dict[str, Setting]:
        statistics = {} if kind == "admin" else {"statistics.interval.ms": self.statistics_ms}
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 3, **statistics, **self._given(kind)}

    def _given(self, kind: str) -> dict[str, Setting]:
        """What was given for all clients and, above it, for this kind."""
        for_all = {n: v for n, v in self.extra.items() if n.partition(".")[0] not in KINDS}
        return for_all | {n.removeprefix(f"{kind}."): v for n, v in self.extra.items() if n.startswith(f"{kind}.")}


def is_secret(name: str) -> bool:
    """Whether a setting's value must never be shown."""
    return any(word in name for word in SECRETS)
