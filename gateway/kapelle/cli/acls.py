"""The minimum rights in Kafka for the topics of one prefix, by the role of a process.

| role | is |
|---|---|
| operator | who runs `kapelle topics`, `doctor`, `dlq list`, `replay` and `verify` |
| processors | `kapelle processors run` |
| api | `kapelle api run` |
| workers | `kapelle worker run --bootstrap-servers …` |
| sinks | `kapelle sinks run` |
| sources | `kapelle sources run`, which must be let read the topics of others too |
| outbox | `kapelle outbox run` |
| traces | `kapelle traces run` |
| openlineage | `kapelle openlineage run`, which writes to its own topic |
| announcers | whoever publishes signals on the public topic |
| subscribers | whoever reads public topics, in groups that begin with `subscribers.` |

A consumer that joins no group has the name of one all the same, and asks who coordinates it: for that it must be let
describe the group.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from kapelle.processors.wiring import (
    CANCELLATIONS,
    PERMIT_COMMANDS,
    RUN_COMMANDS,
    RUN_EVENTS,
    SIGNAL_EVENTS,
    SIGNALS,
    TASKS,
    TRIGGER_EVENTS,
    WORKFLOW_COMMANDS,
    WORKFLOW_EVENTS,
)
from kapelle.topology.build import Topology

PUBLIC: Final = "public."
SUBSCRIBERS: Final = "subscribers."
LINEAGE: Final = "openlineage.events"
READ, WRITE, KNOW = ("READ", "DESCRIBE"), ("WRITE", "DESCRIBE"), ("DESCRIBE",)
HISTORY: Final = (WORKFLOW_EVENTS, RUN_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS)


class Role(StrEnum):
    """What a principal is for."""

    OPERATOR = "operator"
    PROCESSORS = "processors"
    API = "api"
    WORKERS = "workers"
    SINKS = "sinks"
    SOURCES = "sources"
    OUTBOX = "outbox"
    TRACES = "traces"
    OPENLINEAGE = "openlineage"
    ANNOUNCERS = "announcers"
    SUBSCRIBERS = "subscribers"


class Acl(msgspec.Struct, frozen=True):
    """Rights on one resource, or on all whose names begin so."""

    role: Role
    resource: str
    name: str
    prefixed: bool
    operations: tuple[str, ...]

    def command(self, servers: str = "$SERVERS") -> str:
        """What gives the rights to the principal of the role, with Kafka's own tool."""
        kind = {"TOPIC": "topic", "GROUP": "group", "TRANSACTIONAL_ID": "transactional-id"}[self.resource]
        operations = " ".join(f"--operation {_written(operation)}" for operation in self.operations)
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        given = f"--add --allow-principal User:{self.role} {operations} --{kind} {self.name}{pattern}"
        return f"kafka-acls.sh --bootstrap-server {servers} {given}"


def acls(topology: Topology) -> list[Acl]:
    """All rights that all roles need."""
    return [*_ours(topology), *_relays(topology), *_others(topology)]


def _ours(topology: Topology) -> Iterator[Acl]:
    prefix = f"{topology.prefix}."
    manage = ("CREATE", "READ", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    yield Acl(Role.OPERATOR, "TOPIC", prefix, prefixed=True, operations=manage)
    yield Acl(Role.OPERATOR, "GROUP", prefix, prefixed=True, operations=READ)
    fold = ("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS")
    yield Acl(Role.PROCESSORS, "TOPIC", prefix, prefixed=True, operations=fold)
    yield Acl(Role.PROCESSORS, "GROUP", prefix, prefixed=True, operations=READ)
    # A successor ends what its predecessor left open, in its name: so the rights are for all names of the prefix.
    yield Acl(Role.PROCESSORS, "TRANSACTIONAL_ID", prefix, prefixed=True, operations=WRITE)
    yield Acl(Role.API, "TOPIC", prefix, prefixed=True, operations=(*READ, "DESCRIBE_CONFIGS"))
    for stream in (WORKFLOW_COMMANDS, RUN_COMMANDS, PERMIT_COMMANDS, SIGNALS):
        yield Acl(Role.API, "TOPIC", topology.topic(stream), prefixed=False, operations=WRITE)
    yield from _schemas(topology, Role.API)
    yield Acl(Role.API, "GROUP", f"{prefix}journal", prefixed=False, operations=KNOW)
    for stream in (TASKS, CANCELLATIONS):
        yield Acl(Role.WORKERS, "TOPIC", topology.topic(stream), prefixed=False, operations=READ)
    yield Acl(Role.WORKERS, "TOPIC", topology.topic(RUN_COMMANDS), prefixed=False, operations=WRITE)
    yield from _schemas(topology, Role.WORKERS)
    yield Acl(Role.WORKERS, "GROUP", f"{topology.topic(TASKS)}.", prefixed=True, operations=READ)
    yield Acl(Role.WORKERS, "GROUP", f"{prefix}{Role.WORKERS}.", prefixed=True, operations=KNOW)


def _schemas(topology: Topology, role: Role) -> Iterator[Acl]:
    """Whoever writes or reads contracts says which, and looks up those that others write."""
    yield Acl(role, "TOPIC", topology.schemas, prefixed=False, operations=("READ", *WRITE))
    yield Acl(role, "GROUP", f"{topology.schemas}.reader", prefixed=False, operations=KNOW)


def _relays(topology: Topology) -> Iterator[Acl]:
    prefix = f"{topology.prefix}."
    for role in (Role.SINKS, Role.SOURCES, Role.OUTBOX, Role.TRACES, Role.OPENLINEAGE):
        yield Acl(role, "TOPIC", prefix, prefixed=True, operations=("DESCRIBE", "DESCRIBE_CONFIGS"))
        yield from _schemas(topology, role)
    for role in (Role.SINKS, Role.SOURCES):
        yield Acl(role, "TOPIC", topology.dead_letters, prefixed=False, operations=WRITE)
    for role in (Role.SOURCES, Role.OUTBOX):
        yield Acl(role, "TOPIC", topology.topic(SIGNALS), prefixed=False, operations=WRITE)
    for role in (Role.SOURCES, Role.TRACES, Role.OPENLINEAGE):
        yield Acl(role, "GROUP", f"{prefix}{role}", prefixed=False, operations=READ)
    yield Acl(Role.SINKS, "TOPIC", f"{prefix}{PUBLIC}", prefixed=True, operations=READ)
    yield Acl(Role.SINKS, "GROUP", f"{prefix}{Role.SINKS}.", prefixed=True, operations=READ)
    for role in (Role.TRACES, Role.OPENLINEAGE):
        for stream in HISTORY:
            yield Acl(role, "TOPIC", topology.topic(stream), prefixed=False, operations=READ)
    yield Acl(Role.OPENLINEAGE, "TOPIC", LINEAGE, prefixed=False, operations=WRITE)


def _others(topology: Topology) -> Iterator[Acl]:
    yield Acl(Role.ANNOUNCERS, "TOPIC", topology.topic(SIGNALS), prefixed=False, operations=WRITE)
    yield Acl(Role.SUBSCRIBERS, "TOPIC", f"{topology.prefix}.{PUBLIC}", prefixed=True, operations=READ)
    yield Acl(Role.SUBSCRIBERS, "TOPIC", topology.schemas, prefixed=False, operations=READ)
    yield Acl(Role.SUBSCRIBERS, "GROUP", SUBSCRIBERS, prefixed=True, operations=READ)


def _written(operation: str) -> str:
    """An operation as Kafka's tool takes it: `DescribeConfigs`."""
    return "".join(word.capitalize() for word in operation.split("_"))
