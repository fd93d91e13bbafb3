"""Who needs which rights in Kafka, for the topics of one prefix: the least that works, by what a process is for.

| role | is |
|---|---|
| operator | who runs `kapelle topics apply` |
| processors | `kapelle processors run` |
| api | `kapelle api run` |
| workers | `kapelle worker run --bootstrap-servers …` |
| sinks | `kapelle sinks run` |
| announcers | whoever publishes signals on the public topic |
| subscribers | whoever reads public topics, in groups that begin with `subscribers.` |
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from kapelle.processors.routes import (
    CANCELLATIONS,
    RUN_COMMANDS,
    SIGNAL_COMMANDS,
    SIGNALS,
    TASKS,
    WORKFLOW_COMMANDS,
)
from kapelle.topology.build import Topology

PUBLIC: Final = "public."
SUBSCRIBERS: Final = "subscribers."
READ, WRITE = ("READ", "DESCRIBE"), ("WRITE", "DESCRIBE")


class Role(StrEnum):
    """What a principal is for."""

    OPERATOR = "operator"
    PROCESSORS = "processors"
    API = "api"
    WORKERS = "workers"
    SINKS = "sinks"
    ANNOUNCERS = "announcers"
    SUBSCRIBERS = "subscribers"


class Acl(msgspec.Struct, frozen=True):
    """Rights on one resource, or on all whose names begin so."""

    role: Role
    resource: str
    name: str
    prefixed: bool
    operations: tuple[str, ...]

    def command(self) -> str:
        """What gives the rights to the principal of the role, with Kafka's own tool."""
        kind = {"TOPIC": "topic", "GROUP": "group", "TRANSACTIONAL_ID": "transactional-id"}[self.resource]
        operations = " ".join(f"--operation {_written(one)}" for one in self.operations)
        pattern = " --resource-pattern-type prefixed" if self.prefixed else ""
        return f"kafka-acls.sh --add --allow-principal User:{self.role} {operations} --{kind} {self.name}{pattern}"


def acls(topology: Topology) -> list[Acl]:
    """All rights that all roles need."""
    return [*_ours(topology), *_others(topology)]


def _ours(topology: Topology) -> Iterator[Acl]:
    prefix = f"{topology.prefix}."
    manage = ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    yield Acl(Role.OPERATOR, "TOPIC", prefix, prefixed=True, operations=manage)
    fold = ("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS")
    yield Acl(Role.PROCESSORS, "TOPIC", prefix, prefixed=True, operations=fold)
    yield Acl(Role.PROCESSORS, "GROUP", prefix, prefixed=True, operations=READ)
    # A successor ends what its predecessor left open, in its name: so the rights are for all names of the prefix.
    yield Acl(Role.PROCESSORS, "TRANSACTIONAL_ID", prefix, prefixed=True, operations=WRITE)
    yield Acl(Role.API, "TOPIC", prefix, prefixed=True, operations=(*READ, "DESCRIBE_CONFIGS"))
    for stream in (WORKFLOW_COMMANDS, RUN_COMMANDS, SIGNAL_COMMANDS, SIGNALS):
        yield Acl(Role.API, "TOPIC", topology.topic(stream), prefixed=False, operations=WRITE)
    yield Acl(Role.API, "TOPIC", topology.schemas, prefixed=False, operations=WRITE)


def _others(topology: Topology) -> Iterator[Acl]:
    prefix = f"{topology.prefix}."
    for stream in (TASKS, CANCELLATIONS):
        yield Acl(Role.WORKERS, "TOPIC", topology.topic(stream), prefixed=False, operations=READ)
    yield Acl(Role.WORKERS, "TOPIC", topology.topic(RUN_COMMANDS), prefixed=False, operations=WRITE)
    yield Acl(Role.WORKERS, "GROUP", f"{topology.topic(TASKS)}.", prefixed=True, operations=READ)
    yield Acl(Role.SINKS, "TOPIC", prefix, prefixed=True, operations=("DESCRIBE", "DESCRIBE_CONFIGS"))
    yield Acl(Role.SINKS, "TOPIC", f"{prefix}{PUBLIC}", prefixed=True, operations=READ)
    yield Acl(Role.SINKS, "TOPIC", topology.schemas, prefixed=False, operations=("READ", "WRITE", "DESCRIBE"))
    yield Acl(Role.SINKS, "TOPIC", topology.dead_letters, prefixed=False, operations=WRITE)
    yield Acl(Role.SINKS, "GROUP", f"{prefix}{Role.SINKS}.", prefixed=True, operations=READ)
    yield Acl(Role.ANNOUNCERS, "TOPIC", topology.topic(SIGNALS), prefixed=False, operations=WRITE)
    yield Acl(Role.SUBSCRIBERS, "TOPIC", f"{prefix}{PUBLIC}", prefixed=True, operations=READ)
    yield Acl(Role.SUBSCRIBERS, "TOPIC", topology.schemas, prefixed=False, operations=READ)
    yield Acl(Role.SUBSCRIBERS, "GROUP", SUBSCRIBERS, prefixed=True, operations=READ)


def _written(operation: str) -> str:
    """An operation as Kafka's tool takes it: `DescribeConfigs`."""
    return "".join(word.capitalize() for word in operation.split("_"))
